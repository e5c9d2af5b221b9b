"""What a field of settings can hold: its kind, whether it may stay open, and its bounds.

Screens draw their controls from it, studies the values that they try.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo


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
