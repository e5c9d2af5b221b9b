"""What every method is: its settings, what it needs, and its run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from pipelines.base import Answer, Frozen, Language
from pipelines.base import load_wording as load_wording
from pipelines.error_words import first_problem
from pipelines.errors import failure
from pipelines.models.base import Capabilities
from pipelines.prompts import Prompts
from pipelines.run.events import Judged, Score, StepName
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese

# The steps of a method as it declares them, in order: what a diagram of it is drawn from.
#
# A declaration says what a run may do; the events of a run say what it did.


class Stage(NamedTuple):
    """A step of a method, under the name of its spans.

    `also` are further spans that belong to it, mostly inside it. A run may skip an `optional` step,
    and may repeat one that `repeats`, together with the repeating steps before it. Spans that no
    step names only contain other spans.
    """

    step: StepName
    also: tuple[StepName, ...] = ()
    optional: bool = False
    repeats: bool = False

    @property
    def spans(self) -> frozenset[str]:
        """The names of all spans that belong to the step."""
        return frozenset((self.step, *self.also))


class Settings(BaseModel):
    """Base of every method's settings. Screens draw their controls from the fields.

    A field's description says what it does and where its default comes from; its bounds are the
    control's bounds. `REPLAYABLE` names the fields that pages offer on a recorded run: with other
    values for them, most recorded runs can be re-evaluated without a new call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    REPLAYABLE: ClassVar[tuple[str, ...]] = ()

    def effective_default(self, name: str) -> Mapping[str, float]:
        """Return the number that applies while a field is None, by the option that decides it.

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
        " (EVER's paper does so for small models; ours: where the model is weak, EVER's validation"
        " questions for every model, and its support check only where it is switched on)."
    ),
]
"""A choice of the methods that ask for more than an answer."""

S = TypeVar("S", bound=Settings)

_QUERY = 600
"""Characters of a text that are searched for in place of a question: about what an embedder reads
(ours)."""

Checks = Literal["", "answer", "text"]
"""What a method can check that it did not write: "" nothing, "answer" the answer to a known
question, "text" any text."""


class Question(Frozen):
    """The visitor's question and the language it is answered in.

    `about` is the text that a run checks without knowing what was asked; "" where there is a real
    question.
    """

    text: str
    language: Language
    about: str = ""

    @property
    def query(self) -> str:
        """What is searched for: the question, or the beginning of the text that stands alone."""
        return self.about[:_QUERY] or self.text

    def is_foreign(self, text: str, *before: str) -> bool:
        """Return whether `text` is Chinese, and neither the question nor what it follows on is."""
        chinese = self.language == "zh"
        return not chinese and changes_to_chinese(text, self.text, *before)


class Need(Frozen):
    """Something a method cannot do without, or makes use of where it is there (not `required`).

    `reason` is a catalogue key under `need.*`.

    `languages` are those the model of `role` must speak, for the reason "languages". "scores" is
    the probability of each token of a text that is there already: `role` gives it, or one of
    `others`. "question" is the question that a text answers, "speaks" a model of `role` or `others`
    that speaks all `languages`, "writes" that the method does nothing but write.
    """

    reason: Literal[
        "evidence",
        "logprobs",
        "proxy",
        "model",
        "languages",
        "scores",
        "question",
        "speaks",
        "writes",
    ]
    role: str = "main"
    others: tuple[str, ...] = ()
    languages: frozenset[Language] = frozenset()
    required: bool = True

    def unmet(
        self, models: Mapping[str, Capabilities], *, has_evidence: bool, asked: bool = True
    ) -> bool:
        """Return whether the available models and evidence do not serve this need.

        `asked` is False where a text is checked without its question.
        """
        if self.reason == "evidence" or not self.required:
            return self.required and not has_evidence
        if self.reason in ("question", "writes"):
            return self.reason == "writes" or not asked
        if self.reason in ("scores", "speaks"):
            able = [can for role in (self.role, *self.others) if (can := models.get(role))]
            if self.reason == "scores":
                return not any(can.scores for can in able)
            return not any(self.languages <= can.languages for can in able)
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
    its first draft: one call serves both. `own_weights`: it runs on weights trained for it alone,
    so that no choice of many methods holds it. `checks` says what it can check that somebody else
    wrote.
    `flow` are its steps in order, which its page draws.
    For example:

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
    own_weights: ClassVar[bool] = False
    checks: ClassVar[Checks] = ""
    flow: ClassVar[tuple[Stage, ...]] = ()
    settings_type: type[S]
    prompts: ClassVar[tuple[Prompts, ...]] = ()

    def settings(self, values: Mapping[str, Any] | None = None) -> S:
        """Return the method's settings with `values` over the defaults; says which value
        is wrong.
        """
        try:
            return self.settings_type.model_validate(dict(values or {}))
        except ValidationError as error:
            where, problem = first_problem(error)
            raise failure(
                "methods.bad_setting", setting=where, method=self.name, problem=problem
            ) from None

    def needs(self, settings: S) -> tuple[Need, ...]:
        """Return what must be available to run with these settings."""
        return (Need(reason="model"),)

    def needs_for_text(self, settings: S, *, asked: bool) -> tuple[Need, ...]:
        """Return what must be available to check a text that is there already, with these settings.

        `asked` says whether its question is known. A method that measures the probabilities of its
        own text has to say here what it needs to measure those of a given text.
        """
        if not self.checks:
            return (Need(reason="writes"),)
        needs = self.needs(settings)
        return needs if self.checks == "text" else (*needs, Need(reason="question"))

    def ranking(self, event: Judged, settings: Mapping[str, Any]) -> tuple[Score, ...] | None:
        """Return the scores by which a verdict is ranked among others; None: the one that decided.

        A method whose verdict several scores on different scales can decide names one here, or two
        that are compared as ranks; with none at all the verdict has no rank. `settings` are those
        that were recorded.
        """
        return None

    @abstractmethod
    async def run(self, question: Question, scope: Scope, settings: S) -> Answer:
        """Answer the question, recording every step through `scope`.

        Everything that its pages show has to be recorded: the same function is run again on the
        recorded replies when a setting is changed afterwards. So it must not read anything but
        `scope`, and must not catch `MissingReply`. A method that checks its original answer ends
        the checking with a verdict on "answer".
        """


# What a field of settings can hold: its kind, whether it may stay open, and its bounds.
#
# Screens draw their controls from it, studies the values that they try.


def field_kind(field: FieldInfo) -> Any:
    """Return the field's type, without the None of an optional one and without constraints."""
    kind = _without_none(field)
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def is_optional(field: FieldInfo) -> bool:
    """Return whether the field may be None."""
    return get_origin(field.annotation) is not Literal and NoneType in get_args(field.annotation)


def field_bound(field: FieldInfo, name: Literal["ge", "gt", "le", "lt"]) -> Any:
    """Return the minimum or maximum value that the field's constraints allow, None without one."""
    kind = _without_none(field)
    # Those of `Annotated[int, Field(ge=1)] | None` are inside.
    inner = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    constraints = [*field.metadata, *(one for found in inner for one in found.metadata)]
    return next((getattr(one, name) for one in constraints if hasattr(one, name)), None)


def _without_none(field: FieldInfo) -> Any:
    members = [part for part in get_args(field.annotation) if part is not NoneType]
    return members[0] if is_optional(field) else field.annotation
