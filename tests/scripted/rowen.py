"""A model that knows which of Rowen's prompts it was asked, and agrees as it is told to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from pipelines.base import Choice, Generation, Message
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.rowen import Rowen
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    Watcher,
)
from pipelines.retrieval.base import Matrix, Similarity
from pipelines.run.events import Judged
from pipelines.run.findings import PairCompared
from tests.scripted.bench import Outcome, Shelf, run_method

QUESTION = "Where was Bill Clinton born?"
CHINESE = "比尔·克林顿出生在哪里？"
BOTH = Capabilities(languages=frozenset({"en", "zh"}))
ENGLISH = Capabilities(languages=frozenset({"en"}))
EVIDENCE = Shelf(lambda query: [f"About {query}", "He was born in Hope."])
TOWN = "Which Clinton town q{}?"
NOTHING = Shelf(lambda _: [])

_KINDS: tuple[tuple[str, str], ...] = (
    ("paraphrase", r"in \d+ other ways|用另外\d+种说法"),
    ("translate", r"\ATranslate this question into|翻译成"),
    ("cl", r"\ABelow is a question with two answers|\A下面是一个问题和两个回答"),
    ("cm", r"\ABelow are two pairs|\A下面是两组问答"),
    ("reminder", r"\AReply with one word only|\A只回答一个字"),
    ("query", r"one query for a search engine|一条搜索引擎的查询"),
    ("repair", r"Final answer:\Z|最终答案：\Z"),
    ("short", r"\ANow give only the answer itself|\A现在只写出答案本身"),
)
_COUNT = re.compile(r"in (\d+) other|用另外(\d+)种")

Reply = str | Generation | VeriscopeError
Replier = Callable[[str], Reply]


def kind_of(messages: tuple[Message, ...]) -> str:
    """Which prompt a conversation ends with; "reason" and "single" are told by their system."""
    last = messages[-1].content
    for kind, pattern in _KINDS:
        if re.search(pattern, last):
            return kind
    system = messages[0].content
    return "single" if "Reply with the answer" in system or "只写答案" in system else "reason"


def index_of(messages: tuple[Message, ...]) -> int | None:
    """The paraphrase a conversation is about: paraphrases contain q0, q1 and so on."""
    found = re.search(r"q(\d+)", "\n".join(message.content for message in messages))
    return int(found[1]) if found else None


class Speaker(Model):
    """Answers "a3" to the paraphrase q3, "答3" to its translation, "v3" when drawn at random.

    The pairs in `cl` and `cm` are judged the same, those in `undecided` not at all, `soft` gives
    probabilities of True. `replies` maps a kind of prompt to what is replied to its last message.
    Without `chooses` its verdicts are texts. `before` is awaited first.
    """

    def __init__(
        self,
        *,
        cl: Collection[int] = (),
        cm: Collection[int] = (),
        undecided: Collection[tuple[str, int]] = (),
        soft: Mapping[tuple[str, int], float] | None = None,
        replies: Mapping[str, Reply | Replier] | None = None,
        capabilities: Capabilities = BOTH,
        prefix: str = "a",
        chooses: bool = True,
        before: Callable[[str, int | None], Awaitable[None]] | None = None,
    ) -> None:
        self.name = f"speaker {prefix}"
        self.prefix = prefix
        self._same = {"cl": frozenset(cl), "cm": frozenset(cm)}
        self._undecided = frozenset(undecided)
        self._soft = soft or {}
        self._replies = replies or {}
        self._capabilities = capabilities
        self._chooses = chooses
        self._before = before
        self.asked: dict[str, list[GenerationRequest | ChoiceRequest]] = defaultdict(list)

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        kind, index = kind_of(request.messages), index_of(request.messages)
        self.asked[kind].append(request)
        if self._before:
            await self._before(kind, index)
        reply = self._replies.get(kind)
        text = reply if reply is not None else self._usual(kind, index, request)
        if callable(text):
            # Short answers are distinguished by the question that the conversation began with.
            answers = kind in ("short", "single", "reason")
            about = tuple(one.content for one in request.messages)[1 if answers else -1]
            text = text(about)
        if isinstance(text, VeriscopeError):
            raise text
        if isinstance(text, Generation):
            return (text,)
        if watch:
            watch(Delta(text=text))
        return (Generation(text=text),)

    async def choose(self, request: ChoiceRequest) -> Choice:
        if not self._chooses:
            return await super().choose(request)
        kind, index = kind_of(request.messages), index_of(request.messages)
        self.asked[kind].append(request)
        if self._before:
            await self._before(kind, index)
        side = kind_of(request.messages[:1])
        if (side, index) in self._undecided or index is None:
            return Choice(
                probabilities={"true": 0.0, "false": 0.0}, other_mass=1.0, source="logprobs"
            )
        true = self._soft.get((side, index), 0.9 if index in self._same[side] else 0.1)
        return Choice(
            probabilities={"true": true, "false": 1 - true}, other_mass=0.0, source="logprobs"
        )

    def _usual(self, kind: str, index: int | None, request: GenerationRequest) -> str:
        said = [message.content for message in request.messages]
        question = said[1] if len(said) > 1 else ""
        chinese = "译" in question
        match kind:
            case "paraphrase":
                asked = _COUNT.search(said[-1])
                count = int((asked and (asked[1] or asked[2])) or 0)
                form = (
                    "克林顿的出生地q{}是哪里？" if "问题" in said[-1] else "Which Clinton town q{}?"
                )
                return "\n".join(f"{n + 1}. {form.format(n)}" for n in range(count))
            case "translate":
                return f"What of q{index}?" if "翻译" in said[-1] else f"译文q{index}？"
            case "short" | "single":
                if index is None:
                    return "In York."
                drawn = "v" if request.temperature > 0 else self.prefix
                return f"答{index}" if chinese else f"{drawn}{index}"
            case "cl" | "cm":
                return "True" if index in self._same[kind] else "False"
            case "query":
                return f"query {index}"
            case "repair":
                return "In Hope."
            case _:
                return f"Thinking about {question}"


class Cosines(Similarity):
    """The cosine of a text with the question by the paraphrase it is; 0.9 unless it is given."""

    name = "cosines"
    languages = frozenset({"en", "zh"})

    def __init__(self, of: Mapping[int, float] | None = None) -> None:
        self._of = of or {}
        self.asked: list[tuple[str, ...]] = []

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        if len(left) == len(right) == 1 and "译文" in right[0]:
            # A translation beside its paraphrase.
            return ((0.9,),)
        self.asked.append(tuple(right))
        numbers = [re.search(r"q(\d+)", text) for text in right]
        row = tuple(self._of.get(int(found[1]) if found else -1, 0.9) for found in numbers)
        return tuple(row for _ in left)


async def rowen(
    model: Speaker,
    *,
    question: str = QUESTION,
    verifier: Model | None = None,
    shelf: Shelf = EVIDENCE,
    similarity: Similarity | None = None,
    **settings: Any,
) -> Outcome:
    """Rowen, run to its end; re-evaluated with its own settings it comes to the same."""
    models = {"verifier": verifier} if verifier is not None else {}
    if verifier is None and model.capabilities.languages >= {"en", "zh"}:
        # Without a verifier the default leaves that side out; most tests look at both.
        settings.setdefault("variant", "hybrid")
    asked = " ".join(question.split())
    outcome = await run_method(
        Rowen(), asked, model, shelf=shelf, models=models, similarity=similarity, **settings
    )
    if judged_in(outcome, "answer"):
        again = reevaluated(outcome, **settings)
        assert (again.answer, again.diverges_at) == (outcome.answer, None)
        verdict, live = answer_verdict(again), answer_verdict(outcome)
        assert (verdict.verdict, verdict.detail) == (live.verdict, live.detail)
        assert numbers(again) == numbers(outcome)
        assert pairs(again) == pairs(outcome)
    return outcome


def reevaluated(outcome: Outcome, **settings: Any) -> Reevaluation:
    """The recorded run with these settings."""
    return reevaluate(outcome.trace, Rowen(), Rowen().settings(settings))


def judged_in(outcome: Outcome | Reevaluation, what: str) -> list[Judged]:
    events = outcome.trace.of_method("rowen")
    return [event for event in events if isinstance(event, Judged) and event.what == what]


def answer_verdict(outcome: Outcome | Reevaluation) -> Judged:
    """The verdict on the original answer."""
    (verdict,) = judged_in(outcome, "answer")
    return verdict


def numbers(outcome: Outcome | Reevaluation) -> list[tuple[str, float | None, float | None]]:
    """Name, value and threshold of every score of the verdict; the first one decided."""
    return [(one.name, one.value, one.threshold) for one in answer_verdict(outcome).scores]


def z_of(outcome: Outcome | Reevaluation) -> float | None:
    return numbers(outcome)[0][1]


def pairs(outcome: Outcome | Reevaluation) -> dict[tuple[str, int], tuple[float | None, str]]:
    """How each pair came out: (side, index) -> (hard, source)."""
    found = [event.detail for event in judged_in(outcome, "pair")]
    return {
        (one.side, one.index): (one.hard, one.source)
        for one in found
        if isinstance(one, PairCompared)
    }
