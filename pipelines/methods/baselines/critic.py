"""CRITIC: the model criticises its answer by means of a tool, here our search, and corrects it.

Source: Gou et al., ICLR 2024 ("CRITIC: Large language models can self-correct with tool-interactive
critiquing"). Each round searches for what would show whether the answer is right, criticises the
answer in view of what was found, and corrects it where the critique finds it wrong; up to three
rounds. It ends with the first answer that is found right or that no longer changes (authors' code:
that does not change twice; ours: once, because the same request is answered alike).
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.base import Answer, Passage
from pipelines.errors import VeriscopeError
from pipelines.methods import nearest
from pipelines.methods.base import (
    AnswerTokens,
    Method,
    Need,
    Question,
    Settings,
    Stage,
    Wording,
    load_wording,
)
from pipelines.methods.baselines.shared import (
    EvidenceRun,
    EvidenceVerdict,
    query_of,
    read_evidence,
    same_words,
    weak_judge,
    written_anew,
)
from pipelines.methods.deciding import PartCounts, decide
from pipelines.methods.direct import direct_draft
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import (
    EVIDENCE_VERDICTS,
    TRUE_FALSE_NEI,
    CheckedBy,
    reason_then_decide,
)
from pipelines.methods.subjects import passages_about
from pipelines.methods.writing import ask, found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score, Verdict
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese

PROMPTS = load_prompts("critic")

_LABELS = load_wording("baselines").entries["labels"]
_QUERY_TOKENS = 48


class CriticSettings(Settings):
    """Settings of CRITIC: how often it goes round, and what it searches for."""

    REPLAYABLE = ("rounds",)

    rounds: int = Field(3, ge=1, le=5, description="Maximum rounds of critique (paper: 3).")
    passages: int = Field(
        3, ge=1, le=20, description="Passages per round (paper: one web result; ours: 3)."
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who gives the verdict (paper: the model, with its critique; ours: a judge,"
        " without one, where the model is known to judge no better than chance).",
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


class Critic(Method[CriticSettings]):
    """Search, critique, correction, up to three rounds."""

    name = "critic"
    page = "baselines"
    baseline = True
    effort = 6
    starts_from = "direct"
    roles = JUDGES
    checks = "answer"
    settings_type = CriticSettings
    flow = (
        Stage("draft"),
        Stage("query", optional=True, repeats=True),
        Stage("search", repeats=True),
        Stage("critique", repeats=True),
        Stage("correct", ("nearest",), optional=True, repeats=True),
    )
    prompts = (PROMPTS, load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: CriticSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: CriticSettings) -> Answer:
        return await _CriticRun(question, scope, settings).answer()


class _CriticRun(EvidenceRun[CriticSettings]):
    """One run: the answer as it is by now."""

    async def answer(self) -> Answer:
        draft = await direct_draft(self.scope, self.question, self.settings.max_tokens)
        current = draft.text
        self.flag("weak_judge", when=weak_judge(self.scope, self.role))
        for number in range(self.settings.rounds):
            passages = await self._searched(number, current)
            verdict, critique = await self._criticised(number, current, passages)
            if number == 0:
                self._judge_original(draft.text, verdict)
            if verdict != "contradicted" or not passages:
                self.flag("still_contradicted", when=verdict == "contradicted")
                break
            corrected = await self._corrected(number, current, critique, passages)
            if not corrected:
                self.flag("still_contradicted")
                break
            current = corrected
            if self.takes_sentence:
                # The same question finds the same sentence again.
                break
        else:
            self.flag("rounds_used_up")
        return Answer(
            text=current,
            original=draft.text,
            abstained=declines(current),
            flags=tuple(self.flags),
        )

    async def _searched(self, number: int, current: str) -> list[Passage]:
        """Return what a query about the answer finds; nothing, with a flag, where it finds
        nothing.
        """
        query = self.question.text
        if not self.takes_sentence:
            query = await self._query(number, current)
        async with self.scope.span("search", round=number) as step:
            found = await found_for(step, query, self.settings.passages)
        if not found:
            self.flag("search_failed" if found is None else "evidence_not_found")
        return found or []

    async def _query(self, number: int, current: str) -> str:
        """Return the model's query; the question with the answer where it writes none."""
        question = self.question
        async with self.scope.span("query", round=number) as step:
            asked = PROMPTS.turns(
                question.language, "query", question=question.text, answer=current
            )
            try:
                written = await ask(step, asked, max_tokens=_QUERY_TOKENS, complete=True)
            except VeriscopeError:
                # Recorded with the call.
                written = ""
        unusable = declines(written) or changes_to_chinese(written, question.text, current)
        plain = f"{question.text} {current}"
        return query_of(plain if unusable or not written else written, question)

    async def _criticised(
        self, number: int, current: str, passages: Sequence[Passage]
    ) -> tuple[Verdict, str]:
        """Return the verdict on the answer, recorded, and the reasons for it."""
        async with self.scope.span("critique", round=number) as step:
            found, critique = EvidenceVerdict("not_enough"), ""
            about = passages_about(current, passages, question=self.question.text)
            if about:
                found, critique = await self._decided(step, current, about)
            number = len(self.scope.drafts) - 1
            found.record(step, current, passages, draft=number, answer=critique)
        return found.verdict, critique

    async def _decided(
        self, step: Scope, current: str, passages: Sequence[Passage]
    ) -> tuple[EvidenceVerdict, str]:
        """Return what the evidence says, and the reasoning of a model that writes."""
        question, language = self.question, self.question.language
        messages = PROMPTS.turns(
            language,
            "critique",
            "critique_answer",
            passages=PROMPTS.listed(language, passages),
            question=question.text,
            answer=current,
        )
        if self.role != "main":
            choice = await read_evidence(
                step,
                question,
                PROMPTS,
                messages,
                role=self.role,
                statement=current,
                passages=passages,
                asked=question.text,
            )
            self.flag("checks_incomplete", when=choice is None)
            return EvidenceVerdict.of(choice), ""
        try:
            reasoned = await reason_then_decide(
                step,
                messages,
                TRUE_FALSE_NEI[language],
                labels=_LABELS,
                reminder=PROMPTS.fill(language, "reminder"),
            )
        except VeriscopeError:
            # Recorded with the call.
            self.flag("checks_incomplete")
            return EvidenceVerdict("unchecked"), ""
        label = reasoned.label
        # Its words are the verdict: no probability was measured.
        verdict = EVIDENCE_VERDICTS[label] if label else "unchecked"
        return EvidenceVerdict(verdict), reasoned.reasoning

    def _judge_original(self, text: str, verdict: Verdict) -> None:
        """Record the first round's verdict as that on the original."""
        value = {"supported": 1.0, "contradicted": 0.0}.get(verdict)
        score = Score(
            name="critique",
            value=value,
            threshold=1.0,
            flagged=verdict == "contradicted",
            formula="critic.verdict",
        )
        remark = no_answer(text, self.question)
        self.flag(remark, when=bool(remark))
        decision = decide(PartCounts(dropped=1) if remark else PartCounts.of([verdict]))
        for flag in decision.flags:
            self.flag(flag)
        self.scope.judged("answer", text, verdict=decision.verdict, scores=(score,))

    async def _corrected(
        self, number: int, current: str, critique: str, passages: Sequence[Passage]
    ) -> str:
        """Return the corrected answer; "" where nothing takes the answer's place."""
        question, language = self.question, self.question.language
        async with self.scope.span("correct", round=number) as step:
            if self.takes_sentence:
                return await self.quote(step, passages, current)
            asked = PROMPTS.turns(
                language,
                "correct",
                "correct_answer",
                passages=PROMPTS.listed(language, passages),
                question=question.text,
                answer=current,
                critique=critique or "–",
            )
            known = (current, *(one.text for one in passages))
            written = await written_anew(
                step, asked, question, *known, max_tokens=self.settings.max_tokens
            )
            if written is None:
                self.flag("revision_unusable")
                return ""
            if same_words(written.text, current):
                return ""
            return self.revise(step, written, current)
