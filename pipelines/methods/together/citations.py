"""Each sentence by the very source that it cites, not by whichever source is nearest (ours).

As with the citation precision of ALCE (Gao et al. 2023), a citation is right where its source alone
supports the sentence, or where the sentence's sources do so together and each of them is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from pipelines.aio import together
from pipelines.base import Passage
from pipelines.methods.base import Question
from pipelines.methods.baselines.shared import CheckedAnswer
from pipelines.methods.together.features import SentenceReadings
from pipelines.methods.together.verdict import TogetherFound, judged_together
from pipelines.methods.writing import found_for
from pipelines.retrieval.documents import source_number
from pipelines.retrieval.indexes import BM25Index
from pipelines.run.events import MAX_SOURCES, Score
from pipelines.run.findings import CitationJudged, CitationState
from pipelines.run.scope import Scope
from pipelines.text.citations import Citation, claim_in

Ask = Callable[[Scope, Sequence[Passage], str], Awaitable[SentenceReadings]]
"""Returns what the judges say of a claim by these passages."""


async def judge_citations(
    question: Question,
    scope: Scope,
    subject: CheckedAnswer,
    found: Sequence[TogetherFound],
    ask: Ask,
    score: Callable[[TogetherFound], Score],
    most: int,
) -> None:
    """Record a verdict on every citation of the given answer.

    `found` are the verdicts on its sentences by all sources, `most` the passages of a source that
    are read about a sentence.
    """
    given = scope.given
    if given is None or not given.citations:
        return
    by_sentence: dict[int, list[tuple[int, Citation]]] = {}
    for at, citation in enumerate(given.citations):
        by_sentence.setdefault(citation.sentence, []).append((at, citation))
    texts: dict[int, list[Passage]] = {}
    if any(one.source for one in given.citations):
        async with scope.span("retrieve") as step:
            # All of them, once: a nearer passage of another source is not what a sentence cites.
            for passage in await found_for(step, question.query, MAX_SOURCES) or []:
                texts.setdefault(source_number(passage), []).append(passage)
    check = _CitationCheck(question, scope, subject, found, ask, score, most, texts)
    await together(
        *(check.sentence(number, cited) for number, cited in sorted(by_sentence.items()))
    )


class _CitationCheck:
    def __init__(
        self,
        question: Question,
        scope: Scope,
        subject: CheckedAnswer,
        found: Sequence[TogetherFound],
        ask: Ask,
        score: Callable[[TogetherFound], Score],
        most: int,
        texts: Mapping[int, Sequence[Passage]],
    ) -> None:
        self._question, self._scope, self._subject = question, scope, subject
        self._found, self._ask, self._score, self._most = found, ask, score, most
        self._texts = texts

    async def sentence(self, number: int, cited: Sequence[tuple[int, Citation]]) -> None:
        """Record a verdict on each citation of one sentence."""
        if number >= len(self._subject.sentences):
            return
        given = self._scope.given
        assert given is not None
        claim = claim_in(self._subject.sentences[number], given.citations)
        sources = list(dict.fromkeys(one.source for _, one in cited if one.source))
        async with self._scope.span("judge_citation", sentence=number) as step:
            texts = {source: self._nearest(source, claim) for source in sources}
            alone = {source: await self._judged(step, claim, texts[source]) for source in sources}
            jointly = None
            if len(sources) > 1 and not any(one.verdict == "supported" for one in alone.values()):
                read = [passage for source in sources for passage in texts[source]]
                jointly = await self._judged(step, claim, read)
                if jointly.verdict != "supported":
                    jointly = None
            for at, citation in cited:
                own = alone.get(citation.source)
                self._record(step, at, citation, own, jointly, sources)

    def _nearest(self, source: int, claim: str) -> list[Passage]:
        """Return the passages of a source that share most with the claim."""
        passages = list(self._texts.get(source, ()))
        scores = BM25Index.build(one.text for one in passages).scores(claim) if passages else ()
        order = sorted(range(len(passages)), key=lambda at: (-scores[at], at))
        return [passages[at] for at in order[: self._most]]

    async def _judged(self, step: Scope, claim: str, passages: Sequence[Passage]) -> TogetherFound:
        said = await self._ask(step, passages, claim) if passages else SentenceReadings()
        (found,) = judged_together(
            [claim],
            [said],
            list(passages),
            "given",
            self._question.language,
            question="" if self._question.about else self._question.text,
            expected=True,
        )
        return found

    def _record(
        self,
        step: Scope,
        at: int,
        citation: Citation,
        own: TogetherFound | None,
        jointly: TogetherFound | None,
        sources: Sequence[int],
    ) -> None:
        state: CitationState = "source_missing"
        decided = own
        if own is not None:
            supported = own.verdict == "supported" or jointly is not None
            unjudged = own.verdict == "unchecked"
            state = "supported" if supported else "unchecked" if unjudged else "not_by_source"
            decided = jointly if jointly is not None else own
        detail = CitationJudged(
            citation=at,
            state=state,
            jointly=jointly is not None,
            elsewhere=self._elsewhere(citation, sources) if state == "not_by_source" else 0,
            evidence="" if own is None else own.evidence,
        )
        step.judged(
            "citation",
            citation.mark,
            start=citation.start,
            end=citation.end,
            sentence=citation.sentence,
            verdict="unchecked" if decided is None else decided.verdict,
            scores=() if decided is None else (self._score(decided),),
            detail=detail,
        )

    def _elsewhere(self, citation: Citation, sources: Sequence[int]) -> int:
        """Return the source that the sentence rests on by all sources, where it cites others."""
        whole = self._found[citation.sentence]
        other = source_number(whole.passage)
        return other if whole.verdict == "supported" and other not in sources else 0
