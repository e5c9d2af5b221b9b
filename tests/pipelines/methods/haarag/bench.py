"""HAARAG on cosines written by hand: a table of numbers instead of an embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.haarag import Haarag
from pipelines.methods.haarag.path import HaaragDecision
from pipelines.models.base import Capabilities, Model
from pipelines.models.scripted import ScriptedModel
from pipelines.retrieval.base import Retriever
from pipelines.retrieval.similarity import Matrix, Similarity
from pipelines.run.events import Judged, Score
from pipelines.types import Passage
from tests.pipelines.methods.bench import Outcome, Shelf, run_method

QUESTION = "Where was Clinton born?"

# Every cosine that is not written down: unrelated, but not at right angles.
ELSE = 0.1

WRITES = Capabilities(languages=frozenset({"en", "zh"}), structured_output=True)

Table = Mapping[tuple[str, str], float]
Found = Mapping[str, Sequence[str] | VeriscopeError]


class TableSimilarity(Similarity):
    """Cosines from a table of pairs of texts in either order; a text with itself has 1."""

    languages = frozenset({"en", "zh"})

    def __init__(self, table: Table, name: str = "table") -> None:
        self.name = name
        self.table = {frozenset(pair): value for pair, value in table.items()}

    async def compare(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        return tuple(tuple(self._cosine(one, two) for two in right) for one in left)

    def _cosine(self, one: str, two: str) -> float:
        one, two = one.removeprefix("\n"), two.removeprefix("\n")
        return 1.0 if one == two else self.table.get(frozenset((one, two)), ELSE)


class Chunks(Retriever):
    """Finds the chunks listed for a query, the first k of them; nothing for any other query."""

    name = "chunks"

    def __init__(self, found: Found) -> None:
        self.found = found
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> list[Passage]:
        self.asked.append((query, k))
        texts = self.found.get(query, ())
        if isinstance(texts, VeriscopeError):
            raise texts
        return [
            Passage(id=text[:1], title="", text=text, source="chunks", rank=rank)
            for rank, text in enumerate(texts[:k], start=1)
        ]


async def haarag(
    replies: Sequence[Any] | Model,
    found: Found | Retriever,
    table: Table,
    *,
    question: str = QUESTION,
    embedder: str = "table",
    models: Mapping[str, Model] | None = None,
    **settings: Any,
) -> Outcome:
    """Run HAARAG with the main model's replies in order, on these searches and cosines."""
    model = (
        replies
        if isinstance(replies, Model)
        else ScriptedModel.from_replies(replies, capabilities=WRITES)
    )
    shelf = found if isinstance(found, Retriever) else Chunks(found)
    return await run_method(
        Haarag(),
        question,
        model,
        # The chosen search finds nothing: what is found comes from the search by meaning.
        shelf=Shelf(lambda _: []),
        by_meaning=shelf,
        similarity=TableSimilarity(table, embedder),
        models=models,
        **settings,
    )


def decided(outcome: Outcome, **settings: Any) -> HaaragDecision:
    """The recorded run decided again with exactly these settings."""
    decision = outcome.method.decide(outcome.trace, outcome.method.settings(settings))
    assert isinstance(decision, HaaragDecision)
    return decision


def agrees(outcome: Outcome, **settings: Any) -> HaaragDecision:
    """The decision under the run's own settings, after checking that it is the live one."""
    decision = decided(outcome, **settings)
    assert decision.diverges_at is None, decision.reason
    assert decision.answer is not None
    # The remark on an empty text is the engine's own.
    flags = tuple(flag for flag in outcome.answer.flags if flag != "empty")
    assert decision.answer == outcome.answer.model_copy(update={"flags": flags})
    (headline,) = judged(outcome, "answer")
    assert decision.score == headline.scores[0]
    assert decision.flagged == (headline.verdict == "doubtful") == headline.scores[0].flagged
    assert list(decision.path) == list(range(len(outcome.drafts)))
    live = [event.scores[0].value for event in judged(outcome, "retrieval")]
    assert [each.retrieval.confidence for each in decision.rounds] == live
    assert all(each.used for each in (*decision.rounds, *decision.drafts))
    return decision


def judged(outcome: Outcome, what: str) -> list[Judged]:
    return [event for event in outcome.events if isinstance(event, Judged) and event.what == what]


def score(event: Judged, name: str) -> Score:
    return next(score for score in event.scores if score.name == name)


__all__ = [
    "ELSE",
    "QUESTION",
    "Chunks",
    "TableSimilarity",
    "agrees",
    "decided",
    "haarag",
    "judged",
    "score",
]
