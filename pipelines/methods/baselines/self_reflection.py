"""Self-reflection: knowledge is written and refined, then an answer from it is checked and refined.

Source: Ji et al., Findings of EMNLP 2023 ("Towards mitigating hallucination in large language
models via self-reflection"). Three loops: the model writes background knowledge and refines it
until it scores as factual; it answers from that and refines the answer until it scores as
consistent with the knowledge; where the answer does not answer the question, all begins again.
The paper scores with models of its own for each loop; here all scores are P(yes), of the model
itself (ours), or of a judge where the text to rest on is there.
"""

from __future__ import annotations

from pydantic import Field

from pipelines.base import Answer, Generation, Message, Passage
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    BaselineRun,
    Rewriting,
    p_yes,
    same_words,
    takes_rewriting,
    usable,
)
from pipelines.methods.deciding import PartCounts, withheld
from pipelines.methods.direct import direct_messages
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import CheckedBy, checker, claim_of
from pipelines.methods.writing import first_draft, visible_generation
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope

PROMPTS = load_prompts("self_reflection")

_KNOWLEDGE_TOKENS = 192


class SelfReflectionSettings(Settings):
    """Settings of self-reflection: how sure is sure enough, and how often each loop goes round."""

    REPLAYABLE = ("threshold",)

    threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Minimum P(yes) that knowledge is factual, and that the answer agrees with it"
        " (ours; the paper's thresholds belong to its scores).",
    )
    knowledge_rounds: int = Field(
        2, ge=0, le=5, description="Maximum refinements of the knowledge (ours: 2)."
    )
    answer_rounds: int = Field(
        2, ge=0, le=5, description="Maximum refinements of the answer (ours: 2)."
    )
    restarts: int = Field(
        1,
        ge=0,
        le=3,
        description="How often all begins again, where the answer does not answer the question"
        " (ours: 1).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who says whether the answer agrees with the knowledge (paper: models made for"
        " that; ours: the main model, or a judge where its verdicts are no better than chance).",
    )
    max_tokens: AnswerTokens = 128
    rewriting: Rewriting = "auto"


