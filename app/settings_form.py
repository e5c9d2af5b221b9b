"""Draws the controls of a method's settings from its pydantic model, and reads them back.

Labels and explanations come from the catalogue (`setting.<method>.<field>`, with `.help` and
`.<option>`); a field without a text shows its name and its own description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from pydantic.fields import FieldInfo

from components.messages import Catalogue, two_digits
from pipelines.methods.base import Method, Settings

__all__ = ["draw_settings", "forget_settings", "read_settings"]


def draw_settings(
    method: Method[Any],
    t: Catalogue,
    *,
    scope: str,
    start: Mapping[str, Any] | None = None,
    only: Iterable[str] | None = None,
    disabled: bool = False,
) -> None:
    """Controls for the fields `only` names (all by default), kept under `scope` in the session.

    `start` holds the values that the controls begin with, over the method's defaults; `disabled`
    shows controls that cannot be moved now.
    """
    known = method.settings(start).model_dump()
    # The effective default of an unset number may depend on the other controls.
    present: Settings = method.settings(read_settings(method, scope=scope, start=start))
    fields = method.settings_type.model_fields
    drawn = (name for name in only or fields if _has_control(fields[name]))
    for name in drawn:
        control = _Control(method.name, name, fields[name], t, scope, disabled=disabled)
        control.draw(known[name], present.effective_default(name))


def read_settings(
    method: Method[Any], *, scope: str, start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the controls say, where it differs from the method's defaults.

    Fields without a control have the value of `start`, else their default.
    """
    values = dict(start or {})
    for name, field in method.settings_type.model_fields.items():
        place = _place(scope, method.name, name)
        if place in st.session_state:
            values[name] = st.session_state[place]
        if _is_optional(field) and st.session_state.get(_switch(place)) is False:
            values[name] = None
    settings: Settings = method.settings(values)
    defaults = method.settings().model_dump()
    return {k: v for k, v in settings.model_dump().items() if v != defaults[k]}


def forget_settings(method: Method[Any], *, scope: str) -> None:
    """Reset the controls: the next time they are drawn, they begin with the start values."""
    for name in method.settings_type.model_fields:
        place = _place(scope, method.name, name)
        for key in (place, _switch(place)):
            st.session_state.pop(key, None)


class _Control:
    """One field of the settings as a widget."""

    def __init__(
        self,
        method: str,
        name: str,
        field: FieldInfo,
        t: Catalogue,
        scope: str,
        *,
        disabled: bool,
    ) -> None:
        self._method = method
        self._key = f"setting.{method}.{name}"
        self._field = field
        self._t = t
        self._place = _place(scope, method, name)
        self._disabled = disabled
        self._label = t(self._key) if t.has(self._key) else name.replace("_", " ").capitalize()
        worded = f"{self._key}.help"
        self._help = t(worded) if t.has(worded) else field.description or ""

    def draw(self, value: Any, effective_default: Mapping[str, float]) -> None:
        kind = _kind(self._field)
        if get_origin(kind) is Literal:
            self._select(get_args(kind), value)
        elif kind is bool:
            st.toggle(value=bool(self._initial(value)), **self._common())
        elif kind is str:
            st.text_area(value=str(self._initial(value)), height=96, **self._common())
        elif kind is int:
            low, high = _bounds(self._field)
            st.number_input(
                min_value=_whole(low),
                max_value=_whole(high),
                value=int(self._initial(value)),
                step=1,
                **self._common(),
            )
        elif _is_optional(self._field):
            self._optional(value, effective_default)
        else:
            self._slide(float(self._initial(value)))

    def _select(self, options: tuple[str, ...], value: str) -> None:
        def word(option: str) -> str:
            key = f"{self._key}.{option}"
            return self._t(key) if self._t.has(key) else option

        chosen = self._initial(value)
        st.selectbox(
            options=options, index=options.index(chosen), format_func=word, **self._common()
        )

    def _optional(self, value: float | None, effective_default: Mapping[str, float]) -> None:
        low, high = _bounds(self._field)
        resting = next(iter(effective_default.values()), ((low or 0.0) + (high or 1.0)) / 4)
        with st.container(gap="xsmall"):
            used = st.checkbox(
                self._label,
                value=value is not None,
                key=_switch(self._place),
                help=self._help or None,
                disabled=self._disabled,
                persist_state="session",
            )
            if used:
                start = float(self._initial(resting if value is None else value))
                self._slide(start, label_visibility="collapsed")
            elif effective_default:
                words = self._by_default(effective_default)
                st.caption(
                    self._t.first(f"{self._key}.none", "setting.effective_default", value=words)
                )

    def _by_default(self, effective_default: Mapping[str, float]) -> str:
        """The number, or each with what it is the number of where several are possible."""
        if len(effective_default) == 1:
            return two_digits(next(iter(effective_default.values())))
        named = (
            self._t(
                "setting.effective_default_option",
                value=two_digits(value),
                option=self._t(f"setting.{self._method}.{option}"),
            )
            for option, value in effective_default.items()
        )
        return self._t("list.separator").join(named)

    def _slide(self, value: float, **look: Any) -> None:
        low, high = _bounds(self._field)
        if low is None or high is None:
            st.number_input(value=value, **look, **self._common())
            return
        step = 0.01 if high - low <= 2 else 0.05
        st.slider(
            min_value=float(low),
            max_value=float(high),
            value=value,
            step=step,
            format="%.2f",
            **look,
            **self._common(),
        )

    def _initial(self, value: Any) -> Any:
        """What the visitor chose last, so that drawing again does not ask for two values."""
        return st.session_state.get(self._place, value)

    def _common(self) -> dict[str, Any]:
        return {
            "label": self._label,
            "help": self._help or None,
            "key": self._place,
            "disabled": self._disabled,
            "persist_state": "session",
        }


def _place(scope: str, method: str, name: str) -> str:
    return f"{scope}.{method}.{name}"


def _switch(place: str) -> str:
    return f"{place}.used"


def _kind(field: FieldInfo) -> Any:
    """The field's type, without the None of an optional one."""
    members = [part for part in get_args(field.annotation) if part is not NoneType]
    return members[0] if _is_optional(field) else field.annotation


def _has_control(field: FieldInfo) -> bool:
    """Whether there is something to choose; mappings are filled in by other means."""
    return get_origin(_kind(field)) is not dict


def _is_optional(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is not Literal and NoneType in get_args(field.annotation)


def _bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    """The minimum and the maximum value that the field's constraints allow."""
    found: dict[str, float] = {}
    for constraint in field.metadata:
        for name in ("ge", "le"):
            if (value := getattr(constraint, name, None)) is not None:
                found[name] = float(value)
    return found.get("ge"), found.get("le")


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
