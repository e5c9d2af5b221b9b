"""What a visitor chooses beside methods: the evidence, and the main thresholds of the methods.

A field that is left empty stands for the method's default, also where that depends on the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, get_args

import gradio as gr

from app.public.examples import speaks
from app.public.forms import Put, draw_number, typed_number
from app.public.models import OwnModel
from components.compare import default_numbers, setting_words
from components.forms import FormField, setting_fields
from components.messages import Catalogue, named, setting_key
from pipelines.engine.asking import RunPlan, RunRequest
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.registry import METHODS
from pipelines.run.spec import EvidenceSpec, MethodSpec, ModelSpec

NONE = "none"
"""The choice of no evidence at all."""

MAIN: dict[str, tuple[str, ...]] = {
    "rowen": ("threshold",),
    "drad": ("theta_1", "theta_2"),
    "ever": ("max_rounds",),
    "haarag": ("tau_r", "tau_a"),
    "slm": ("threshold",),
}
"""The settings with the largest effect, by method. The workbench has all settings."""

FIELDS: tuple[tuple[str, str], ...] = tuple(
    (method, field) for method, fields in MAIN.items() for field in fields
)
"""Method and field of each control, in the order of the page."""

_OWN = len(OwnModel._fields)


class Choices(NamedTuple):
    """What the fields of the page say, as they come: a visitor's model, evidence, thresholds."""

    own: tuple[str | None, ...] = ()
    evidence: str = ""
    settings: Mapping[str, Mapping[str, str]] = {}

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Choices:
        """Return the choices in the values of `OwnModel`, the evidence and `FIELDS`, in this order.

        What is missing at the end was not chosen.
        """
        own, rest = tuple(fields[:_OWN]), list(fields[_OWN:])
        settings: dict[str, dict[str, str]] = {}
        for (method, field), value in zip(FIELDS, rest[1:], strict=False):
            if typed := str("" if value is None else value).strip():
                settings.setdefault(method, {})[field] = typed
        return cls(own, str(rest[0] or "") if rest else "", settings)

    def methods(self, names: Iterable[str]) -> list[MethodSpec]:
        """Return the chosen methods with their settings, as far as the chosen evidence serves them.

        Raises InvalidInputError for a value outside its bounds, or where no method is left.
        """
        asked = list(names)
        kept = [name for name in asked if name not in self.left_out(asked)]
        if asked and not kept:
            raise failure("asking.no_evidence")
        return [MethodSpec(name=name, settings=self._settings(name)) for name in kept]

    def left_out(self, names: Iterable[str]) -> list[str]:
        """Return the methods that cannot work without evidence, where none was chosen."""
        if self.evidence != NONE:
            return []
        return [name for name in names if name in METHODS and _searches(name)]

    def request(
        self, question: str, names: Iterable[str], models: Mapping[str, ModelSpec]
    ) -> RunRequest:
        """Return what is asked for; with no evidence chosen, no method is left that searches.

        Raises InvalidInputError as `methods` does.
        """
        chosen = self.evidence not in ("", NONE)
        return RunRequest(
            question.strip(),
            methods=self.methods(names),
            models=models,
            evidence=EvidenceSpec(library=self.evidence) if chosen else EvidenceSpec(),
        )

    def _settings(self, name: str) -> dict[str, Any]:
        chosen = {
            field: _read(name, field, typed) for field, typed in self.settings.get(name, {}).items()
        }
        return {**chosen, **(_without(name) if self.evidence == NONE else {})}


def setting_field(method: str, name: str) -> FormField:
    """Return the description of a setting."""
    return setting_fields(METHODS[method])[name]


def _read(method: str, name: str, typed: str) -> float:
    """Return the number that was typed; raises InvalidInputError."""
    field = setting_field(method, name)
    if (value := typed_number(field, typed)) is None:
        kind = phrase("wanted.whole_number" if field.kind is int else "wanted.number")
        facts = {"low": f"{field.low:g}", "high": f"{field.high:g}", "kind": kind}
        raise failure("asking.outside", method=method, setting=name, **facts)
    return value


def foreign_to(plan: RunPlan) -> bool:
    """Return whether the main model would write noise, because it does not speak the question's
    language.

    A model of which nothing is known is assumed to speak it.
    """
    return not speaks(plan.spec.models["main"], plan.question.language)


def default_words(method: str, field: str, t: Catalogue) -> str:
    """Return the default of a setting in words, also where it is calibrated or depends
    on others.
    """
    settings = METHODS[method].settings()
    value = getattr(settings, field)
    if value is not None:
        return setting_words(method, field, value, t)
    unset, key = settings.effective_default(field), setting_key(method, field, t)
    return default_numbers(unset, key, t) or t("space.setting.calibrated")


def evidence_choices(libraries: Sequence[str], t: Catalogue) -> list[tuple[str, str]]:
    """Return every library by its name, and none."""
    return [*((named("library", name, t), name) for name in libraries), (t("space.none"), NONE)]


class ChoiceFields:
    """The controls, drawn into the blocks that are being built, in the order of `Choices.of`."""

    def __init__(self, put: Put, libraries: Sequence[str]) -> None:
        """Draw the fields; `put` makes a component whose words follow the language."""
        self.evidence = put(
            gr.Radio,
            {
                "label": "ask.evidence",
                "info": "space.evidence.help",
                "choices": lambda t: evidence_choices(libraries, t),
            },
            value=libraries[0] if libraries else NONE,
            elem_id="evidence",
        )
        with gr.Row(elem_id="thresholds"):
            self.numbers = [_number(put, method, field) for method, field in FIELDS]
        self.all: list[Any] = [self.evidence, *self.numbers]


def _number(put: Put, method: str, name: str) -> Any:
    field = setting_field(method, name)

    def label(t: Catalogue) -> str:
        return t("space.setting", method=named("method", method, t), setting=field.title(t))

    return draw_number(put, field, label=label, default=partial(default_words, method, name))


def _without(name: str) -> dict[str, Any]:
    """Return the settings with which a method judges without evidence, {} where none is needed."""
    method = METHODS[name]
    info = method.settings_type.model_fields.get("context")
    if info is None or NONE not in get_args(info.annotation):
        return {}
    return {"context": NONE}


def _searches(name: str) -> bool:
    method = METHODS[name]
    try:
        settings = method.settings(_without(name))
    except VeriscopeError:
        settings = method.settings()
    return any(need.reason == "evidence" for need in method.needs(settings))
