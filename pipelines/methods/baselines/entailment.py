"""Whether one text supports another, contradicts it or does neither, read by a judge or a model.

Detectors that compare samples read this relation (natural language inference). A judge is a model
made for it; the main model is asked instead where it is the more reliable one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.replies.verdicts import (
    TRUE_FALSE_NEI,
    CheckedBy,
    checker,
    decide_between,
)
from pipelines.models.base import Claim
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.types import Frozen

PROMPTS = load_prompts("baselines")


class Relation(Frozen):
    """Probabilities that a text supports a statement, contradicts it or does neither; sum 1."""

    supported: float
    contradicted: float
    neutral: float

    @property
    def supports(self) -> bool:
        """Whether support is the most probable of the three."""
        return self.supported > max(self.contradicted, self.neutral)

    @property
    def contradicts(self) -> bool:
        """Whether contradiction is the most probable of the three."""
        return self.contradicted > max(self.supported, self.neutral)

    @property
    def contradiction(self) -> float:
        """P(contradiction) in [0, 1] where neutral does not count, as SelfCheckGPT and LUQ have it.

        0.5 for neutral alone. A judge that knows no contradiction, such as one of word overlap,
        gives it the probability 0: then all that is not support counts (ours).
        """
        decided = self.contradicted + self.supported
        if not decided:
            return 0.5
        return self.contradicted / decided if self.contradicted else 1 - self.supported


@dataclass
class EntailmentReader:
    """Reads how texts relate, as answers to one question; counts what could not be read."""

    question: Question
    role: str
    wanted: CheckedBy
    weak: bool
    failed: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)

    @classmethod
    def of(cls, scope: Scope, question: Question, wanted: CheckedBy) -> EntailmentReader:
        """Return the reader that `wanted` asks for, or the main model where there is no judge."""
        role = checker(scope, {question.language}, wanted)
        weak = role == "main" and not scope.model().capabilities.judges
        return cls(question, role, wanted, weak)

    async def read(self, step: Scope, text: str, statement: str) -> Relation | None:
        """Return how `text` relates to `statement`; None where the call failed or named no
        relation.

        Both are read as answers to the question, since an answer may be one word.
        """
        language = self.question.language
        self.asked += 1
        try:
            choice = await decide_between(
                step,
                PROMPTS.turns(
                    language,
                    "relation",
                    "relation_question",
                    question=self.question.text,
                    text=text,
                    statement=statement,
                ),
                TRUE_FALSE_NEI[language],
                reminder=PROMPTS.fill(language, "relation_reminder"),
                role=self.role,
                claim=Claim(
                    statement=statement,
                    evidence=(f"{self.question.text} {text}",),
                    question=self.question.text,
                ),
            )
        except VeriscopeError:
            # Recorded with the call.
            self.failed += 1
            return None
        shares = [choice.probabilities.get(label, 0.0) for label in ("true", "false", "nei")]
        total = sum(shares)
        if choice.best is None or total <= 0:
            self.failed += 1
            return None
        supported, contradicted, neutral = (share / total for share in shares)
        return Relation(supported=supported, contradicted=contradicted, neutral=neutral)

    @property
    def flags(self) -> list[str]:
        """Remarks on who read and how far; none where nothing was read."""
        remarks = {
            "no_judge": self.role == "main" and self.wanted == "judge",
            "weak_judge": self.weak,
            "comparisons_failed": 0 < self.failed < self.asked,
        }
        return [flag for flag, holds in remarks.items() if holds and self.asked]
