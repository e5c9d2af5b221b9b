"""HAARAG on cosines written by hand: a table of numbers instead of an embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.base import Passage
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.haarag import Haarag
from pipelines.models.base import Capabilities, Model
from pipelines.models.scripted import ScriptedModel
from pipelines.retrieval.base import Matrix, Retriever, Similarity
from pipelines.run.events import Judged, Score, SpanStarted
from pipelines.run.findings import ChunkRated, LoopEnded, RetrievalRated, SentenceAligned
from tests.scripted.bench import Outcome, Shelf, run_method

QUESTION = "Where was Clinton born?"

# Every cosine that is not in the table: unrelated, but not at right angles.
ELSE = 0.1

WRITES = Capabilities(languages=frozenset({"en", "zh"}), structured_output=True)

PAPER: Mapping[str, Any] = {"entailment_decides": False}
"""The paper's rule: an answer is aligned or not by C_a alone."""

Table = Mapping[tuple[str, str], float]
Found = Mapping[str, Sequence[str] | VeriscopeError]


class TableSimilarity(Similarity):
    """Cosines from a table of pairs of texts in either order; a text with itself has 1.

    A text with the question before it has the cosines of the text alone, unless it has its own.
    """

    languages = frozenset({"en", "zh"})

    def __init__(self, table: Table, name: str = "table", question: str = QUESTION) -> None:
        self.name = name
        self.question = question
        self.table = {frozenset(pair): value for pair, value in table.items()}
        self.seen: list[str] = []

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        self.seen += left
        return tuple(tuple(self._cosine(one, two) for two in right) for one in left)

    def _cosine(self, one: str, two: str) -> float:
        one, two = one.removeprefix("\n"), two.removeprefix("\n")
        if frozenset((one, two)) not in self.table and one.startswith(self.question):
            one = one.removeprefix(self.question).lstrip() or one
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
    table: Table | Similarity,
    *,
    question: str = QUESTION,
    embedder: str = "table",
    models: Mapping[str, Model] | None = None,
    **settings: Any,
) -> Outcome:
    """Run HAARAG with the main model's replies in order, on these searches and cosines."""
    settings = {**PAPER, **settings}
    model = (
        replies
        if isinstance(replies, Model)
        else ScriptedModel.from_replies(replies, capabilities=WRITES)
    )
    shelf = found if isinstance(found, Retriever) else Chunks(found)
    compared = (
        table if isinstance(table, Similarity) else TableSimilarity(table, embedder, question)
    )
    return await run_method(
        Haarag(),
        question,
        model,
        # The chosen search finds nothing: what is found comes from the search by meaning.
        shelf=Shelf(lambda _: []),
        dense=shelf,
        similarity=compared,
        models=models,
        **settings,
    )


def again(outcome: Outcome, **settings: Any) -> Reevaluation:
    """The recorded run with exactly these settings, and the paper's rule unless they say else."""
    settings = {**PAPER, **settings}
    return reevaluate(outcome.trace, outcome.method, outcome.method.settings(settings))


def replays(outcome: Outcome, **settings: Any) -> None:
    """Check that the record holds all that the run rests on: it goes the same way again."""
    replayed = again(outcome, **settings)
    assert replayed.diverges_at is None
    assert replayed.answer == outcome.answer
    assert told(replayed) == told(outcome)


def told(outcome: Outcome | Reevaluation) -> list[Any]:
    """The verdicts, with their scores, and why the run ended."""
    events = outcome.trace.of_method("haarag")
    verdicts = [
        (e.what, e.draft, e.text, e.verdict, e.detail, [(s.value, s.threshold) for s in e.scores])
        for e in events
        if isinstance(e, Judged)
    ]
    return [*verdicts, *(e.detail for e in events if isinstance(e, SpanStarted) and e.detail)][1:]


def stopped(outcome: Outcome) -> tuple[str, int]:
    """Why the loop ended, and which draft is the answer."""
    (end,) = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "conclude"]
    assert isinstance(end.detail, LoopEnded)
    assert end.at.draft is not None
    return end.detail.stopped, end.at.draft


def judged(outcome: Outcome, what: str) -> list[Judged]:
    return [event for event in outcome.events if isinstance(event, Judged) and event.what == what]


def score(event: Judged, name: str) -> Score:
    return next(score for score in event.scores if score.name == name)


def chunks_of(event: Judged) -> tuple[ChunkRated, ...]:
    assert isinstance(event.detail, RetrievalRated)
    return event.detail.chunks


def queries_of(event: Judged) -> tuple[str, ...]:
    assert isinstance(event.detail, RetrievalRated)
    return event.detail.queries


def aligned(event: Judged) -> SentenceAligned:
    assert isinstance(event.detail, SentenceAligned)
    return event.detail
