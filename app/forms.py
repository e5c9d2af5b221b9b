"""Draws the controls of a form in Streamlit, and reads them back.

What a control says and takes is described in `components/forms.py`. A page that lays its form out
by hand takes the words of each control from there (`look_of`), the others draw whole fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import streamlit as st
from pydantic import BaseModel

from components.base.words import Catalogue
from components.forms import Form, FormField, setting_fields
from components.run.compare import default_numbers
from pipelines.methods.base import Method, Settings, is_optional

M = TypeVar("M", bound=BaseModel)


def look_of(field: FormField, t: Catalogue, key: str, **look: Any) -> dict[str, Any]:
    """Return what every control of a field is given: words, key, and that its value is kept.

    `look` is what it is given besides, or instead.
    """
    words = {"label": field.title(t), "help": field.help(t)}
    return {**words, "key": key, "persist_state": "session", **look}


def draw_field(field: FormField, t: Catalogue, key: str, value: Any = None, **look: Any) -> None:
    """Draw the control of a field's kind, which begins with `value`, in the model's unit.

    A number that is None is an open field. `look` is as for `look_of`.
    """
    value, control = field.shown(value), look_of(field, t, key, **look)
    if field.choices:
        options: Any = (None, *field.choices) if field.optional else field.choices
        st.selectbox(
            options=options,
            index=options.index(value) if value in options else 0,
            format_func=lambda one: field.empty(t) or "–" if one is None else field.word(one, t),
            **control,
        )
    elif field.kind is bool:
        st.toggle(value=bool(value), **control)
    elif field.kind is str:
        st.text_area(value=str(value), height=96, **control)
    else:
        _draw_number(field, t, value, control)


def _draw_number(
    field: FormField, t: Catalogue, value: float | None, control: Mapping[str, Any]
) -> None:
    kind: Any = int if field.kind is int else float
    look = field.look
    bounds = {"min_value": look.least or field.low, "max_value": field.high}
    numbers = {**bounds, "value": value, "step": look.step}
    st.number_input(
        **{name: None if one is None else kind(one) for name, one in numbers.items()},
        format=None if kind is int else "%.6g",
        placeholder=field.empty(t),
        **control,
    )


def read_field(field: FormField, key: str, otherwise: Any) -> Any:
    """Return what the control says, in the model's unit; `otherwise` where it was never drawn, or
    was left empty and may not stay open.
    """
    value = st.session_state.get(key)
    if value is None and (key not in st.session_state or not field.optional):
        return otherwise
    return field.kept(value)


def read_form(form: Form[M], scope: str, start: M | None = None) -> M:
    """Return what the controls say that were drawn under `scope`; of one that was never drawn,
    what `start` says.
    """
    known = (start or form.model()).model_dump()
    read = {
        name: read_field(field, f"{scope}.{name}", known[name])
        for name, field in form.fields.items()
    }
    return form.model.model_validate({**known, **read})


def draw_settings(
    method: Method[Any],
    t: Catalogue,
    *,
    scope: str,
    start: Mapping[str, Any] | None = None,
    only: Iterable[str] | None = None,
    disabled: bool = False,
    ends: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """Draw controls for the settings `only` names (all by default), kept under `scope` in the
    session.

    `start` holds the values that the controls begin with, over the method's defaults; `disabled`
    shows controls that cannot be moved now; `ends` are where sliders end, by setting, within the
    bounds of the setting itself.
    """
    known = method.settings(start).model_dump()
    # The effective default of an unset number may depend on the other controls.
    present: Settings = method.settings(read_settings(method, scope=scope, start=start))
    fields = setting_fields(method)
    for name in only or fields:
        if (field := fields.get(name)) is None:
            continue
        place, within = _place(scope, method, name), (ends or {}).get(name)
        if field.optional:
            unset = present.effective_default(name)
            _draw_optional(field, known[name], unset, t, place, within=within, disabled=disabled)
        else:
            _draw_setting(field, known[name], t, place, within=within, disabled=disabled)


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


def forget_settings(method: Method[Any], scope: str) -> None:
    """Have the controls of a method begin anew. Called from a callback."""
    for name in method.settings_type.model_fields:
        place = _place(scope, method, name)
        for key in (place, _switch(place)):
            st.session_state.pop(key, None)


def _draw_setting(
    field: FormField,
    value: Any,
    t: Catalogue,
    place: str,
    *,
    within: tuple[float, float] | None = None,
    **look: Any,
) -> None:
    """Draw a setting: a number between two bounds as a slider, all else as any other field."""
    low, high = field.low, field.high
    # What the visitor chose last, so that drawing again does not ask for two values.
    value = st.session_state.get(place, value)
    if within is not None and low is not None and high is not None:
        # A value beyond the ends, from a profile, stays within reach.
        low, high = max(low, min(within[0], value)), min(high, max(within[1], value))
    if field.kind is not float or low is None or high is None:
        draw_field(field, t, place, value, **look)
        return
    st.slider(
        min_value=float(low),
        max_value=float(high),
        value=float(value),
        step=0.01 if high - low <= 2 else 0.05,
        format="%.2f",
        **look_of(field, t, place, **look),
    )


def _draw_optional(
    field: FormField,
    value: float | None,
    unset: Mapping[str, float],
    t: Catalogue,
    place: str,
    *,
    within: tuple[float, float] | None,
    disabled: bool,
) -> None:
    """Draw a box that is ticked to set a number; `unset` is what applies while it is not ticked."""
    with st.container(gap="xsmall"):
        box = look_of(field, t, _switch(place), disabled=disabled)
        if st.checkbox(value=value is not None, **box):
            if value is None:
                low, high = field.low or 0.0, field.high or 1.0
                value = next(iter(unset.values()), (low + high) / 4)
            look: dict[str, Any] = {"disabled": disabled, "label_visibility": "collapsed"}
            _draw_setting(field, value, t, place, within=within, **look)
        elif unset:
            key = field.key(t)
            words = default_numbers(unset, key, t)
            st.caption(t.first(f"{key}.none", "setting.effective_default", value=words))


def _place(scope: str, method: Method[Any], name: str) -> str:
    return f"{scope}.{method.name}.{name}"


def _switch(place: str) -> str:
    return f"{place}.used"
