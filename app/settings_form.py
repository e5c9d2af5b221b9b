"""Draws the controls of a method's settings from its pydantic model, and reads them back.

Labels and explanations come from the catalogue (see `setting_key`, with `.help` and `.<option>`); a
field without a text shows its name and its own description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from pydantic.fields import FieldInfo

from components.compare import default_numbers
from components.messages import Catalogue, setting_key
from pipelines.methods.base import Method, Settings
from pipelines.methods.controls import field_bound, field_kind, is_optional


def draw_settings(
    method: Method[Any],
    t: Catalogue,
    *,
    scope: str,
    start: Mapping[str, Any] | None = None,
    only: Iterable[str] | None = None,
    disabled: bool = False,
) -> None:
    """Draw controls for the fields `only` names (all by default), kept under `scope` in the
    session.

    `start` holds the values that the controls begin with, over the method's defaults; `disabled`
    shows controls that cannot be moved now.
    """
    known = method.settings(start).model_dump()
    # The effective default of an unset number may depend on the other controls.
    present: Settings = method.settings(read_settings(method, scope=scope, start=start))
    fields = method.settings_type.model_fields
    for name in only or fields:
        if get_origin(field_kind(fields[name])) is dict:
            # Filled in by other means.
            continue
        key = setting_key(method.name, name, t)
        own = f"setting.{method.name}.{name}.help"
        worded = own if t.has(own) else f"{key}.help"
        common = {
            "label": t(key) if t.has(key) else name.replace("_", " ").capitalize(),
            "help": (t(worded) if t.has(worded) else fields[name].description) or None,
            "key": _place(scope, method, name),
            "disabled": disabled,
            "persist_state": "session",
        }
        if is_optional(fields[name]):
            unset = present.effective_default(name)
            _draw_optional(fields[name], known[name], unset, key, t, common)
        else:
            _draw(fields[name], known[name], key, t, common)


def read_settings(
    method: Method[Any], *, scope: str, start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what the controls say, where it differs from the method's defaults.

    Fields without a control have the value of `start`, else their default.
    """
    values = dict(start or {})
    for name, field in method.settings_type.model_fields.items():
        place = _place(scope, method, name)
        if place in st.session_state:
            values[name] = st.session_state[place]
        if is_optional(field) and st.session_state.get(_switch(place)) is False:
            values[name] = None
    settings: Settings = method.settings(values)
    defaults = method.settings().model_dump()
    return {k: v for k, v in settings.model_dump().items() if v != defaults[k]}


def _draw(field: FieldInfo, value: Any, key: str, t: Catalogue, common: Mapping[str, Any]) -> None:
    """Draw the control of a field's kind; `key` is the catalogue's, `common` what all
    controls take.
    """
    kind = field_kind(field)
    low, high = field_bound(field, "ge"), field_bound(field, "le")
    # What the visitor chose last, so that drawing again does not ask for two values.
    value = st.session_state.get(common["key"], value)
    if get_origin(kind) is Literal:

        def word(option: str) -> str:
            return t(f"{key}.{option}") if t.has(f"{key}.{option}") else option

        options = get_args(kind)
        st.selectbox(options=options, index=options.index(value), format_func=word, **common)
    elif kind is bool:
        st.toggle(value=bool(value), **common)
    elif kind is str:
        st.text_area(value=str(value), height=96, **common)
    elif kind is int:
        st.number_input(min_value=low, max_value=high, value=int(value), step=1, **common)
    elif low is None or high is None:
        st.number_input(value=float(value), **common)
    else:
        st.slider(
            min_value=float(low),
            max_value=float(high),
            value=float(value),
            step=0.01 if high - low <= 2 else 0.05,
            format="%.2f",
            **common,
        )


def _draw_optional(
    field: FieldInfo,
    value: float | None,
    unset: Mapping[str, float],
    key: str,
    t: Catalogue,
    common: Mapping[str, Any],
) -> None:
    """Draw a box that is ticked to set a number; `unset` is what applies while it is not ticked."""
    with st.container(gap="xsmall"):
        box = {**common, "key": _switch(common["key"])}
        if st.checkbox(value=value is not None, **box):
            if value is None:
                low, high = field_bound(field, "ge") or 0.0, field_bound(field, "le") or 1.0
                value = next(iter(unset.values()), (low + high) / 4)
            _draw(field, value, key, t, {**common, "label_visibility": "collapsed"})
        elif unset:
            words = default_numbers(unset, key, t)
            st.caption(t.first(f"{key}.none", "setting.effective_default", value=words))


def _place(scope: str, method: Method[Any], name: str) -> str:
    return f"{scope}.{method.name}.{name}"


def _switch(place: str) -> str:
    return f"{place}.used"
