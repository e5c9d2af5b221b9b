"""What every method is: its settings, what it needs, and its run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import InvalidInputError, first_problem
from pipelines.models.base import Capabilities
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese
from pipelines.types import Answer, Frozen, Language


class Settings(BaseModel):
    """Base of every method's settings. Screens draw their controls from the fields.

    A field's description says what it does and where its default comes from; its bounds are the
    control's bounds. `REPLAYABLE` names the fields that pages offer on a recorded run: with other
    values for them, most recorded runs can be re-evaluated without a new call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    REPLAYABLE: ClassVar[tuple[str, ...]] = ()

    def effective_default(self, name: str) -> Mapping[str, float]:
        """The number that applies while a field is None, by the option that decides it.

        Several where the available models decide the option; empty where there is no such number.
        """
        return {}


AnswerTokens = Annotated[
    int,
    Field(ge=8, le=1024, description="Longest answer, in tokens (ours: two short sentences)."),
]
"""A limit that several methods set for what they write."""

Wording = Annotated[
    Literal["auto", "model", "sentence"],
    Field(
        description="Who words what evidence corrects: the model (paper), or the sentence of the"
        " evidence nearest to the question, shortened or quoted (ours: where the model is weak)."
    ),
]
"""A choice that every method has which writes from evidence: see `nearest.py`."""

Demonstrations = Annotated[
    Literal["auto", "on", "off"],
    Field(
        description="Whether the model is shown examples with their replies before its own task"
        " (EVER's paper does so for small models; ours: where the model is weak, and EVER's"
        " validation questions for every model)."
    ),
]
"""A choice of the methods that ask for more than an answer."""

S = TypeVar("S", bound=Settings)


class Question(Frozen):
    """The visitor's question and the language it is answered in."""

    text: str
    language: Language

    def is_foreign(self, text: str, *before: str) -> bool:
        """Whether `text` is Chinese, and neither the question nor what it follows on is."""
        chinese = self.language == "zh"
        return not chinese and changes_to_chinese(text, self.text, *before)


class Need(Frozen):
    """Something a method cannot do without. `reason` is a catalogue key under `need.*`.

    `languages` are those the model of `role` must speak, for the reason "languages".
    """

    reason: Literal["evidence", "logprobs", "proxy", "model", "languages"]
    role: str = "main"
    languages: frozenset[Language] = frozenset()

    def unmet(self, models: Mapping[str, Capabilities], *, has_evidence: bool) -> bool:
        """Whether the available models and evidence do not serve this need."""
        if self.reason == "evidence":
            return not has_evidence
        if self.role not in models:
            return True
        can = models[self.role]
        lacking = {
            "model": not can.writes,
            "logprobs": not can.logprobs,
            "proxy": not can.scores,
            "languages": not self.languages <= can.languages,
        }
        return lacking.get(self.reason, False)


class Method(ABC, Generic[S]):
    """A published way to detect or correct hallucinations, or a baseline for one.

    `roles` are the roles beside "main" that it makes use of when they are given to a model;
    `prompts` the prompt files it uses, whose hashes are recorded with a run. What screens have to
    know: `page` shows its runs in detail ("" for none); `judges`: it checks an answer and ends with
    a verdict; `rewrites`: its answer may differ from the one it started from; `grounded`: what it
    writes first, or checks, has passages in view; `baseline`: the five methods are compared with
    it. `effort` is about how many calls of models one question takes, judges among them: where
    calls wait, those of short methods go first. `starts_from` names the baseline whose answer is
    its first draft: one call serves both. For example:

        class Direct(Method[DirectSettings]):
            name = "direct"
            settings_type = DirectSettings
            prompts = (load_prompts("direct"),)

            async def run(self, question, scope, settings):
                async with scope.span("draft") as step:
                    written = await step.write(step.request(direct_messages(question)))
                    step.revised(written)
                return Answer(text=written.text, original=written.text)
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[str, ...]] = ()
    page: ClassVar[str] = ""
    judges: ClassVar[bool] = True
    rewrites: ClassVar[bool] = True
    grounded: ClassVar[bool] = False
    baseline: ClassVar[bool] = False
    effort: ClassVar[int] = 1
    starts_from: ClassVar[str] = ""
    settings_type: type[S]
    prompts: ClassVar[tuple[Prompts, ...]] = ()

    def settings(self, values: Mapping[str, Any] | None = None) -> S:
        """The method's settings with `values` over the defaults; says which value is wrong."""
        try:
            return self.settings_type.model_validate(dict(values or {}))
        except ValidationError as error:
            where, problem = first_problem(error)
            raise InvalidInputError(
                f"Setting {where!r} of {self.name}: {problem}.",
                remedy="Choose a value within the bounds that the control shows.",
            ) from None

    def needs(self, settings: S) -> tuple[Need, ...]:
        """What must be available to run with these settings."""
        return (Need(reason="model"),)

    @abstractmethod
    async def run(self, question: Question, scope: Scope, settings: S) -> Answer:
        """Answer the question, recording every step through `scope`.

        Everything that its pages show has to be recorded: the same function is run again on the
        recorded replies when a setting is changed afterwards. So it must not read anything but
        `scope`, and must not catch `MissingReply`. A method that checks its original answer ends
        the checking with a verdict on "answer".
        """
