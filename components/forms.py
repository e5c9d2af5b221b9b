"""What a form asks for: the fields of a model, each described once for every front end.

Kind, range, choices and default are those of the model's own field. Words are the catalogue's: KEY
is the title of a field, KEY.help explains it, KEY.CHOICE words a choice, and KEY.option is what the
command line says where the explanation speaks of a page. What holds for all fields of a form stands
under the form's own key. `app/forms.py` draws a field in Streamlit, `app/public/forms.py` draws it
in Gradio, and `app/cli/forms.py` makes an option of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.base.words import Catalogue
from pipelines.annotation.types import SessionSpec
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.methods.base import Method, field_bound, field_kind, is_optional
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.ledger import RunLimits
from pipelines.store.filters import RunFilter

M = TypeVar("M", bound=BaseModel)


class Look(NamedTuple):
    """How people are asked for a number.

    `step` is what one press on a control changes, `least` the smallest number that a control
    offers where the model only says "above 0". One unit that people see is `scale` of the model's.
    """

    step: float | None = None
    least: float | None = None
    scale: int = 1


_PLAIN = Look()


@dataclass(frozen=True)
class FormField:
    """A field of a form. The first of `keys` that has a text gives it; `form` has those for all."""

    name: str
    info: FieldInfo
    keys: tuple[str, ...]
    form: str
    look: Look = _PLAIN

    @property
    def kind(self) -> Any:
        """The type of its value, of several values that of each; never None."""
        kind = field_kind(self.info)
        return get_args(kind)[0] if self.several else kind

    @property
    def several(self) -> bool:
        """Whether it holds several values."""
        return get_origin(field_kind(self.info)) is tuple

    @property
    def optional(self) -> bool:
        """Whether it may stay open."""
        return is_optional(self.info)

    @property
    def choices(self) -> tuple[Any, ...]:
        """What can be chosen; () where anything can be given."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def default(self) -> Any:
        """The value that it has where nobody says anything, in the model's unit."""
        return self.info.get_default(call_default_factory=True)

    @property
    def low(self) -> float | None:
        """The least number, None without a bound, in the unit that people see."""
        return self._bound("ge", "gt")

    @property
    def high(self) -> float | None:
        """The greatest number, None without a bound, in the unit that people see."""
        return self._bound("le", "lt")

    def _bound(self, *names: Literal["ge", "gt", "le", "lt"]) -> float | None:
        found = next((b for one in names if (b := field_bound(self.info, one)) is not None), None)
        return found if found is None or self.look.scale == 1 else found / self.look.scale

    def shown(self, value: Any) -> Any:
        """Return a value of the model in the unit that people see."""
        return value if value is None or self.look.scale == 1 else value / self.look.scale

    def kept(self, value: Any) -> Any:
        """Return what people gave in the model's unit."""
        return value if value is None or self.look.scale == 1 else value * self.look.scale

    def key(self, t: Catalogue, end: str = "") -> str:
        """Return the key of its title, or of its text that ends so; "" where there is none."""
        ends = (f"{one}{end}" for one in (*self.keys, *([self.form] if end else [])))
        return next(filter(t.has, ends), "")

    def title(self, t: Catalogue) -> str:
        """Return what it is called."""
        key = self.key(t)
        return t(key) if key else self.name.replace("_", " ").capitalize()

    def help(self, t: Catalogue) -> str | None:
        """Return its explanation; without words the description in the model, else None."""
        key = self.key(t, ".help")
        return t(key) if key else self.info.description

    def empty(self, t: Catalogue) -> str | None:
        """Return what an open field says; None where it says nothing."""
        key = f"{self.form}.none"
        return t(key) if self.optional and t.has(key) else None

    def option(self, t: Catalogue) -> str:
        """Return what the command line says of it."""
        key = self.key(t, ".option") or self.key(t, ".help") or self.key(t)
        default = self.shown(self.default)
        facts = {"default": f"{default:g}" if isinstance(default, float) else default}
        return t(key, **facts, choices=", ".join(map(str, self.choices)))

    def word(self, choice: Any, t: Catalogue) -> str:
        """Return a choice in words."""
        key = f"{self.key(t)}.{choice}"
        return t(key) if t.has(key) else str(choice)


