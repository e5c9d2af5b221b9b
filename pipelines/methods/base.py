"""What every method is: settings, needs, a run, and a pure decision that can be taken again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import InvalidInputError
from pipelines.models.base import Capabilities
from pipelines.prompts import Prompts
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.run.trace import Trace
from pipelines.types import Answer, Frozen, Language

__all__ = ["Decision", "Method", "Need", "Question", "Settings"]


class Settings(BaseModel):
    """Base of every method's settings. Screens draw their controls from the fields.

    A field's description says what it does and where its default comes from; its bounds are the
    control's bounds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def stands_for(self, name: str) -> Mapping[str, float]:
        """The number that a field stands for while it is None, by the option that settles it.

        Several where the models at hand settle the option; none where there is no such number.
        """
        return {}


S = TypeVar("S", bound=Settings)


class Question(Frozen):
    """The visitor's question and the language it is answered in."""

    text: str
    language: Language


class Need(Frozen):
    """Something a method cannot do without. `reason` is a catalogue key under `need.*`.

    `languages` are those the model of `role` must speak, for the reason "languages".
    """

    reason: Literal["evidence", "logprobs", "proxy", "model", "verifier", "languages"]
    role: str = "main"
    languages: frozenset[Language] = frozenset()

    def unmet(self, models: Mapping[str, Capabilities], *, has_evidence: bool) -> bool:
        """Whether what is at hand does not serve this need."""
        if self.reason == "evidence":
            return not has_evidence
        if self.role not in models:
            return True
        can = models[self.role]
        lacking = {
            "model": not can.writes,
            "verifier": not can.writes,
            "logprobs": not can.logprobs,
            "proxy": not can.scores,
            "languages": not self.languages <= can.languages,
        }
        return lacking.get(self.reason, False)


class Decision(Frozen):
    """What a method concludes from recorded scores, for given settings.

    `flagged` says whether a hallucination was found and `score` is the number that settled it.
    `answer` is known when every step it rests on was recorded; otherwise `diverges_at` names the
    first step (a draft's number) from which the run would go another way, and a new run is needed;
    `reason` says why (a catalogue key under `diverges.*`).
    """

    flagged: bool
    score: Score | None = None
    answer: Answer | None = None
    diverges_at: int | None = None
    reason: str = ""
    detail: dict[str, Any] = Field(default_factory=dict)


class Method(ABC, Generic[S]):
    """A published way to detect or correct hallucinations, or a baseline for one.

    `roles` are the roles beside "main" that it makes use of when they are given to a model.
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[str, ...]] = ()
    settings_type: type[S]
    prompts: ClassVar[tuple[Prompts, ...]] = ()

    def settings(self, values: Mapping[str, Any] | None = None) -> S:
        """The method's settings with `values` over the defaults; says which value is wrong."""
        try:
            return self.settings_type.model_validate(dict(values or {}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidInputError(
                f"Setting {where!r} of {self.name}: {first['msg']}.",
                remedy="Choose a value within the bounds that the control shows.",
            ) from None

    def needs(self, settings: S) -> tuple[Need, ...]:
        """What must be at hand to run with these settings."""
        return (Need(reason="model"),)

    @abstractmethod
    async def run(self, question: Question, scope: Scope, settings: S) -> Answer:
        """Answer the question, recording every step through `scope`."""

    @abstractmethod
    def decide(self, trace: Trace, settings: S) -> Decision:
        """Decide again from what was recorded, without a call; pure."""
