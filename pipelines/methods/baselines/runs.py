"""What runs of several baselines have in common: remarks, and the check of a text against evidence.

RARR, CRITIC and FacTool ask the same of a text and its passages: whether these support it,
contradict it or leave it open. RARR and CRITIC also put a correction in the place of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pipelines.errors import VeriscopeError
from pipelines.methods import nearest
from pipelines.methods.base import Question, Wording
from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.verdicts import (
    EVIDENCE_VERDICTS,
    TRUE_FALSE_NEI,
    CheckedBy,
    checker,
    claim_of,
    decide_between,
)
from pipelines.methods.writing import ask_list
from pipelines.prompts import Prompts
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import QuestionAnswered
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese
from pipelines.types import Choice, Generation, Message, Passage

S = TypeVar("S")


class BaselineRun(Generic[S]):
    """One run of a baseline; `flags` are the remarks on it, each once, in their order."""

    def __init__(self, question: Question, scope: Scope, settings: S) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.flags: list[str] = []

    def flag(self, flag: str, *, when: bool = True) -> None:
        """Add a remark, where `when` holds and it is not there yet."""
        if when and flag not in self.flags:
            self.flags.append(flag)


class EvidenceSettings(Protocol):
    """The settings of a baseline that corrects an answer by evidence."""

    @property
    def checked_by(self) -> CheckedBy: ...

    @property
    def wording(self) -> Wording: ...


E = TypeVar("E", bound=EvidenceSettings)


def weak_judge(scope: Scope, role: str) -> bool:
    """Return whether the main model checks, and its verdicts were measured to be by chance."""
    return role == "main" and not scope.model().capabilities.judges


class EvidenceRun(BaselineRun[E]):
    """One run of a baseline that corrects an answer by evidence.

    `role` is the role that checks; under `takes_sentence` a sentence of the evidence takes the
    place of what it contradicts (`nearest.py`).
    """

    def __init__(self, question: Question, scope: Scope, settings: E) -> None:
        super().__init__(question, scope, settings)
        self.role = checker(scope, {question.language}, settings.checked_by)
        self.takes_sentence = nearest.takes_sentence(scope, settings.wording)

    def revise(self, step: Scope, text: Generation, before: str, *, quoted: bool = False) -> str:
        """Record `text` as the next draft, quoted from evidence or corrected; return its words."""
        number = len(self.scope.drafts)
        reason = "quoted" if quoted else "corrected"
        step.revised(text, draft=number, before=before, reason=reason)
        return text.text

    async def quote(self, step: Scope, passages: Sequence[Passage], before: str) -> str:
        """Return what the nearest sentence of the evidence makes of the text; "" where it changes
        nothing.

        It is recorded as the next draft.
        """
        correction = await nearest.correct(step, self.question, passages, before)
        self.flag(correction.flag)
        if not correction.changes:
            return ""
        return self.revise(step, Generation(text=correction.text), before, quoted=True)


@dataclass(frozen=True)
class EvidenceVerdict:
    """What evidence says of a text, and the probability of that verdict in [0, 1], where known."""

    verdict: Verdict
    probability: float | None = None

    @classmethod
    def of(cls, choice: Choice | None) -> EvidenceVerdict:
        """Return the verdict of a choice between true, false and not enough; "unchecked"
        for none.
        """
        label = None if choice is None else choice.best
        if choice is None or label is None:
            return cls("unchecked")
        return cls(EVIDENCE_VERDICTS[label], choice.probabilities[label])

    def record(
        self,
        step: Scope,
        text: str,
        passages: Sequence[Passage],
        *,
        draft: int = 0,
        answer: str = "",
    ) -> None:
        """Record the verdict on `text` (a claim, a question, an answer) with what was read for it.

        `answer` is what the model said of it.
        """
        value = self.probability
        step.judged(
            "question",
            text,
            verdict=self.verdict,
            draft=draft,
            scores=() if value is None else (Score(name="verdict_probability", value=value),),
            detail=QuestionAnswered(answer=answer, passages=tuple(one.id for one in passages)),
        )


async def read_evidence(
    step: Scope,
    question: Question,
    prompts: Prompts,
    messages: Sequence[Message],
    *,
    role: str,
    statement: str,
    passages: Sequence[Passage],
    asked: str,
) -> Choice | None:
    """Return whether passages support a statement, as the answer to `asked`; None where the
    call fails.

    The model of `role` is asked `messages`, and where it names no option, the prompt "reminder".
    """
    language = question.language
    try:
        return await decide_between(
            step,
            messages,
            TRUE_FALSE_NEI[language],
            reminder=prompts.fill(language, "reminder"),
            role=role,
            claim=claim_of(statement, passages, asked),
        )
    except VeriscopeError:
        # Recorded with the call.
        return None


async def listed(
    step: Scope,
    messages: Sequence[Message],
    name: str,
    *,
    max_tokens: int,
    limit: int | None = None,
) -> list[str]:
    """Return the texts that the main model lists, at most `limit`; none where the call fails."""
    try:
        return parse_list(await ask_list(step, messages, name, max_tokens=max_tokens), limit=limit)
    except VeriscopeError:
        # Recorded with the call.
        return []


def asks(text: str) -> bool:
    """Return whether a text ends as a question does."""
    return text.rstrip().endswith(("?", "？"))


async def planned_questions(
    scope: Scope,
    question: Question,
    messages: Sequence[Message],
    text: str,
    *,
    max_tokens: int,
) -> list[str]:
    """Return the questions about `text` that the main model plans, in the language of question
    or text.
    """
    async with scope.span("plan") as step:
        found = await listed(step, messages, "questions", max_tokens=max_tokens)
    return [one for one in found if asks(one) and not changes_to_chinese(one, question.text, text)]