@dataclass(frozen=True)
class Form(Generic[M]):
    """A model that people fill in.

    Its fields have their texts under `key` and their name, or under what `keys` says. `unasked` are
    fields that nobody fills in: they are found out, or follow from something else.
    """

    model: type[M]
    base: str
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    looks: Mapping[str, Look] = field(default_factory=dict)
    unasked: frozenset[str] = frozenset()

    @cached_property
    def fields(self) -> Mapping[str, FormField]:
        """The fields that people fill in, by name, in the model's order."""
        return {
            name: FormField(
                name,
                info,
                self.keys.get(name, (f"{self.base}.{name}",)),
                self.base,
                self.looks.get(name, _PLAIN),
            )
            for name, info in self.model.model_fields.items()
            if name not in self.unasked
        }

    def __getitem__(self, name: str) -> FormField:
        """Return the field of that name."""
        return self.fields[name]


def setting_fields(method: Method[Any]) -> dict[str, FormField]:
    """Return the settings of a method by name, but those that are filled in by other means."""
    return {
        name: FormField(name, info, (f"setting.{method.name}.{name}", f"setting.{name}"), "setting")
        for name, info in method.settings_type.model_fields.items()
        if get_origin(field_kind(info)) is not dict
    }


RUN_LIMITS = Form(
    RunLimits,
    "limit",
    looks={
        "tokens": Look(100),
        "seconds": Look(10, least=1),
        "money": Look(0.01),
        "times": Look(0.5),
    },
)
"""What every run may take."""

BUDGET = Form(Budget, "evaluate.most", looks={"money": Look(0.5), "hours": Look(0.5)})
"""Where an evaluation, or a judge of its answers, stops."""

ANSWERS = Form(
    EvaluationSpec,
    "evaluate.answers",
    keys={
        "seed": ("evaluate.seed",),
        "repeats": ("evaluate.repeats.count", "evaluate.repeats"),
        "reproducible": ("setting.run.reproducible",),
    },
    # The data, the systems and what is measured are chosen by other means.
    unasked=frozenset(EvaluationSpec.model_fields) - {"form", "seed", "repeats", "reproducible"},
)
"""How the systems of an evaluation answer."""

RUN_FILTER = Form(RunFilter, "runs.filter", keys={"text": ("runs.search",)})
"""Which recorded runs are listed."""

PRICE = Form(Price, "models.price")
"""What a million tokens of a model cost."""

MODEL = Form(
    ModelSpec,
    "models",
    keys={
        "base_url": ("models.address",),
        "judge_format": ("models.judge.format",),
        "judge_labels": ("models.judge.labels",),
        "languages": ("models.judge.languages", "models.capability.languages"),
    },
    # A revision stands in the model's id, a price is a form of its own, and what a model can do is
    # found out by a check.
    unasked=frozenset(
        {
            "revision",
            "top_logprobs",
            "prefill",
            "structured_output",
            "weak",
            "judges",
            "unknown",
            "concessions",
            "price",
        }
    ),
)
"""A model that somebody adds."""

SESSION = Form(
    SessionSpec,
    "annotate",
    keys={"tasks": ("annotate.make.which",), "login": ("annotate.login.required",)},
    looks={"too_fast": Look(0.5), "lease": Look(1, scale=60)},
    # Which session it is follows from where its items come from.
)
"""How an annotation session works."""

MAPPING = Form(
    ColumnMapping,
    "evaluate.part",
    keys={
        "separator": ("evaluate.separator",),
        "hallucinated_values": ("evaluate.yes_values",),
        "label_is": ("evaluate.label_is",),
    },
)
"""Which column of a table holds which part of an item."""

FORMS: tuple[Form[Any], ...] = (
    RUN_LIMITS,
    BUDGET,
    ANSWERS,
    RUN_FILTER,
    PRICE,
    MODEL,
    SESSION,
    MAPPING,
)
"""Every form; those of methods' settings are made by `setting_fields`."""