class SelfReflection(Method[SelfReflectionSettings]):
    """A loop for knowledge, a loop for the answer, and one around both."""

    name = "self_reflection"
    page = "baselines"
    baseline = True
    effort = 8
    roles = JUDGES
    checks = "answer"
    settings_type = SelfReflectionSettings
    flow = (
        Stage("knowledge", repeats=True),
        Stage("draft", repeats=True),
        Stage("judge", repeats=True),
        Stage("correct", optional=True, repeats=True),
        Stage("decide"),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    async def run(
        self, question: Question, scope: Scope, settings: SelfReflectionSettings
    ) -> Answer:
        return await _SelfReflectionRun(question, scope, settings).answer()


class _SelfReflectionRun(BaselineRun[SelfReflectionSettings]):
    """One run: the answer so far, and what was remarked."""

    def __init__(self, question: Question, scope: Scope, settings: SelfReflectionSettings) -> None:
        super().__init__(question, scope, settings)
        self.role = checker(scope, {question.language}, settings.checked_by)
        # Only the main model can say what is factual without a text to rest on.
        self.flag("weak_judge", when=not scope.model().capabilities.judges)
        self.takes = takes_rewriting(scope, settings.rewriting)
        self.knowledge = PartCounts()

    async def answer(self) -> Answer:
        original: Generation | None = None
        current: Generation | None = None
        for attempt in range(self.settings.restarts + 1):
            knowledge = await self._knowledge(attempt)
            if current is None or original is None:
                original = current = await self._first(knowledge)
            else:
                fresh = await self._again(knowledge, current)
                if fresh is None:
                    break
                current = fresh
            current = await self._refined(knowledge, current, judges=attempt == 0)
            if await self._is_relevant(current, attempt):
                break
        else:
            self.flag("not_answered")
        assert original is not None
        assert current is not None
        return Answer(
            text=current.text,
            original=original.text,
            abstained=declines(current.text),
            flags=tuple(self.flags),
        )

    async def _knowledge(self, attempt: int) -> str:
        """Return background knowledge, refined until it scores as factual; "" where there
        is none.
        """
        question, settings = self.question, self.settings
        language = question.language
        text, value = "", None
        for number in range(settings.knowledge_rounds + 1):
            async with self.scope.span("knowledge", round=number, index=attempt) as step:
                asked = PROMPTS.turns(
                    language,
                    "refine_knowledge" if number else "knowledge",
                    question=question.text,
                    knowledge=text,
                )
                written = await self._write(step, asked, _KNOWLEDGE_TOKENS, attempt)
                if written is None:
                    break
                text = written.text
                value = await p_yes(
                    step,
                    PROMPTS.turns(language, "factual", knowledge=text),
                    question,
                    PROMPTS,
                )
                self._record_knowledge(step, text, value)
                self.flag("checks_incomplete", when=value is None)
            if value is None or value >= settings.threshold:
                break
        if not text:
            self.flag("no_knowledge")
        self.knowledge = PartCounts(supported=value is not None, unchecked=value is None)
        return text

    def _record_knowledge(self, step: Scope, text: str, value: float | None) -> None:
        score = self._score("knowledge_factual", value)
        said = "doubtful" if score.flagged else "confident"
        step.judged(
            "knowledge",
            text,
            verdict="unchecked" if value is None else said,
            scores=(score,),
        )

    async def _first(self, knowledge: str) -> Generation:
        """Return the first answer, which is draft 0; the given one where there is one."""
        async with self.scope.span("draft") as step:
            draft = await first_draft(step, self._asked(knowledge), self.settings.max_tokens)
            step.revised(draft)
        return draft

    async def _again(self, knowledge: str, current: Generation) -> Generation | None:
        """Return another answer, from other knowledge; None where it cannot be used."""
        async with self.scope.span("draft", draft=len(self.scope.drafts)) as step:
            written = await self._write(step, self._asked(knowledge), self.settings.max_tokens, 1)
            return self._taken(step, written, current)

    def _asked(self, knowledge: str) -> tuple[Message, ...]:
        question = self.question
        if not knowledge:
            return direct_messages(question)
        return PROMPTS.turns(
            question.language,
            "answer",
            "answer_question",
            knowledge=knowledge,
            question=question.text,
        )

    async def _write(
        self, step: Scope, asked: tuple[Message, ...], max_tokens: int, attempt: int
    ) -> Generation | None:
        """Return a text of the model, drawn at random when all begins again; None for an
        unusable one.
        """
        drawn = {"temperature": 1.0, "sample": attempt} if attempt else {}
        reply = await step.write(step.request(asked, max_tokens=max_tokens, **drawn))
        written = visible_generation(reply)
        return written if usable(written, self.question) else None

    def _taken(
        self, step: Scope, written: Generation | None, current: Generation
    ) -> Generation | None:
        """Return what was written, as a new draft; None where it does not take the
        answer's place.
        """
        if written is None:
            self.flag("revision_unusable")
            return None
        if same_words(written.text, current.text):
            return None
        if not self.takes:
            self.flag("revision_not_taken")
            return None
        number = len(self.scope.drafts)
        step.revised(written, draft=number, before=current.text, reason="refined")
        return written

    async def _refined(self, knowledge: str, current: Generation, *, judges: bool) -> Generation:
        """Return the answer, written again until it agrees with the knowledge; the first
        is judged.
        """
        question, settings = self.question, self.settings
        for number in range(settings.answer_rounds + 1):
            async with self.scope.span("judge", round=number) as step:
                value = await self._agrees(step, knowledge, current.text)
                self.flag("checks_incomplete", when=value is None and bool(knowledge))
                score = self._score("knowledge_agreement", value)
                if judges and number == 0:
                    said = "doubtful" if score.flagged else "confident"
                    # What agrees with knowledge that nobody judged is not judged either.
                    nothing = value is None or no_answer(current.text, question)
                    verdict = "unchecked" if nothing else withheld(said, self.knowledge)
                    step.judged("answer", current.text, verdict=verdict, scores=(score,))
            if not score.flagged or number == settings.answer_rounds:
                self.flag("still_inconsistent", when=score.flagged)
                break
            async with self.scope.span("correct", round=number) as step:
                asked = PROMPTS.turns(
                    question.language,
                    "refine_answer",
                    knowledge=knowledge,
                    question=question.text,
                    answer=current.text,
                )
                written = await self._write(step, asked, settings.max_tokens, 0)
                taken = self._taken(step, written, current)
            if taken is None:
                # The same words would be judged the same.
                self.flag("still_inconsistent")
                break
            current = taken
        return current

    async def _agrees(self, step: Scope, knowledge: str, answer: str) -> float | None:
        """Return P(yes) that the answer agrees with the knowledge; None where nobody can tell."""
        if not knowledge:
            return None
        question = self.question
        asked = PROMPTS.turns(
            question.language,
            "consistent",
            knowledge=knowledge,
            question=question.text,
            answer=answer,
        )
        passage = Passage(id="knowledge", title="", text=knowledge, source="model")
        claim = claim_of(answer, [passage], question.text)
        return await p_yes(step, asked, question, PROMPTS, role=self.role, claim=claim)

    async def _is_relevant(self, current: Generation, attempt: int) -> bool:
        """Return whether the answer answers the question; where that is open, it counts as one."""
        question = self.question
        async with self.scope.span("decide", index=attempt) as step:
            asked = PROMPTS.turns(
                question.language, "relevant", question=question.text, answer=current.text
            )
            value = await p_yes(step, asked, question, PROMPTS)
            self.flag("checks_incomplete", when=value is None)
        return value is None or value >= self.settings.threshold

    def _score(self, name: str, value: float | None) -> Score:
        threshold = self.settings.threshold
        return Score(
            name=name,
            value=value,
            threshold=threshold,
            flagged=value is not None and value < threshold,
        )
