"""Rowen's repair: search with the paraphrases, then correct the answer from what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import fsum

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import is_refusal, visible
from pipelines.methods.rowen import asking
from pipelines.methods.rowen.check import together
from pipelines.methods.rowen.reading import cleaned
from pipelines.methods.rowen.settings import RowenSettings
from pipelines.run.scope import Scope
from pipelines.types import Generation, Passage

__all__ = ["fused", "repair", "retrieve"]

_RANK_SHIFT = 60
"""How little a difference in rank counts when rankings are fused (Cormack et al. 2009: 60)."""


async def retrieve(
    scope: Scope, question: Question, settings: RowenSettings, paraphrases: Sequence[str]
) -> tuple[list[Passage], list[tuple[bool, int]]]:
    """The best passages over all queries, and how every search went: (failed, passages found).

    The question stands in where there is no paraphrase. Failed searches are recorded as such.
    """
    asked: set[str] = set()
    outcomes: list[tuple[bool, int]] = []

    async def one(index: int, text: str) -> list[Passage]:
        query = text
        if settings.queries == "rewritten":
            async with step.span("query", index=index) as writing:
                query = await _query(writing, text, question) or text
        if query.casefold() in asked:
            return []
        asked.add(query.casefold())
        async with step.span("search", index=index) as searching:
            try:
                found = await searching.search(query, settings.passages)
            except VeriscopeError:
                outcomes.append((True, 0))
                return []
        outcomes.append((False, len(found)))
        return found

    async with scope.span("retrieve") as step:
        texts = paraphrases or [question.text]
        rankings = await together(*(one(index, text) for index, text in enumerate(texts)))
    return fused(rankings, settings.passages), outcomes


async def repair(
    scope: Scope,
    question: Question,
    reasoning: str,
    original: Generation,
    passages: Sequence[Passage],
) -> str | None:
    """The answer corrected from the passages, recorded as draft 1; None where nothing came."""
    async with scope.span("repair") as step:
        request = step.request(
            asking.repair_messages(question, reasoning, original.text, passages),
            max_tokens=asking.SHORT_TOKENS,
            logprobs=step.model().capabilities.logprobs,
        )
        written = cleaned(await step.write(request))
        if not written.text:
            return None
        step.revised(
            draft=1,
            before=original.text,
            after=written.text,
            start=0,
            reason="repaired",
            generation=written,
        )
    return written.text


def fused(rankings: Sequence[Sequence[Passage]], most: int) -> list[Passage]:
    """Several rankings as one, by reciprocal rank; of equals the one that stood highest.

    Which of two equal queries was asked first is chance: the order of `rankings` must not matter.
    """
    weights: dict[str, list[float]] = defaultdict(list)
    passages: dict[str, Passage] = {}
    for ranking in rankings:
        for place, passage in enumerate(ranking, start=1):
            passages.setdefault(passage.id, passage)
            weights[passage.id].append(1 / (_RANK_SHIFT + place))

    def order(id: str) -> tuple[float, float, str]:
        # fsum: the same sum whatever the order of its parts.
        return -fsum(weights[id]), -max(weights[id]), id

    return [passages[id] for id in sorted(passages, key=order)[:most]]


async def _query(step: Scope, text: str, question: Question) -> str:
    """A query for `text`; "" where none was written, and the text itself has to do."""
    request = step.request(
        asking.query_messages(text, question.language), max_tokens=asking.SHORT_TOKENS
    )
    try:
        (written,) = await step.model().generate(request)
    except VeriscopeError:
        return ""
    query = " ".join(visible(written.text).split())
    return "" if is_refusal(query) else query
