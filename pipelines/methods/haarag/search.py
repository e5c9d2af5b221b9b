"""HAARAG's searching: query forms, searches side by side, the union of what they found."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Coroutine, Sequence
from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.haarag.rules import PROMPTS, retrieval_scores
from pipelines.methods.haarag.scores import Found, Retrieval, rate_retrieval
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.methods.replies.parsing import parse_list
from pipelines.retrieval.passages import indexed_text
from pipelines.retrieval.tokens import query_terms
from pipelines.run.events import Verdict
from pipelines.run.scope import Scope
from pipelines.types import Message, Passage

__all__ = ["ChunkSearch", "together"]

_QUESTIONS = {
    "type": "object",
    "properties": {"questions": {"type": "array", "items": {"type": "string"}}},
    "required": ["questions"],
    "additionalProperties": False,
}


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of it side by side; the first failure ends the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


class ChunkSearch:
    """The queries so far and everything they found, round by round."""

    def __init__(self, question: Question, settings: HaaragSettings) -> None:
        self.failed = False
        self.can_rephrase = settings.rephrase == "widen"
        self.queries = [normalised(question.text)]
        if settings.key_terms:
            self._add(" ".join(dict.fromkeys(query_terms(question.text))))
        self._question = question
        self._settings = settings
        self._found: dict[str, list[Passage]] = {}
        self._asked: dict[str, int] = {}

    async def round(
        self,
        step: Scope,
        depth: int,
        *,
        draft: int,
        tau_r: float | None,
        parts: Sequence[str] = (),
        rephrase: bool = False,
    ) -> Retrieval:
        """One round: search, compare, rate, record. `parts` and rewordings are added as queries."""
        for part in parts:
            self._add(part)
        ends: list[bool] = []
        searches = [self._search(step, query, depth, ends) for query in self.queries]
        if rephrase:
            self.can_rephrase = False
            searches.append(self._reword(step, depth, ends))
        await together(*searches)
        found = await self._compare(step, failed=bool(ends) and not any(ends))
        settings = self._settings
        retrieval = rate_retrieval(
            found,
            k=settings.k,
            min_similarity=settings.min_similarity,
            duplicate_similarity=settings.duplicate_similarity,
        )
        self._record(step, retrieval, tau_r, draft, depth)
        return retrieval

    async def _search(self, step: Scope, query: str, depth: int, ends: list[bool]) -> None:
        if self._asked.get(query, 0) >= depth:
            return
        try:
            self._found[query] = await step.search(query, depth, by_meaning=True)
        except VeriscopeError:
            self.failed = True
            ends.append(False)
        else:
            self._asked[query] = depth
            ends.append(True)

    async def _reword(self, step: Scope, depth: int, ends: list[bool]) -> None:
        """Ask the model for other forms of the question and search for them."""
        known = len(self.queries)
        count = self._settings.forms
        async with step.span("rephrase") as asking:
            prompt = PROMPTS.fill(
                self._question.language,
                "rephrase",
                question=self._question.text,
                count=str(count),
            )
            structured = asking.model().capabilities.structured_output
            request = asking.request(
                (Message(role="user", content=prompt),),
                max_tokens=64 * count,
                json_schema=_QUESTIONS if structured else None,
            )
            [written] = await asking.model().generate(request)
        for form in parse_list(written.text, limit=count):
            self._add(normalised(form))
        await together(*(self._search(step, form, depth, ends) for form in self.queries[known:]))

    def _add(self, query: str) -> None:
        known = {one.casefold() for one in self.queries}
        if query and query.casefold() not in known:
            self.queries.append(query)

    async def _compare(self, step: Scope, *, failed: bool) -> Found:
        queries = tuple(self.queries)
        union: dict[str, Passage] = {}
        for query in queries:
            for passage in self._found.get(query, ()):
                union.setdefault(indexed_text(passage), passage)
        chunks = tuple(union)
        if not chunks:
            return Found(queries=queries, failed=failed)
        rows = await step.similarities((*queries, *chunks), chunks)
        return Found(
            queries=queries,
            passages=tuple(union.values()),
            to_queries=rows[: len(queries)],
            between=rows[len(queries) :],
            failed=failed,
        )

    def _record(
        self, step: Scope, retrieval: Retrieval, tau_r: float | None, draft: int, depth: int
    ) -> None:
        scores = retrieval_scores(retrieval, tau_r)
        verdict: Verdict = "doubtful" if scores[0].flagged else "supported"
        if tau_r is None or retrieval.confidence is None:
            verdict = "unchecked"
        step.judged(
            what="retrieval",
            text=self._question.text,
            start=0,
            end=len(self._question.text),
            draft=draft,
            verdict=verdict,
            scores=scores,
            detail={
                "depth": depth,
                "queries": list(retrieval.queries),
                "chunks": [
                    {
                        "id": chunk.passage.id,
                        "similarity": chunk.similarity,
                        "query": chunk.query,
                        "outcome": chunk.outcome,
                        "like": chunk.like,
                    }
                    for chunk in retrieval.chunks
                ],
            },
        )


def normalised(text: str) -> str:
    """The text with composed characters and single spaces, as it is searched for."""
    return " ".join(unicodedata.normalize("NFC", text).split())
