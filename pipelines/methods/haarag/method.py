"""HAARAG: hallucination-aware adaptive retrieval-augmented generation.

Retrieval is widened while its confidence C_r is low; the answer, written from the filtered context
alone, is refined while its alignment C_a with that context is low.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import fsum

from pipelines.aio import both, together
from pipelines.base import Answer, Generation, Passage
from pipelines.errors import VeriscopeError, failure
from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question, Stage
from pipelines.methods.haarag.alignment import (
    NOTHING,
    Alignment,
    AlignmentRules,
    DraftComparison,
    claims_something,
    says_nothing,
)
from pipelines.methods.haarag.retrieval import ChunkSearch, Retrieval
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.methods.replies.statements import states_nothing
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.slm.method import judge_sentence, probability_of_yes, taught_judges
from pipelines.methods.writing import first_draft, grounded_messages, write_draft
from pipelines.prompts import load_prompts
from pipelines.retrieval.documents import indexed_text
from pipelines.run.events import JUDGES, Verdict
from pipelines.run.findings import (
    AlignmentRated,
    AlignmentStarted,
    DraftStatus,
    LoopEnd,
    LoopEnded,
    SearchRound,
    SentenceAligned,
)
from pipelines.run.scope import Scope
from pipelines.text import split_sentences


class Haarag(Method[HaaragSettings]):
    """Retrieval confidence before writing, evidence alignment after it."""

    name = "haarag"
    page = "grounding"
    grounded = True
    roles = JUDGES
    effort = 5
    starts_from = "rag"
    checks = "text"
    settings_type = HaaragSettings
    flow = (
        Stage("rephrase", optional=True),
        Stage("retrieve"),
        Stage("draft", ("nearest",), repeats=True),
        Stage("align", repeats=True),
        Stage("entail", optional=True, repeats=True),
        Stage("refine", optional=True, repeats=True),
        Stage("conclude"),
    )
    prompts = (load_prompts("haarag"), load_prompts("slm"), nearest.PROMPTS)

    def needs(self, settings: HaaragSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: HaaragSettings) -> Answer:
        """Answer the question from its library, in as many iterations as it takes.

        Raises InvalidInputError when the answer to align was to be given, and is not there.
        """
        if settings.subject == "given" and not settings.answer.strip():
            raise failure("methods.nothing_to_align")
        return await _Loop(question, scope, settings).run()


class _Loop:
    """One run: retrieve, widen, filter, write, align, refine, write again."""

    def __init__(self, question: Question, scope: Scope, settings: HaaragSettings) -> None:
        tau_a = settings.threshold("tau_a", scope.embedder, question.language)
        self.question = question
        self.scope = scope
        self.settings = settings
        self.tau_r = settings.threshold("tau_r", scope.embedder, question.language)
        self.judges = _judges(scope, question, settings)
        decides = settings.entailment_decides
        self.rules = AlignmentRules(tau_a, decides and bool(self.judges), floored=decides)
        given = scope.given
        # Every sentence of a given text has to find what it could rest on.
        self.parts = [] if given is None else [span.text for span in split_sentences(given.text)]
        self.search = ChunkSearch(question, settings, self.tau_r, len(self.parts))
        self.checks = settings.subject == "given" or scope.given is not None
        self.drafts: list[str] = []
        # What the nearest sentence made of each draft; None where the model wrote from the context.
        self.corrections: list[nearest.Correction | None] = []
        self.alignments: list[Alignment] = []
        # Whether a judge was read by its words, because it gave no probabilities.
        self.by_text = False
        self.weak = any(not scope.model(role).capabilities.judges for role in self.judges)

    async def run(self) -> Answer:
        """Carry it out, to the answer."""
        retrieval, depth = await self._retrieve()
        if not retrieval.context:
            return await self._nothing()
        given: set[str] = set()
        while True:
            number = len(self.drafts)
            given |= {indexed_text(passage) for passage in retrieval.context}
            await self._draft(number, retrieval.context)
            status = await self._align(number, retrieval)
            if self._quotation(number):
                await self._quote(number, retrieval)
                return await self._end("corrected", number + 1, retrieval)
            if status in ("supported", "aligned", "unchecked"):
                stopped = "unchecked" if status == "unchecked" else "aligned"
                return await self._end(stopped, number, retrieval)
            if self.scope.given is not None or number + 1 >= self.settings.max_iterations:
                return await self._end("iterations", self._best_aligned(), retrieval)
            depth = max(depth, min(2 * depth, self.settings.k_limit))
            retrieval = await self._refine(number, depth, status, given)
            if not retrieval.fresh:
                return await self._end("nothing_new", self._best_aligned(), retrieval)

    async def _retrieve(self) -> tuple[Retrieval, int]:
        """Return the first round, and wider ones for as long as C_r is too low; with the
        last depth.

        k doubles up to its limit. Where it cannot grow, rewording the question is still worth a
        second round. Searches that all failed are not made again.
        """
        settings, depth, number = self.settings, self.settings.k, 0
        while True:
            rephrase = settings.rephrase == ("always" if number == 0 else "widen")
            rephrase = rephrase and number <= 1
            async with self.scope.span(
                "retrieve", round=number, detail=SearchRound(depth=depth, rephrase=rephrase)
            ) as step:
                retrieval = await self.search.round(
                    step, depth, draft=0, parts=self.parts, rephrase=rephrase
                )
            deeper = min(2 * depth, settings.k_limit)
            last = deeper <= depth and not (number == 0 and self.search.can_rephrase)
            enough = retrieval.confidence is not None and not retrieval.is_low(self.tau_r)
            if enough or last or self.search.all_failed:
                return retrieval, depth
            depth, number = max(depth, deeper), number + 1

    async def _refine(
        self, number: int, depth: int, status: DraftStatus, given: Set[str]
    ) -> Retrieval:
        """Search for what draft `number` lacks, among what no draft was written from.

        A draft that claims nothing has no parts to search for: the question is reworded instead.
        """
        alignment = self.alignments[number]
        parts = alignment.doubted(self.rules) if status in ("doubtful", "not_aligned") else ()
        rephrase = not parts and self.search.can_rephrase
        async with self.scope.span(
            "refine",
            draft=number,
            detail=SearchRound(depth=depth, parts=parts, rephrase=rephrase),
        ) as step:
            return await self.search.round(
                step,
                depth,
                draft=number + 1,
                parts=parts,
                rephrase=rephrase,
                given=given,
                supporting=alignment.supporting(self.rules),
            )

    async def _draft(self, number: int, context: Sequence[Passage]) -> None:
        correction = None
        async with self.scope.span("draft", draft=number) as step:
            if number == 0 and self.checks:
                given = step.given.text if step.given is not None else self.settings.answer
                generation = Generation(text=given.strip())
            elif nearest.takes_sentence(step, self.settings.wording):
                correction = await nearest.correct(step, self.question, context)
                # Where no sentence is near, a weak model would write an answer all the same.
                text = correction.shortened or correction.text or self._says("insufficient")
                generation = Generation(text=text)
            else:
                asked = grounded_messages(Haarag.prompts[0], self.question, context)
                # Where an earlier draft is there, an empty one is only no better.
                write = write_draft if number else first_draft
                generation = await write(step, asked, self.settings.max_tokens)
            step.revised(
                generation,
                draft=number,
                before=self.drafts[-1] if self.drafts else "",
                reason="refined" if number else "original",
            )
        self.drafts.append(generation.text)
        self.corrections.append(correction)

    def _quotation(self, number: int) -> str:
        """Return what takes the place of a draft that the judge did not find supported by its
        sentence.

        "" where the draft stays.
        """
        correction = self.corrections[number]
        text = "" if correction is None else correction.text
        return "" if text == self.drafts[number] else text

    async def _quote(self, number: int, retrieval: Retrieval) -> None:
        """Put the sentence itself in the place of draft `number`, which was written from it."""
        text = self._quotation(number)
        async with self.scope.span("draft", draft=number + 1) as step:
            step.revised(
                Generation(text=text), draft=number + 1, before=self.drafts[number], reason="quoted"
            )
        self.drafts.append(text)
        self.corrections.append(self.corrections[number])
        await self._align(number + 1, retrieval)

    def _says(self, key: str) -> str:
        return Haarag.prompts[0].fill(self.question.language, key)

    async def _nothing(self) -> Answer:
        """Say that nothing was found: an answer from memory would not be grounded."""
        # A given text stays, whatever is found.
        text = self._says("nothing") if self.scope.given is None else self.scope.given.text.strip()
        self.drafts.append(text)
        self.corrections.append(None)
        self.alignments.append(Alignment(text))
        async with self.scope.span("draft", draft=0) as step:
            step.revised(Generation(text=text))
            scores = (self.alignments[0].score(self.rules),)
            step.judged("answer", text, verdict="unchecked", scores=scores)
        return await self._end("nothing_found", 0, Retrieval())

    async def _align(self, number: int, retrieval: Retrieval) -> DraftStatus:
        """Return C_a of the draft, each sentence's nearest evidence, and the judges' opinion."""
        text, language = self.drafts[number], self.question.language
        # Where nobody knows what was asked, the text stands for itself.
        asked = "" if self.question.about else self.question.text
        comparison = DraftComparison(asked, text, retrieval.context, language)
        detail = AlignmentStarted(
            sentences=len(comparison.sentences), chunks=len(retrieval.context), weak=self.weak
        )
        async with self.scope.span("align", draft=number, detail=detail) as step:
            nothing = states_nothing(text, self.question) and not says_nothing(text)
            alignment = Alignment(text, nothing=nothing)
            status = alignment.status(self.rules)
            if status not in NOTHING:
                read = self._read(number, retrieval)
                opinions = (
                    self._entailment(step, at, span.text, read)
                    for at, span in enumerate(comparison.sentences)
                )
                cosines, entailed = await both(
                    step.similarities(comparison.left, comparison.right), together(*opinions)
                )
                correction = self.corrections[number]
                taken = correction is not None and correction.changes and correction.text == text
                alignment = comparison.align(cosines, entailed, taken=taken)
                status = alignment.status(self.rules)
            self.alignments.append(alignment)
            self._record(step, number, retrieval)
        return status

    def _read(self, number: int, retrieval: Retrieval) -> Sequence[Passage]:
        """Return what the judges read about draft `number`: the sentence that it was written from,
        else the whole context, in which a judge of this size loses a "he" from sight (ours).
        """
        correction = self.corrections[number]
        source = correction.source if correction is not None else None
        return retrieval.context if source is None else (source,)

    async def _entailment(
        self, step: Scope, at: int, sentence: str, context: Sequence[Passage]
    ) -> float | None:
        """Return the judges' mean P(yes) for one sentence; None where none of them said yes or no.

        Nobody is asked about a sentence that only says that the context does not suffice.
        """
        if not self.judges or not claims_something(sentence):
            return None
        async with step.span("entail", sentence=at) as asking:

            async def ask(role: str) -> float | None:
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
                    # Recorded with the call: the other judges still count.
                    return None
                self.by_text = self.by_text or choice.source == "text"
                return probability_of_yes(choice)

            said = await together(*(ask(role) for role in self.judges))
        known = [value for value in said if value is not None]
        return fsum(known) / len(known) if known else None

    def _record(self, step: Scope, number: int, retrieval: Retrieval) -> None:
        alignment, rules = self.alignments[number], self.rules
        status, low = alignment.status(rules), retrieval.is_low(self.tau_r)
        verdict: Verdict = "unchecked" if status in NOTHING else status
        deciding = alignment.deciding_score(rules)
        if self._quotation(number) and verdict != "not_aligned":
            verdict = "doubtful"
            correction = self.corrections[number]
            deciding = (correction and correction.doubt) or deciding
        if verdict in ("supported", "aligned") and low:
            verdict = "not_enough"
            confidence = retrieval.scores(self.tau_r)[0]
            deciding = confidence.model_copy(update={"behind": (self.search.span,)})
        step.judged(
            "alignment",
            alignment.text,
            draft=number,
            verdict=verdict,
            scores=alignment.scores(rules),
            detail=AlignmentRated(
                status=status,
                low_retrieval=low,
                judged=rules.judges_decide,
                nothing_added=alignment.adds_nothing(rules),
            ),
        )
        for at, sentence in enumerate(alignment.sentences):
            passage, evidence, _ = sentence.evidence or (None, None, 0.0)
            step.judged(
                "sentence",
                sentence.span.text,
                start=sentence.span.start,
                draft=number,
                sentence=at,
                verdict=sentence.verdict(rules),
                scores=sentence.scores(rules),
                detail=SentenceAligned(
                    chunk=sentence.passage.id,
                    evidence=evidence.text if evidence else "",
                    evidence_chunk=passage.id if passage else "",
                    start=evidence.start if evidence else 0,
                    end=evidence.end if evidence else 0,
                    judged=rules.judges_decide,
                    claims=sentence.claims,
                ),
            )
        if number == 0:
            step.judged("answer", alignment.text, verdict=verdict, scores=(deciding,))

    def _best_aligned(self) -> int:
        """Return which draft is the answer where none aligns (ours): the one with the highest C_a.

        The last one was written from what was left to give, and need not be the best one. An
        original that says that the context does not suffice is not replaced by a doubtful claim.
        """
        if self.alignments[0].status(self.rules) == "insufficient":
            return 0
        values = [alignment.value for alignment in self.alignments]
        return max(
            range(len(values)), key=lambda at: (values[at] is not None, values[at] or 0.0, at)
        )

    async def _end(self, stopped: LoopEnd, number: int, retrieval: Retrieval) -> Answer:
        """Record why the loop ended, and the answer: draft `number` with its remarks."""
        async with self.scope.span("conclude", draft=number, detail=LoopEnded(stopped=stopped)):
            pass
        found = stopped != "nothing_found"
        correction = self.corrections[number]
        alignment = self.alignments[number]
        status = alignment.status(self.rules)
        nothing = alignment.adds_nothing(self.rules)
        flags = {
            "nothing_found": not found,
            "search_incomplete": self.search.failed,
            "not_reworded": not self.search.reworded,
            "insufficient_context": found and status == "insufficient",
            "states_nothing": found and status == "nothing",
            "low_retrieval": found and retrieval.is_low(self.tau_r),
            "unreliable": found and status in ("doubtful", "not_aligned"),
            "weak_judge": found and self.rules.judges_decide and self.weak,
            "judge_by_text": self.by_text,
            "nothing_added": found and status == "unchecked" and nothing,
            "not_checked": found and status == "unchecked" and not nothing,
        }
        told = [name for name, holds in flags.items() if holds]
        return Answer(
            text=self.drafts[number],
            original=self.drafts[0],
            abstained=self.scope.given is None and (not found or status == "insufficient"),
            flags=(*told, *(() if correction is None else (correction.flag,))),
        )


def _judges(scope: Scope, question: Question, settings: HaaragSettings) -> list[str]:
    """Return the roles that judge, one for each model; the main model stands in for all judges.

    A judge made for it is not replaced: where there is none, nobody is asked.
    """
    match settings.entailment:
        case "off":
            return []
        case "main":
            return ["main"]
        case "judge":
            role = checker(scope, {question.language}, "judge")
            made = [role] if role != "main" else taught_judges(scope, question.language)
            return made[:1]
        case "judges":
            roles = [role for role in JUDGES if scope.has_model(role)]
            once = [
                role
                for number, role in enumerate(roles)
                if not any(scope.same_model(role, other) for other in roles[:number])
            ]
            return once or ["main"]
