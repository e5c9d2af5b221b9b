"""The points of a study: which settings take which values, all combinations of them.

Example::

    axes = [read_axis(get_method("drad"), "theta_1=0.5:0.6:0.02")]
    points(axes)  # ({"theta_1": 0.5}, {"theta_1": 0.52}, ...)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from math import floor, isfinite
from typing import Any, Literal, get_args, get_origin

import numpy as np

from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.methods.base import Method, field_bound, field_kind, is_optional

MAX_AXES = 2
MAX_POINTS = 200
_STEPS = 21
"""Values of a number that nobody chose values for."""

Value = str | int | float | bool | None


class Axis(Frozen):
    """A setting and the values that it takes in a study, in the order of the study."""

    name: str
    values: tuple[Value, ...]


def default_axis(method: Method[Any], name: str) -> Axis:
    """Return the values of a setting over its whole range: every option, or 21 numbers at most.

    Raises InvalidInputError for a setting that the method has not, and for one that has no range.
    """
    field = _field(method, name)
    kind = field_kind(field)
    if get_origin(kind) is Literal:
        return Axis(name=name, values=get_args(kind))
    if kind is bool:
        return Axis(name=name, values=(False, True))
    low, high = (field_bound(field, end) for end in ("ge", "le"))
    if kind not in (int, float) or low is None or high is None:
        raise failure("study.no_range", setting=name, method=method.name)
    steps = np.linspace(low, high, _STEPS)
    if kind is int:
        return Axis(name=name, values=tuple(sorted({round(float(step)) for step in steps})))
    return Axis(name=name, values=tuple(_tidy(float(step)) for step in steps))


def read_axis(method: Method[Any], text: str) -> Axis:
    """Return a setting as it is written for a study.

    "NAME" takes its whole range, "NAME=A,B,C" these values, "NAME=FIRST:LAST:STEP" numbers from
    FIRST to LAST. Raises InvalidInputError saying what is wrong.
    """
    name, sign, listed = (part.strip() for part in text.partition("="))
    if not sign:
        return default_axis(method, name)
    field = _field(method, name)
    values = _range(listed) if ":" in listed else [_value(one) for one in listed.split(",")]
    if not is_optional(field) and None in values:
        raise failure("study.no_null", setting=name, method=method.name)
    # The method says what it does not take.
    known = [getattr(method.settings({name: value}), name) for value in values]
    if not all(isinstance(value, get_args(Value)) for value in known):
        raise failure("study.no_single_value", setting=name, method=method.name)
    return Axis(name=name, values=tuple(dict.fromkeys(known)))


def checked_axes(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return `axes`, where there are one or two and not too many points. Raises
    InvalidInputError.
    """
    names = [axis.name for axis in axes]
    if not 1 <= len(names) <= MAX_AXES or len(set(names)) < len(names):
        raise failure("study.wrong_settings", names=", ".join(names) or "none")
    count = int(np.prod([len(axis.values) for axis in axes]))
    if not 1 <= count <= MAX_POINTS:
        raise failure("study.many_points", count=count, most=MAX_POINTS)
    return tuple(axes)


def points(axes: Sequence[Axis]) -> tuple[dict[str, Value], ...]:
    """Return all combinations of the values, the last setting changing first."""
    names = [axis.name for axis in axes]
    found = product(*(axis.values for axis in axes))
    return tuple(dict(zip(names, values, strict=True)) for values in found)


def point_label(values: Mapping[str, Value]) -> str:
    """Return a point in words: "theta_1=0.6, pooling=mean"."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in values.items())


def value_text(value: Value) -> str:
    """Return a value as people write it; "null" where the setting is left open."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)


def _field(method: Method[Any], name: str) -> Any:
    fields = method.settings_type.model_fields
    if name not in fields:
        first = method.settings_type.REPLAYABLE
        known = ", ".join([*first, *(one for one in fields if one not in first)])
        raise failure("study.no_setting", method=method.name, setting=name, known=known)
    return fields[name]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text.strip()


def _range(text: str) -> list[float]:
    parts = text.split(":")
    try:
        first, last, step = map(float, parts)
    except ValueError:
        first, last, step = 0.0, 0.0, 0.0
    if len(parts) != 3 or not all(map(isfinite, (first, last, step))) or step <= 0 or last < first:
        raise failure("study.bad_range", text=text)
    steps = (last - first) / step
    # A tiny step makes more of them than a number can say.
    count = floor(steps + 1e-9) + 1 if isfinite(steps) else None
    if count is None or count > MAX_POINTS:
        many = "too many" if count is None else f"{count:,}"
        raise failure("study.long_range", text=text, many=many, most=MAX_POINTS)
    return [_tidy(first + number * step) for number in range(count)]


def _tidy(number: float) -> float:
    """Return the number without what rounding adds: 0.1 + 0.2 is 0.3."""
    return float(f"{number:.10g}")
