"""What decides a judgement of an answer, and what a judge said."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from pipelines.base import Frozen, Language
from pipelines.evaluation.judging.prompts import checked_prompts, shipped_source
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.prompts import Prompts
from pipelines.run.events import Verdict

Grade = Literal["correct", "partly", "wrong", "abstained"]
"""How an answer compares with the accepted ones."""

GRADE_VALUES: dict[str, float] = {"correct": 1.0, "partly": 0.5, "wrong": 0.0, "abstained": 0.0}
"""What a grade counts in the metric `judged`."""

MAX_TEMPERATURE = 2.0
"""The highest temperature at which a verdict is drawn."""

MAX_REFERENCES = 20
"""Accepted answers that a judge is shown, the first ones."""

_RULES = "1"
"""Changes where the way in which verdicts are asked for or read changes."""


class AskedJudge(Frozen, ABC):
    """Who judges answers: its data are kept, and its fingerprint tells it from others."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What everything that decides a verdict comes to, beside what is judged: 64 digits."""


class JudgeSpec(AskedJudge):
    """A model that judges, and how it is asked.

    `prompt` is the text of a prompt file (see `checked_prompts`), `prompt_name` what people see of
    it. At `temperature` 0 the most probable grade counts; above it, one reply is drawn with `seed`.
    """

    model: ModelSpec
    prompt: str = Field(default_factory=shipped_source)
    prompt_name: str = "answer_judge"
    seed: Annotated[int, Field(ge=0)] = 0
    temperature: Annotated[float, Field(ge=0, le=MAX_TEMPERATURE)] = 0.0

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts; raises InvalidInputError for a file that cannot be used."""
        return checked_prompts(self.prompt, self.prompt_name)

    @property
    def fingerprint(self) -> str:
        """What everything that decides a verdict comes to, beside the answer: 64 digits."""
        whole = [
            self.model.without_price().model_dump(mode="json"),
            self.prompts.hash,
            self.seed,
            self.temperature,
            _RULES,
        ]
        return digest(whole)

    @property
    def weak(self) -> bool:
        """Whether the model's verdicts are known to be no better than chance."""
        if self.model.judges is not None:
            return not self.model.judges
        known = known_capabilities(self.model)
        return known is not None and not known.judges

    @property
    def title(self) -> str:
        """What people see: the model, and the prompt, seed and temperature that are not usual."""
        parts = [self.model.name]
        if self.prompt != shipped_source():
            parts.append(f"prompt {self.prompt_name}")
        if self.temperature:
            parts.append(f"temperature {self.temperature:g}, seed {self.seed}")
        return ", ".join(parts)


class Fact(Frozen):
    """A fact that an answer states, and what the article says of it; `reason` is that of the
    verdict, see `ConceptVerified`.
    """

    text: str
    supported: bool
    verdict: Verdict
    reason: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""


class JudgeInput(Frozen):
    """An answer to be judged: the question it answers, the accepted and the known wrong answers.

    `abstained` says that the method declined, or gave no text: then no model is asked. `article`
    is what its facts are checked against, where they are.
    """

    question: str
    answer: str
    references: tuple[str, ...]
    wrong_answers: tuple[str, ...] = ()
    language: Language = "en"
    abstained: bool = False
    article: Annotated[tuple[str, ...], Field(exclude_if=lambda article: not article)] = ()

    def key(self, judge: str) -> str:
        """Return the key of what the judge with the fingerprint `judge` says of it: 64 digits."""
        return digest([judge, self.model_dump(mode="json")])


class Judgement(Frozen):
    """What a judge said of an answer.

    `grade` is None where its replies name no grade: undecided, which counts as no grade at all.
    `probability` is that of the grade in [0, 1], where the model gives probabilities. `reply` is
    what it wrote. `by` "rule": the answer is none by its form, and no model was asked.
    `facts` are those that a scorer of facts found, in its `run`; None of a judge of answers.
    """

    grade: Grade | None
    probability: float | None = None
    reply: str = ""
    by: Literal["model", "rule"] = "model"
    facts: Annotated[tuple[Fact, ...] | None, Field(exclude_if=lambda facts: facts is None)] = None
    run: Annotated[str, Field(exclude_if=lambda run: not run)] = ""

    @property
    def undecided(self) -> bool:
        """Whether nothing was found: no grade, or no fact that could be checked."""
        return self.grade is None and not self.facts

    @property
    def value(self) -> float | None:
        """1 for correct, 0.5 for partly, 0 for wrong and abstained; None where undecided."""
        return None if self.grade is None else GRADE_VALUES[self.grade]


def listed(texts: Sequence[str]) -> str:
    """Return texts as a list of lines, the first `MAX_REFERENCES` of them."""
    return "\n".join(f"- {text}" for text in texts[:MAX_REFERENCES])


def digest(value: object) -> str:
    """Return what a value of JSON comes to: 64 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
