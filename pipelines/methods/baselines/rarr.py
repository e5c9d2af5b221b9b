"""RARR: a finished text is researched by questions and edited where the evidence contradicts it.

Source: Gao et al., ACL 2023 ("RARR: Researching and revising what language models say"). The model
asks questions that cover the text; each is searched for; an agreement gate decides for each
question whether the evidence contradicts the text as it is by then; only then the text is edited,
with its wording kept. An edit that changes too much is discarded (paper: more than 50 characters,
or more than half of the text). What is kept of the original is `preservation`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Choice, Passage
from pipelines.methods import nearest
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.baselines.shared import (
    EvidenceRun,
    EvidenceVerdict,
    planned_questions,
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
from pipelines.methods.replies.verdicts import CheckedBy
from pipelines.methods.subjects import passages_about
from pipelines.methods.writing import found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score, Verdict
from pipelines.run.scope import Scope
from pipelines.text.sentences import edit_distance

PROMPTS = load_prompts("rarr")

_QUESTION_TOKENS = 256


class RarrSettings(Settings):
    """Settings of RARR: how much is researched, and how much an edit may change."""

    questions: int = Field(
        6, ge=1, le=15, description="Maximum questions about the text (the paper sets none; ours)."
    )
    passages: int = Field(
        1, ge=1, le=10, description="Passages per question that the gate reads (paper: 1)."
    )
    max_edit: int = Field(
        50, ge=1, le=1000, description="Maximum characters that one edit changes (paper: 50)."
    )
    max_edit_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Maximum share of the text that one edit changes (paper: 0.5).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who decides whether evidence and text agree (paper: the model; ours: a judge"
        " where the model is known to judge no better than chance).",
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


def preservation(original: str, edited: str) -> float:
    """Return Prev_Lev of the paper (section 3.2): 1 - distance / length of the original, at
    least 0.

    1 where nothing was changed, 0 where as much was changed as there was.
    """
    if not original:
        return 1.0 if not edited else 0.0
    return max(0.0, 1 - edit_distance(original, edited) / len(original))


class Rarr(Method[RarrSettings]):
    """Research and revise: questions, evidence, agreement gate, edits that keep the wording."""

    name = "rarr"
    page = "baselines"
    baseline = True
    effort = 10
    starts_from = "direct"
    roles = JUDGES
    checks = "answer"
    settings_type = RarrSettings
    flow = (
        Stage("draft"),
        Stage("plan"),
        Stage("search", optional=True, repeats=True),
        Stage("judge", optional=True, repeats=True),
        Stage("edit", ("nearest",), optional=True, repeats=True),
        Stage("conclude"),
    )
    prompts = (PROMPTS, load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: RarrSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: RarrSettings) -> Answer:
        return await _RarrRun(question, scope, settings).answer()


class _RarrRun(EvidenceRun[RarrSettings]):
    """One run: the text as it is by now, and the verdict of each question."""

    def __init__(self, question: Question, scope: Scope, settings: RarrSettings) -> None:
        super().__init__(question, scope, settings)
        self.text = ""
        self.verdicts: list[Verdict] = []
        self.dropped = 0

    async def answer(self) -> Answer:
        draft = await direct_draft(self.scope, self.question, self.settings.max_tokens)
        original = self.text = draft.text
        remark = no_answer(original, self.question)
        if remark:
            # It claims nothing that could be researched.
            self.flag(remark)
            await self._conclude(original)
            gives_none = declines(original)
            return Answer(
                text=original, original=original, abstained=gives_none, flags=tuple(self.flags)
            )
        questions = await self._questions()
        self.flag("weak_judge", when=weak_judge(self.scope, self.role))
        evidence = await together(
            *(self._searched(number, one) for number, one in enumerate(questions))
        )
        ended = False
        for number, (asked, found) in enumerate(zip(questions, evidence, strict=True)):
            if ended:
                # After a quotation of the evidence nothing of the model's own text is left.
                continue
            if found is None:
                self.verdicts.append("unchecked")
                continue
            ended = await self._checked(number, asked, found)
        await self._conclude(original)
        return Answer(text=self.text, original=original, flags=tuple(self.flags))

    async def _questions(self) -> list[str]:
        """Return questions that cover the text; the visitor's own where the model writes none."""
        question, limit = self.question, self.settings.questions
        asked = PROMPTS.turns(
            question.language,
            "questions",
            question=question.text,
            text=self.text,
            count=str(limit),
        )
        planned = await planned_questions(
            self.scope, question, asked, self.text, max_tokens=_QUESTION_TOKENS
        )
        self.flag("no_questions", when=not planned)
        self.dropped = max(0, len(planned) - limit)
        return planned[:limit] or [question.text]

    async def _searched(self, number: int, asked: str) -> list[Passage] | None:
        """Return what is found for a question; None where the search fails."""
        async with self.scope.span("search", index=number) as step:
            query = query_of(asked, self.question)
            found = await found_for(step, query, self.settings.passages)
        if found is None:
            self.flag("search_incomplete")
        return found

    async def _checked(self, number: int, asked: str, passages: Sequence[Passage]) -> bool:
        """Return the gate for one question, and the edit it asks for; whether the text ends
        with it.
        """
        async with self.scope.span("judge", index=number) as step:
            found = EvidenceVerdict("not_enough")
            about = passages_about(self.text, passages, question=self.question.text)
            if about:
                found = EvidenceVerdict.of(await self._agreement(step, asked, about))
            self.verdicts.append(found.verdict)
            found.record(step, asked, passages, draft=len(self.scope.drafts) - 1)
        if found.verdict != "contradicted":
            return False
        async with self.scope.span("edit", index=number) as step:
            return await self._edit(step, asked, passages)

    async def _agreement(
        self, step: Scope, asked: str, passages: Sequence[Passage]
    ) -> Choice | None:
        language = self.question.language
        messages = PROMPTS.turns(
            language,
            "agrees",
            text=self.text,
            asked=asked,
            passages=PROMPTS.listed(language, passages),
        )
        choice = await read_evidence(
            step,
            self.question,
            PROMPTS,
            messages,
            role=self.role,
            statement=self.text,
            passages=passages,
            asked=asked,
        )
        self.flag("checks_incomplete", when=choice is None)
        return choice

    async def _edit(self, step: Scope, asked: str, passages: Sequence[Passage]) -> bool:
        """Return edit the text, or leave it with a flag; return whether it is a quotation now."""
        before = self.text
        if self.takes_sentence:
            quoted = await self.quote(step, passages, before)
            self.text = quoted or before
            return bool(quoted)
        language = self.question.language
        messages = PROMPTS.turns(
            language,
            "edit",
            "edit_text",
            text=before,
            asked=asked,
            passages=PROMPTS.listed(language, passages),
        )
        known = (before, *(one.text for one in passages))
        written = await written_anew(
            step, messages, self.question, *known, max_tokens=2 * self.settings.max_tokens
        )
        if written is None:
            self.flag("revision_unusable")
        elif self._changes_too_much(before, written.text):
            self.flag("edit_too_large")
        elif not same_words(before, written.text):
            self.text = self.revise(step, written, before)
        return False

    def _changes_too_much(self, before: str, after: str) -> bool:
        distance, settings = edit_distance(before, after), self.settings
        return distance > settings.max_edit or distance > settings.max_edit_share * len(before)

    async def _conclude(self, original: str) -> None:
        """Record the verdict on the original, and how much of its wording is kept."""
        contradicted = self.verdicts.count("contradicted")
        decided = contradicted + self.verdicts.count("supported")
        share = contradicted / decided if decided else None
        kept = Score(
            name="preservation",
            value=preservation(original, self.text),
            formula="rarr.preservation",
            inputs=(float(edit_distance(original, self.text)), float(len(original))),
        )
        decisive = Score(
            name="contradicted_share",
            value=share,
            threshold=0.0,
            bad="above",
            flagged=contradicted > 0,
            formula="rarr.contradicted",
            inputs=(float(contradicted), float(decided)),
        )
        verdict = decide(PartCounts.of(self.verdicts, dropped=self.dropped)).verdict
        async with self.scope.span("conclude") as step:
            step.judged("answer", original, verdict=verdict, scores=(decisive, kept))
        if "unchecked" in self.verdicts and (decided or verdict == "unchecked"):
            self.flag("checks_incomplete" if decided else "not_checked")
