"""A model that plays a script: what it is asked, call by call, and what it replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.base import Message, Passage
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, ChoiceRequest, GenerationRequest
from pipelines.retrieval.base import Retriever
from pipelines.run.events import Judged
from tests.scripted.bench import FULL, Outcome, PieceModel, Reply, run_method

QUESTION = "Where was Bill Clinton born?"

TEXT = Capabilities(languages=frozenset({"en", "zh"}))
"""A model whose verdicts are words: a probability is 1 or 0."""

Turn = tuple[str, Reply]


class Script(PieceModel):
    """Replies in order. Each turn names words that the prompt of its call has to hold."""

    def __init__(self, *turns: Turn, capabilities: Capabilities = TEXT) -> None:
        super().__init__(self._reply, capabilities)
        self._turns: Sequence[Turn] = turns
        self.odd: list[str] = []

    def _reply(self, request: GenerationRequest) -> Reply:
        prompt = "\n".join(message.content for message in request.messages)
        number = len(self.asked) - 1
        if number >= len(self._turns) or self._turns[number][0] not in prompt:
            self.odd.append(f"call {number}: {prompt}")
            return ""
        return self._turns[number][1]

    def check(self) -> None:
        """That all was asked as the script says, and nothing else."""
        assert self.odd == []
        assert len(self.asked) == len(self._turns)


class Finder(Retriever):
    """Finds the passages of the first words that stand in the query; each text is one passage."""

    name = "finder"

    def __init__(self, finds: Mapping[str, Sequence[str]]) -> None:
        self._finds = finds

    async def search(self, query: str, k: int) -> list[Passage]:
        texts = next((texts for words, texts in self._finds.items() if words in query), ())
        return [
            Passage(id=text, title="A title", text=text, source="finder", rank=rank)
            for rank, text in enumerate(texts[:k], start=1)
        ]


async def play(
    name: str, *turns: Turn, finds: Mapping[str, Sequence[str]] | None = None, **options: Any
) -> Outcome:
    """A run of the method on a model that plays `turns`; every call has to be as they say.

    `finds` maps words of a query to the passages found for it; without it nothing is found.
    """
    capabilities = options.pop("capabilities", TEXT)
    question = options.pop("question", QUESTION)
    model = Script(*turns, capabilities=capabilities)
    outcome = await run_method(METHODS[name], question, model, shelf=Finder(finds or {}), **options)
    model.check()
    return outcome


def turns(outcome: Outcome) -> list[tuple[Message, ...]]:
    """What each call of a model was asked, in order; calls of the embedder have no turns."""
    asked = (call.request for call in outcome.calls)
    return [one.messages for one in asked if isinstance(one, GenerationRequest | ChoiceRequest)]


def written(outcome: Outcome) -> list[GenerationRequest]:
    """The requests for texts, in order."""
    asked = (call.request for call in outcome.calls)
    return [one for one in asked if isinstance(one, GenerationRequest)]


def verdicts(outcome: Outcome, what: str) -> list[tuple[str, str]]:
    """The verdicts on `what`, with the texts that they are on, in order."""
    return [
        (event.text, event.verdict)
        for event in outcome.events
        if isinstance(event, Judged) and event.what == what
    ]


def answer_verdict(outcome: Outcome) -> Judged:
    """The one verdict on the answer."""
    (only,) = [e for e in outcome.events if isinstance(e, Judged) and e.what == "answer"]
    return only


PROBABLE = FULL
"""A model that gives token probabilities and goes on with a text that it is handed."""
