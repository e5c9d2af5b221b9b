"""SAC3: is the answer the same when the question is put in other words, or to another model?

Source: SAC3 (Zhang et al., Findings of EMNLP 2023, "SAC3: Reliable Hallucination Detection in
Black-Box Language Models via Semantic-aware Cross-check Consistency"). A model can repeat the same
error whenever it is asked the same. So the question q is paraphrased to q_1..q_k, and the answer s
to q is compared with the answers of the model to each q_j (Q), of a verifier to q (M), and of the
verifier to each q_j (QM). Each Z is the share of comparisons that disagree:

    SAC3-Q = Z_Q    SAC3-all = (Z_Q + lambda * (Z_M + Z_QM)) / (1 + 2 * lambda)

The paper does not divide; divided, both lie in [0, 1] and one threshold serves (ours). Each model
answers a question once, at temperature 0 (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer
from pipelines.errors import VeriscopeError
from pipelines.methods.base import AnswerTokens, Demonstrations, Method, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    judge_answer,
    mean,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.direct import direct_messages
from pipelines.methods.replies.lists import asks_yes_or_no
from pipelines.methods.replies.verdicts import CheckedBy, checker
from pipelines.methods.rowen import reading
from pipelines.methods.rowen.check import compared, paraphrases_of
from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.findings import ParaphraseTaken
from pipelines.run.scope import Scope

Sac3Part = Literal["q", "m", "qm"]
"""What an answer is compared with: the model's answers to paraphrases (q), the verifier's to the
question (m), the verifier's to paraphrases (qm)."""


