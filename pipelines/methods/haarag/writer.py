"""One run of HAARAG: retrieve, widen, filter, write, align, refine, write again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.checkers import checker
from pipelines.methods.drafts import grounded_messages
from pipelines.methods.haarag.record import mean_yes, placed
from pipelines.methods.haarag.rules import (
    PROMPTS,
    Status,
    Thresholds,
    alignment_score,
    answer_of,
    headline,
    held_against,
    plan_refinement,
    says_nothing,
    sentence_scores,
    sentence_verdict,
    status_of,
    verdict_of,
    wants_widening,
)
from pipelines.methods.haarag.scores import Alignment, Compared, Retrieval, align
from pipelines.methods.haarag.search import ChunkSearch, together
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.methods.replies.parsing import visible
from pipelines.methods.slm.judging import judge_sentence, probability_of_yes
from pipelines.retrieval.passages import indexed_text
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.text import Span, split_sentences
from pipelines.types import Answer, Generation, Passage

__all__ = ["HaaragWriter"]


class HaaragWriter:
    """Carries out one run."""

    def __init__(self, question: Question, scope: Scope, settings: HaaragSettings) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.thresholds = Thresholds.of(settings, scope.embedder, question.language)
        self.search = ChunkSearch(question, settings)
        self.drafts: list[str] = []
        self.judges = self._judges()

    async def write(self) -> Answer:
        """Answer the question from its library, in as many iterations as it takes.

        Raises InvalidInputError when the answer to align was to be given, and is not there.
        """
        if self.settings.subject == "given" and not self.settings.answer.strip():
            raise InvalidInputError(
                "There is no answer to align.",
                remedy="Write it into the method's settings, or let one be written.",
            )
        retrieval, depth = await self._retrieve()
        context, held = retrieval.context, retrieval.holds
        if not context:
            return await self._nothing()
        while True:
            number = len(self.drafts)
            self.drafts.append(await self._draft(number, context))
            alignment, status = await self._align(number, context)
            plan = plan_refinement(
                alignment,
                status,
                self.thresholds.tau_a,
                queries=self.search.queries,
                can_rephrase=self.search.can_rephrase,
            )
            if plan is None or number + 1 >= self.settings.max_iterations:
                return self._answer(status)
            async with self.scope.span(
                "refine", draft=number, depth=depth, **plan.model_dump(mode="json")
            ) as step:
                retrieval = await self.search.round(
                    step,
                    depth,
                    draft=number + 1,
                    # The answer's own words are among the queries now: no C_r in the paper's sense.
                    tau_r=None,
                    parts=plan.parts,
                    rephrase=plan.rephrase,
                )
            if retrieval.holds == held:
                return self._answer(status)
            context, held = retrieval.context, retrieval.holds

    async def _retrieve(self) -> tuple[Retrieval, int]:
        """The first round, and wider ones for as long as C_r is too low; with the last depth."""
        settings = self.settings
        depths = settings.depths()
        retrieval = Retrieval(queries=())
        for number, depth in enumerate(depths):
            when = "widen" if number == 1 else "always" if number == 0 else None
            async with self.scope.span("retrieve", round=number, depth=depth) as step:
                retrieval = await self.search.round(
                    step,
                    depth,
                    draft=0,
                    tau_r=self.thresholds.tau_r,
                    rephrase=settings.rephrase == when,
                )
            if not wants_widening(retrieval, self.thresholds.tau_r):
                return retrieval, depth
        return retrieval, depths[-1]

    async def _draft(self, number: int, context: Sequence[Passage]) -> str:
        async with self.scope.span("draft", draft=number) as step:
            if number == 0 and self.settings.subject == "given":
                given = Generation(text=self.settings.answer.strip())
                self._revise(step, number, given)
                return given.text
            request = step.request(
                grounded_messages(PROMPTS, self.question, context),
                max_tokens=self.settings.max_tokens,
                logprobs=step.model().capabilities.logprobs,
            )
            generation = shown_generation(await step.write(request))
            self._revise(step, number, generation)
        return generation.text

    async def _nothing(self) -> Answer:
        """Say that nothing was found: an answer from memory would not be grounded."""
        text = PROMPTS.fill(self.question.language, "nothing")
        async with self.scope.span("draft", draft=0) as step:
            self._revise(step, 0, Generation(text=text))
            step.judged(
                what="answer",
                text=text,
                start=0,
                end=len(text),
                verdict="unchecked",
                scores=(alignment_score(Alignment(text=text), self.thresholds.tau_a),),
            )
        self.drafts.append(text)
        return self._answer("insufficient", found=False)

    async def _align(self, number: int, context: Sequence[Passage]) -> tuple[Alignment, Status]:
        """C_a of the draft, each sentence's nearest evidence, and the judges' opinion."""
        text = self.drafts[number]
        sentences = split_sentences(text)
        async with self.scope.span(
            "align",
            draft=number,
            sentences=len(sentences),
            chunks=len(context),
            weak=self._weak,
        ) as step:
            compared = Compared(text=text)
            if text.strip():
                compared = await self._compare(step, text, sentences, context)
            alignment = align(compared)
            status = status_of(alignment, self.thresholds.tau_a)
            self._record(step, number, alignment, status)
        return alignment, status

    async def _compare(
        self, step: Scope, text: str, sentences: Sequence[Span], context: Sequence[Passage]
    ) -> Compared:
        chunks = tuple(indexed_text(passage) for passage in context)
        evidence = tuple(
            dict.fromkeys(span.text for one in context for span in split_sentences(one.text))
        )
        left = (text, *(span.text for span in sentences), *chunks)
        cosines: list[tuple[tuple[float, ...], ...]] = []
        entailed: list[float | None] = [None] * len(sentences)

        async def compare() -> None:
            cosines.append(await step.similarities(left, (*chunks, *evidence)))

        async def judge(at: int) -> None:
            entailed[at] = await self._entailment(step, at, sentences[at].text, context)

        judging = bool(self.judges) and not says_nothing(text)
        await together(compare(), *(judge(at) for at in range(len(sentences)) if judging))
        count, own = len(chunks), cosines[0][: 1 + len(sentences)]
        return Compared(
            text=text,
            sentences=tuple(sentences),
            passages=tuple(context),
            evidence=placed(evidence, context),
            to_chunks=tuple(row[:count] for row in own),
            to_evidence=tuple(row[count:] for row in own),
            between=tuple(row[:count] for row in cosines[0][1 + len(sentences) :]),
            entailed=tuple(entailed) if judging else (),
        )

    async def _entailment(
        self, step: Scope, at: int, sentence: str, context: Sequence[Passage]
    ) -> float | None:
        """The judges' mean P(yes) for one sentence."""
        values: dict[str, float | None] = {}
        async with step.span("entail", sentence=at) as asking:

            async def ask(role: str) -> None:
                try:
                    choice = await judge_sentence(
                        asking,
                        role,
                        self.question.text,
                        context,
                        sentence,
                        self.question.language,
                    )
                except VeriscopeError:
                    # Recorded with the call: a judge that fails leaves the others their say.
                    return
                values[role] = probability_of_yes(choice)

            await together(*(ask(role) for role in self.judges))
        return mean_yes(list(values.values()))

    def _record(self, step: Scope, number: int, alignment: Alignment, status: Status) -> None:
        tau_a = self.thresholds.tau_a
        text = alignment.text
        whole: dict[str, Any] = {"text": text, "start": 0, "end": len(text), "draft": number}
        whole["verdict"] = verdict_of(status)
        step.judged(
            what="alignment",
            scores=(alignment_score(alignment, held_against(status, tau_a)),),
            detail={"status": status},
            **whole,
        )
        for place, sentence in enumerate(alignment.sentences):
            if status == "insufficient":
                break
            evidence = sentence.evidence
            where = sentence.evidence_passage
            step.judged(
                what="sentence",
                text=sentence.span.text,
                start=sentence.span.start,
                end=sentence.span.end,
                draft=number,
                sentence=place,
                verdict=sentence_verdict(sentence, tau_a),
                scores=sentence_scores(sentence, tau_a),
                detail={
                    "chunk": sentence.passage.id,
                    "evidence": evidence.text if evidence else "",
                    "evidence_chunk": where.id if where else "",
                    "start": evidence.start if evidence else 0,
                    "end": evidence.end if evidence else 0,
                },
            )
        if number == 0:
            step.judged(what="answer", scores=(headline(alignment, status, tau_a),), **whole)

    def _judges(self) -> list[str]:
        """The roles that judge, one for each model; the main model stands in for all judges.

        A judge of its own is not replaced: where there is none, nobody is asked.
        """
        if self.settings.entailment == "off":
            return []
        if self.settings.entailment == "main":
            return ["main"]
        if self.settings.entailment == "judge":
            role = checker(self.scope, {self.question.language}, "judge")
            return [] if role == "main" else [role]
        roles: list[str] = []
        for role in JUDGES:
            twice = any(self.scope.same_model(role, other) for other in roles)
            if self.scope.has_model(role) and not twice:
                roles.append(role)
        return roles or ["main"]

    @property
    def _weak(self) -> bool:
        return any(not self.scope.model(role).capabilities.judges for role in self.judges)

    def _revise(self, step: Scope, number: int, generation: Generation) -> None:
        step.revised(
            draft=number,
            before=self.drafts[-1] if self.drafts else "",
            after=generation.text,
            start=0,
            reason="refined" if number else "original",
            generation=generation,
        )

    def _answer(self, status: Status, *, found: bool = True) -> Answer:
        return answer_of(
            self.drafts[0],
            self.drafts[-1],
            status,
            found=found,
            failed=self.search.failed,
            weak=found and self._weak,
        )


def shown_generation(generation: Generation) -> Generation:
    """The generation without thinking or wrapping; tokens only where they still fit the text."""
    text = visible(generation.text)
    if text == generation.text:
        return generation
    return generation.model_copy(update={"text": text, "tokens": None})
