"""HAARAG's searching: query forms, retrieval confidence C_r, and the filter that makes the context.

Source: the HAARAG paper, steps 1 to 5. C_r is its mean over the k chunks retrieved, taken before
the filter. Ours where the paper is silent: a chunk is as near as it is to the question as asked, or
to a part of an answer; a rewording, read as Rowen's paraphrases are, only brings candidates, since
an invented one would be near to whatever it found. The context has room for more chunks the wider
the search is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import log2, sqrt
from statistics import fmean

from pipelines.aio import together
from pipelines.base import Passage
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.haarag.alignment import is_low
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.methods.replies.paraphrases import paraphrases_in
from pipelines.methods.writing import ask_list, found_for
from pipelines.prompts import load_prompts
from pipelines.retrieval.base import Matrix
from pipelines.retrieval.documents import indexed_text
from pipelines.retrieval.indexes import query_terms
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import ChunkOutcome, ChunkRated, RetrievalRated
from pipelines.run.scope import Scope


@dataclass(frozen=True)
class RetrievedPassages:
    """What all rounds of searching brought so far: the union over all queries.

    The first `forms` queries are forms of the question, the others parts of an answer. `to_queries`
    holds cosines [query][chunk], `between` those of the chunks, [chunk][chunk].
    """

    queries: tuple[str, ...]
    forms: int
    passages: tuple[Passage, ...] = ()
    to_queries: Matrix = ()
    between: Matrix = ()


@dataclass(frozen=True)
class Retrieval:
    """A round's chunks, best first, and what they say about it.

    `confidence` is C_r, the mean of the `counted` similarities; `spread` their standard deviation;
    `diversity` 1 - the mean cosine between those chunks. None where there is nothing to compute.
    `context` are the chunks to write from, best first; `fresh` says that one of them is new.
    """

    chunks: tuple[ChunkRated, ...] = ()
    counted: tuple[float, ...] = ()
    confidence: float | None = None
    spread: float | None = None
    diversity: float | None = None
    context: tuple[Passage, ...] = ()
    fresh: bool = False

    def is_low(self, tau_r: float | None) -> bool:
        """Return whether C_r < tau_r; never where one of the two is not known."""
        return is_low(self.confidence, tau_r)

    def scores(self, tau_r: float | None) -> tuple[Score, ...]:
        """Return C_r against its threshold, the similarities' spread, the chunks' diversity."""
        return (
            Score(
                name="retrieval_confidence",
                value=self.confidence,
                threshold=tau_r,
                flagged=self.is_low(tau_r),
                formula="haarag_retrieval",
                inputs=self.counted,
            ),
            Score(
                name="similarity_spread",
                value=self.spread,
                formula="haarag_spread",
                inputs=self.counted,
            ),
            Score(name="chunk_diversity", value=self.diversity, formula="haarag_diversity"),
        )


def rate(
    found: RetrievedPassages,
    settings: HaaragSettings,
    *,
    given: Set[str] = frozenset(),
    supporting: Set[str] = frozenset(),
    parts: int = 0,
    depth: int = 0,
) -> Retrieval:
    """Return C_r of what was found, and which chunks make the context: k, and half as many more for
    each time that `depth`, the chunks of a search, was doubled.

    Nothing is dropped before C_r is taken. For the context, `given` chunks are left out, which an
    earlier answer was written from, unless they are `supporting`, so that a sentence rests on them,
    or nearer than any new chunk: a passage on the question is not given up for one that is not.
    There is always room for a new chunk. Of the new ones, low and repeated ones are dropped. Both
    sets hold chunks as they were indexed. With `parts`, the sentences of a given text, there is
    room for one more chunk for each of them, up to the limit of a search.
    """
    most = max(settings.k, settings.k_limit)
    wider = settings.k * log2(max(1.0, depth / settings.k)) / 2
    room = min(settings.k + parts + int(wider), most)
    keys = [indexed_text(passage) for passage in found.passages]
    rows = (*found.to_queries[:1], *found.to_queries[found.forms :])
    columns = list(zip(*rows, strict=True))
    nearest = [max(column) for column in columns]
    order = sorted(range(len(keys)), key=lambda at: (-nearest[at], at))
    new = [at for at in order if keys[at] not in given]
    before = [at for at in order if keys[at] in given]
    best = nearest[new[0]] if new else 1.0
    floor = settings.min_similarity * max(0.0, best)
    stays = [at for at in before if keys[at] in supporting or nearest[at] > best]
    stays = stays[: room - 1]
    outcomes: dict[int, tuple[ChunkOutcome, int | None]] = dict.fromkeys(before, ("given", None))
    outcomes |= dict.fromkeys(stays, ("kept", None))
    kept = list(stays)
    for at in new:
        alike = (
            other
            for other in (*kept, *before)
            if found.between[at][other] >= settings.duplicate_similarity
        )
        twin = next(alike, None)
        if nearest[at] < floor:
            outcomes[at] = ("low", None)
        elif twin is not None:
            outcomes[at] = ("duplicate", twin)
        elif len(kept) == room:
            outcomes[at] = ("surplus", None)
        else:
            outcomes[at] = ("kept", None)
            kept.append(at)
    chunks = tuple(
        ChunkRated(
            id=found.passages[at].id,
            similarity=nearest[at],
            query=_query_of(columns[at].index(nearest[at]), found.forms),
            outcome=outcomes[at][0],
            like="" if (twin := outcomes[at][1]) is None else found.passages[twin].id,
        )
        for at in order
    )
    to_question = list(found.to_queries[0]) if found.to_queries else []
    counted = sorted(range(len(to_question)), key=lambda at: (-to_question[at], at))[: settings.k]
    if not counted:
        return Retrieval(chunks=chunks)
    similarities = tuple(to_question[at] for at in counted)
    mean = fmean(similarities)
    pairs = [found.between[one][two] for one in counted for two in counted if one < two]
    return Retrieval(
        chunks=chunks,
        counted=similarities,
        confidence=mean,
        spread=sqrt(fmean((value - mean) ** 2 for value in similarities)),
        diversity=1 - fmean(pairs) if pairs else None,
        context=tuple(found.passages[at] for at in order if outcomes[at][0] == "kept"),
        fresh=len(kept) > len(stays),
    )


def _query_of(row: int, forms: int) -> int:
    """Return which query a row of similarities is about: the question as asked, or a part."""
    return 0 if row == 0 else forms + row - 1


class ChunkSearch:
    """The queries so far and everything they found, round by round.

    `failed` says that some search failed, `all_failed` that every search of the last round did,
    and `reworded` is False where the model was asked for other forms of the question and failed;
    `span` is the step of the last round. `sentences` counts those of a given text, which have to
    find their evidence.
    """

    def __init__(
        self,
        question: Question,
        settings: HaaragSettings,
        tau_r: float | None,
        sentences: int = 0,
    ) -> None:
        self._sentences = sentences
        self.question = question
        self.settings = settings
        self.tau_r = tau_r
        self.failed = self.all_failed = False
        self.reworded = True
        self.span = ""
        self.can_rephrase = settings.rephrase == "widen"
        self._forms = [_normalised(question.query)]
        self._parts: list[str] = []
        # What each query found, and how many chunks it was asked for.
        self._found: dict[str, list[Passage]] = {}
        self._asked: dict[str, int] = {}
        if settings.key_terms:
            self._add(self._forms, " ".join(dict.fromkeys(query_terms(question.text))))

    async def round(
        self,
        step: Scope,
        depth: int,
        *,
        draft: int,
        parts: Sequence[str] = (),
        rephrase: bool = False,
        given: Set[str] = frozenset(),
        supporting: Set[str] = frozenset(),
    ) -> Retrieval:
        """Make one round: search, compare, rate, record. `parts` and rewordings are added as
        queries.

        `draft` is the one to be written from the context; for the rest see `rate`.
        """
        for part in parts:
            self._add(self._parts, part)
        ends: list[bool] = []
        searches = [self._search(step, one, depth, ends) for one in (*self._forms, *self._parts)]
        if rephrase:
            self.can_rephrase = False
            searches.append(self._reword(step, depth, ends))
        await together(*searches)
        self.all_failed = bool(ends) and not any(ends)
        self.span = step.id
        found = await self._compare(step)
        retrieval = rate(
            found,
            self.settings,
            given=given,
            supporting=supporting,
            parts=self._sentences,
            depth=depth,
        )
        verdict: Verdict = "doubtful" if retrieval.is_low(self.tau_r) else "supported"
        if self.tau_r is None or retrieval.confidence is None:
            verdict = "unchecked"
        step.judged(
            "retrieval",
            self.question.text,
            draft=draft,
            verdict=verdict,
            scores=retrieval.scores(self.tau_r),
            detail=RetrievalRated(
                depth=depth, queries=found.queries, forms=found.forms, chunks=retrieval.chunks
            ),
        )
        return retrieval

    async def _search(self, step: Scope, query: str, depth: int, ends: list[bool]) -> None:
        if self._asked.get(query, 0) >= depth:
            return
        found = await found_for(step, query, depth, dense=True)
        ends.append(found is not None)
        if found is None:
            self.failed = True
        else:
            self._found[query], self._asked[query] = found, depth

    async def _reword(self, step: Scope, depth: int, ends: list[bool]) -> None:
        """Ask the model for other forms of the question, and search for those that ask the same
        kind of thing in its language: what else it writes brings chunks about something else.
        """
        known, count = len(self._forms), self.settings.forms
        asked = load_prompts("haarag").turns(
            self.question.language, "rephrase", question=self.question.text, count=str(count)
        )
        try:
            async with step.span("rephrase") as asking:
                written = await ask_list(asking, asked, "questions", max_tokens=64 * count)
        except VeriscopeError:
            # The question is searched for as it is.
            self.reworded = False
            return
        usable, _ = paraphrases_in(written, self.question, self._forms)
        for form in usable[:count]:
            self._add(self._forms, _normalised(form))
        await together(*(self._search(step, form, depth, ends) for form in self._forms[known:]))

    def _add(self, queries: list[str], query: str) -> None:
        known = {other.casefold() for other in (*self._forms, *self._parts)}
        if query and query.casefold() not in known:
            queries.append(query)

    async def _compare(self, step: Scope) -> RetrievedPassages:
        queries, forms = (*self._forms, *self._parts), len(self._forms)
        union: dict[str, Passage] = {}
        for query in queries:
            for passage in self._found.get(query, ()):
                union.setdefault(indexed_text(passage), passage)
        chunks = tuple(union)
        if not chunks:
            return RetrievedPassages(queries, forms)
        rows = await step.similarities((*queries, *chunks), chunks, asked=len(queries))
        count = len(queries)
        return RetrievedPassages(queries, forms, tuple(union.values()), rows[:count], rows[count:])


def _normalised(text: str) -> str:
    """Return the text with composed characters and single spaces, as it is searched for."""
    return " ".join(unicodedata.normalize("NFC", text).split())