class Sac3Settings(Settings):
    """Settings of SAC3."""

    REPLAYABLE = ("threshold", "verifier_weight")

    variant: Literal["auto", "question", "all"] = Field(
        "auto",
        description="Compare with the model's answers to paraphrases (SAC3-Q), or with a verifier's"
        " answers as well (SAC3-all, the paper's best); auto takes all where there is a verifier.",
    )
    paraphrases: int = Field(
        5,
        ge=1,
        le=20,
        description="Paraphrases of the question (authors' published data: 10; ours: 5).",
    )
    min_similarity: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Minimum cosine of a paraphrase and the question (ours: 0.5, as for Rowen).",
    )
    verifier_weight: float = Field(
        1.0, ge=0, le=4, description="Weight of the verifier, lambda (ours: 1, both alike)."
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="Doubtful above this share of disagreement (ours: half of it)."
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who compares two answers (paper: the model itself; ours: a judge where that"
        " model is known to judge no better than chance).",
    )
    temperature: float = Field(
        1.0, ge=0, le=2, description="Temperature the paraphrases are written at (ours: 1.0)."
    )
    max_tokens: AnswerTokens = 128
    demonstrations: Demonstrations = "auto"


class Sac3(Method[Sac3Settings]):
    """Consistency over paraphrases and a second model (SAC3)."""

    name = "sac3"
    page = "baselines"
    rewrites = False
    baseline = True
    roles = ("verifier", *JUDGES)
    effort = 14
    starts_from = "direct"
    checks = "answer"
    settings_type = Sac3Settings
    flow = (
        Stage("draft"),
        Stage("paraphrase"),
        Stage("pair", repeats=True),
    )
    prompts = (reading.PROMPTS, load_prompts("direct"))

    async def run(self, question: Question, scope: Scope, settings: Sac3Settings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        async with scope.span("check") as step:
            taken = await paraphrases_of(
                step,
                question,
                settings.paraphrases,
                min_similarity=settings.min_similarity,
                temperature=settings.temperature,
                demonstrations=settings.demonstrations,
            )
            check = _AnswerComparison(question, subject, settings, step)
            await check.run(taken)
        return judge_answer(scope, subject, check.scores(), check.flags(len(taken)))


@dataclass(frozen=True)
class _Pair:
    """A comparison with the answer: 1 - C, None where it was not decided, how, and its span."""

    part: Sac3Part
    differs: float | None
    how: str
    span: str


class _AnswerComparison:
    """Every comparison of one answer."""

    def __init__(
        self, question: Question, subject: CheckedAnswer, settings: Sac3Settings, step: Scope
    ) -> None:
        self.question = question
        self.subject = subject
        self.settings = settings
        self.step = step
        self.by = checker(step, {question.language}, settings.checked_by)
        self.verifier = settings.variant != "question" and _has_verifier(step, question)
        self.pairs: list[_Pair] = []
        self._yes_no = asks_yes_or_no(question)

    async def run(self, taken: Sequence[ParaphraseTaken]) -> None:
        """Compare with the model's and the verifier's answers, all at the same time."""
        work = [self._pair("q", number, one) for number, one in enumerate(taken)]
        if self.verifier:
            itself = ParaphraseTaken(text=self.question.text)
            work.append(self._pair("m", 0, itself))
            work += [self._pair("qm", number, one) for number, one in enumerate(taken)]
        self.pairs = await together(*work)

    async def _pair(self, part: Sac3Part, index: int, taken: ParaphraseTaken) -> _Pair:
        role = "main" if part == "q" else "verifier"
        asked = Question(text=taken.text, language=self.question.language)
        async with self.step.span("pair", index=index, role=role, detail=taken) as step:
            try:
                text = await ask(
                    step, direct_messages(asked), role=role, max_tokens=self.settings.max_tokens
                )
            except VeriscopeError:
                # Recorded with the call.
                text, how = "", "failed"
            else:
                how = "empty"
            same = None
            if text:
                how, same, _ = await compared(
                    step,
                    self.question.language,
                    "same_cm",
                    self.question.text,
                    self.subject.text,
                    text,
                    yes_no=self._yes_no,
                    role=self.by,
                )
            differs = None if same is None else 1 - same
            step.judged(
                "pair",
                f"{self.subject.text} | {text}",
                label=part,
                verdict="unchecked" if same is None else "supported" if same else "contradicted",
                scores=[scored("sac3_pair", differs, bad="above")],
            )
            return _Pair(part, differs, how, step.id)

    def scores(self) -> list[Score]:
        """Return the score that decides, and the shares of disagreement it is made of."""
        parts: list[Sac3Part] = ["q", "m", "qm"] if self.verifier else ["q"]
        shares = {part: mean(p.differs for p in self.pairs if p.part == part) for part in parts}
        behind = [pair.span for pair in self.pairs]
        of_parts = [
            scored(
                f"sac3_{part}",
                share,
                bad="above",
                threshold=None if self.verifier else self.settings.threshold,
                formula=f"sac3.{part}",
                inputs=[p.differs for p in self.pairs if p.part == part and p.differs is not None],
                behind=[pair.span for pair in self.pairs if pair.part == part],
            )
            for part, share in shares.items()
        ]
        if not self.verifier:
            return of_parts
        weight = self.settings.verifier_weight
        weights = {"q": 1.0, "m": weight, "qm": weight}
        # A part that decided nothing is left out, with its weight.
        known = {part: share for part, share in shares.items() if share is not None}
        total = sum(weights[part] for part in known)
        value = sum(weights[part] * share for part, share in known.items())
        overall = scored(
            "sac3_all",
            value / total if total else None,
            bad="above",
            threshold=self.settings.threshold,
            formula="sac3.all",
            inputs=[*known.values(), weight],
            behind=behind,
        )
        return [overall, *of_parts]

    def flags(self, taken: int) -> list[str]:
        """Return remarks on what the score rests on."""
        hows = {pair.how for pair in self.pairs}
        by_model = "model" in hows
        remarks = {
            "no_verifier": self.settings.variant == "all" and not self.verifier,
            "no_paraphrases": not taken,
            "fewer_paraphrases": 0 < taken < self.settings.paraphrases,
            "pairs_failed": "failed" in hows,
            "no_judge": by_model and self.settings.checked_by == "judge",
            "weak_judge": by_model and not self.step.model().capabilities.judges,
        }
        return [flag for flag, holds in remarks.items() if holds]


def _has_verifier(scope: Scope, question: Question) -> bool:
    """Return whether there is a second model that writes in the language of the question."""
    if not scope.has_model("verifier") or scope.same_model("verifier"):
        return False
    can = scope.model("verifier").capabilities
    return can.writes and question.language in can.languages
