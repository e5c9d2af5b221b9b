"""Detect-and-Mitigate: improbable concepts are validated by search and repaired while writing.

Source: Varshney et al. 2023 ("A stitch in time saves nine: Detecting and mitigating hallucinations
of LLMs by validating low-confidence generation", arXiv 2307.03987). For one sentence after the
other, the model lists its key concepts; the score of a concept is the least probability of its
tokens; a concept below a threshold is validated: the model asks a question about it, the question
is searched for, and the evidence decides. What it contradicts is repaired from the evidence, and
the model goes on from the repaired sentence. The concepts of a sentence are validated at the same
time and repaired at once (ours; paper: one after the other).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Generation, Passage
from pipelines.methods import nearest
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.baselines.shared import (
    EvidenceVerdict,
    SentenceReading,
    SentenceRun,
    asks,
    listed,
    query_of,
    read_evidence,
    read_sentences,
    same_words,
    scored,
    weak_judge,
    written_anew,
)
from pipelines.methods.deciding import PartCounts, decide
from pipelines.methods.ever.concepts import concepts_in
from pipelines.methods.replies.lists import echoes
from pipelines.methods.replies.verdicts import CheckedBy, checker
from pipelines.methods.subjects import passages_about
from pipelines.methods.writing import appended, cut, distinct
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Verdict
from pipelines.run.scope import Scope
from pipelines.text import Span, changes_to_chinese, split_sentences

PROMPTS = load_prompts("detect_and_mitigate")

# Enough for a list of names, and for one question (ours).
_CONCEPT_TOKENS, _QUESTION_TOKENS = 128, 64


class DetectAndMitigateSettings(Settings):
    """Settings of Detect-and-Mitigate: which concepts are validated, by what, and by whom."""

    REPLAYABLE = ("threshold",)

    threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="A concept is validated below this probability of its least probable token"
        " (ours: 0.5; the paper leaves it to how many concepts shall be validated).",
    )
    concepts: int = Field(
        5, ge=1, le=20, description="Maximum concepts of a sentence (the paper sets none; ours: 5)."
    )
    passages: int = Field(
        3, ge=1, le=20, description="Passages for each question (paper: a web search; ours: 3)."
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who decides by the evidence (paper: the model; ours: a judge where the model"
        " is known to judge no better than chance).",
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


class DetectAndMitigate(Method[DetectAndMitigateSettings]):
    """Improbable concepts, validated by search and repaired before the model goes on."""

    name = "detect_and_mitigate"
    page = "baselines"
    baseline = True
    effort = 8
    starts_from = "direct"
    roles = ("proxy", *JUDGES)
    settings_type = DetectAndMitigateSettings
    flow = (
        Stage("draft"),
        Stage("extract", repeats=True),
        Stage("query", optional=True, repeats=True),
        Stage("search", optional=True, repeats=True),
        Stage("verify", optional=True, repeats=True),
        Stage("correct", ("nearest",), optional=True, repeats=True),
    )
    prompts = (PROMPTS, load_prompts("drad"), load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: DetectAndMitigateSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"), Need(reason="logprobs"))

    async def run(
        self, question: Question, scope: Scope, settings: DetectAndMitigateSettings
    ) -> Answer:
        return await _DetectAndMitigateRun(question, scope, settings).answer()


@dataclass(frozen=True)
class _Concept:
    """A concept of the draft, with the probabilities of its tokens, each in [0, 1]."""

    span: Span
    probabilities: tuple[float, ...]

    @property
    def score(self) -> float | None:
        """The least of them; None where none was measured."""
        return min(self.probabilities, default=None)


class _DetectAndMitigateRun(SentenceRun[DetectAndMitigateSettings]):
    """One run: the verdicts on the concepts of the original, as far as it was read."""

    def __init__(
        self, question: Question, scope: Scope, settings: DetectAndMitigateSettings
    ) -> None:
        super().__init__(question, scope, settings)
        self.role = checker(scope, {question.language}, settings.checked_by)
        self.verdicts: list[Verdict] = []
        # Concepts of the original that were never asked about.
        self.dropped = 0

    async def answer(self) -> Answer:
        """Return the text, each of its sentences validated before the next one is read."""
        generation = await self.measured_draft()
        original, at = generation.text, 0
        if echoes(original, self.question):
            self.flag("question_repeated")
            at = len(original)
        else:
            self.flag("weak_judge", when=weak_judge(self.scope, self.role))
        while at < len(generation.text):
            readings = read_sentences(generation, SentenceReading)
            sentence = next((one for one in readings if one.start >= at), None)
            if sentence is None:
                break
            at = sentence.end
            evidence = await self._contradicting(sentence)
            if evidence:
                revised, at = await self._repaired(generation, sentence, evidence)
                generation = revised or generation
        self._conclude(original)
        return Answer(text=generation.text, original=original, flags=tuple(self.flags))

    async def _contradicting(self, sentence: SentenceReading) -> tuple[Passage, ...]:
        """Return the passages that contradict a concept of the sentence, each once."""
        draft = len(self.scope.drafts) - 1
        if not sentence.probabilities:
            self.flag("not_checked")
            self.dropped += draft == 0
            return ()
        async with self.scope.span("extract", draft=draft, sentence=sentence.number) as step:
            concepts = await self._concepts(step, sentence)
            scores = [
                scored(
                    "concept_probability",
                    one.score,
                    bad="below",
                    threshold=self.settings.threshold,
                    formula="flare.minimum",
                    inputs=one.probabilities,
                )
                for one in concepts
            ]
            for one, score in zip(concepts, scores, strict=True):
                step.judged(
                    "entity",
                    one.span.text,
                    verdict="doubtful" if score.flagged else "confident",
                    start=sentence.start + one.span.start,
                    end=sentence.start + one.span.end,
                    draft=draft,
                    sentence=sentence.number,
                    scores=(score,),
                )
        doubtful = [c for c, score in zip(concepts, scores, strict=True) if score.flagged]
        found: list[tuple[Verdict, list[Passage]]] = await together(
            *(self._validated(number, one, sentence) for number, one in enumerate(doubtful))
        )
        if draft == 0:
            self.verdicts.extend("confident" for _ in range(len(concepts) - len(doubtful)))
            self.verdicts.extend(verdict for verdict, _ in found)
        self.flag("checks_incomplete", when=any(verdict == "unchecked" for verdict, _ in found))
        return distinct(
            passage
            for verdict, passages in found
            for passage in passages
            if verdict == "contradicted"
        )

    async def _concepts(self, step: Scope, sentence: SentenceReading) -> list[_Concept]:
        """Return the measured concepts of a sentence; a weak model's are its named
        entities (ours).
        """
        names: list[str] = []
        if not step.model().capabilities.weak:
            asked = PROMPTS.turns(
                self.question.language,
                "concepts",
                question=self.question.text,
                sentence=sentence.text,
                count=str(self.settings.concepts),
            )
            names = await listed(step, asked, "concepts", max_tokens=_CONCEPT_TOKENS)
            # What an empty list leaves out is not known.
            self._drop(step, not names)
        names = names or [entity.text for entity in await step.entities(sentence.text)]
        limit = self.settings.concepts
        found = concepts_in(sentence.text, names, limit, self.question.text)
        self._drop(step, len(found.left_out) + found.dropped)
        concepts = [
            _Concept(
                span,
                tuple(
                    token.probability
                    for token in sentence.tokens
                    if token.probability is not None
                    and token.start < sentence.start + span.end
                    and token.end > sentence.start + span.start
                ),
            )
            for span in found.spans
        ]
        measured = [one for one in concepts if one.score is not None]
        self._drop(step, len(concepts) - len(measured))
        return measured

    def _drop(self, step: Scope, count: int) -> None:
        """Count concepts that are not asked about, as long as the original is read."""
        self.dropped += count if len(step.drafts) == 1 else 0

    async def _validated(
        self, number: int, concept: _Concept, sentence: SentenceReading
    ) -> tuple[Verdict, list[Passage]]:
        """Return what evidence says of the concept in its sentence, and the passages that
        were read.
        """
        question, draft = self.question, len(self.scope.drafts) - 1
        asked = await self._question(number, concept, sentence)
        async with self.scope.span("search", index=number) as step:
            passages = await self.found(step, query_of(asked, question))
        async with self.scope.span("verify", index=number) as step:
            verdict = EvidenceVerdict("not_enough")
            about = passages_about(
                sentence.text, passages, question=question.text, concept=concept.span.text
            )
            if about:
                language = question.language
                messages = PROMPTS.turns(
                    language,
                    "validate",
                    sentence=sentence.text,
                    concept=concept.span.text,
                    asked=asked,
                    passages=PROMPTS.listed(language, about),
                )
                choice = await read_evidence(
                    step,
                    question,
                    PROMPTS,
                    messages,
                    role=self.role,
                    statement=sentence.text,
                    passages=about,
                    asked=question.text,
                )
                verdict = EvidenceVerdict.of(choice)
            verdict.record(step, asked, passages, draft=draft)
        return verdict.verdict, passages

    async def _question(self, number: int, concept: _Concept, sentence: SentenceReading) -> str:
        """Return the model's question about a concept; the sentence itself where it writes none."""
        question = self.question
        if self.scope.model().capabilities.weak:
            # A weak model's questions are about something else.
            return sentence.text
        async with self.scope.span("query", index=number) as step:
            asked = PROMPTS.turns(
                question.language,
                "question",
                question=question.text,
                sentence=sentence.text,
                concept=concept.span.text,
            )
            written = await listed(step, asked, "questions", max_tokens=_QUESTION_TOKENS)
        usable = (
            one
            for one in written
            if asks(one) and not changes_to_chinese(one, question.text, sentence.text)
        )
        return next(usable, sentence.text)

    async def _repaired(
        self, generation: Generation, target: SentenceReading, passages: Sequence[Passage]
    ) -> tuple[Generation | None, int]:
        """Return the text with the sentence repaired from evidence, and what the model adds
        to that.

        None where nothing could take its place. With it the offset from which reading goes on.
        """
        number, before = len(self.scope.drafts) - 1, generation.text
        async with self.scope.span(
            "correct", draft=number, sentence=target.number, start=target.start, end=target.end
        ) as step:
            if nearest.takes_sentence(step, self.settings.wording):
                return await self.with_sentence(step, generation, target, passages)
            language = self.question.language
            asked = PROMPTS.turns(
                language,
                "repair",
                "repair_sentence",
                question=self.question.text,
                sentence=target.text,
                passages=PROMPTS.listed(language, passages),
            )
            known = (target.text, *(one.text for one in passages))
            written = await written_anew(
                step, asked, self.question, *known, max_tokens=self.settings.max_tokens
            )
            if written is None or len(split_sentences(written.text)) != 1:
                self.flag("revision_unusable")
                return None, target.end
            if same_words(written.text, target.text):
                return None, target.end
            # What a repair takes from evidence is not measured again.
            repaired = Generation(text=written.text.strip())
            kept = appended(cut(generation, target.start), repaired)
            whole = kept if target.last else await self.go_on(step, kept)
            step.revised(
                whole, draft=number + 1, before=before, start=target.start, reason="corrected"
            )
            return whole, len(kept.text)

    def _conclude(self, original: str) -> None:
        """Record the verdict on the original: whether evidence contradicts one of its concepts."""
        contradicted, all_read = self.verdicts.count("contradicted"), len(self.verdicts)
        share = scored(
            "contradicted_concepts",
            contradicted / all_read if all_read else None,
            bad="above",
            threshold=0.0,
            formula="detect_and_mitigate.share",
            inputs=(float(contradicted), float(all_read)),
        )
        decision = decide(PartCounts.of(self.verdicts, dropped=self.dropped))
        verdict = decision.verdict
        if verdict == "supported" and "supported" not in self.verdicts:
            # No evidence was asked: the model was sure of everything.
            verdict = "confident"
        for flag in decision.flags:
            self.flag(flag, when=flag != "not_checked" or not self.flags)
        self.scope.judged("answer", original, verdict=verdict, scores=(share,))
