"""Events and texts in the form every supported database can hold."""

from __future__ import annotations

from math import isfinite
from typing import Any

from pipelines.run.events import Event, event_adapter
from pipelines.types import Frozen


def clean_text(text: str) -> str:
    """`text` with what a PostgreSQL text column refuses replaced by U+FFFD.

    That is the character NUL, and halves of surrogate pairs, which UTF-8 cannot express.
    """
    return _without_surrogates(text).replace("\x00", "\ufffd")


def to_json(value: Frozen) -> Any:
    """`value` as JSON data.

    Infinite and undefined numbers become the strings "inf", "-inf" and "nan": JSON has no such
    numbers, and a float field reads them back from these strings.
    """
    return _portable(value.model_dump(mode="json"))


def to_body(event: Event) -> dict[str, Any]:
    """What the column `body` holds: the event less the fields that have columns of their own."""
    body = to_json(event)
    return {name: field for name, field in body.items() if name not in ("run", "seq", "kind")}


def from_body(run_id: str, seq: int, kind: str, body: dict[str, Any]) -> Event:
    """The event of a stored row. Raises pydantic's ValidationError if it is none."""
    return event_adapter.validate_python({**body, "run": run_id, "seq": seq, "kind": kind})


def _portable(value: Any) -> Any:
    if isinstance(value, str):
        return _without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, list):
        return [_portable(item) for item in value]
    if isinstance(value, dict):
        return {_portable(name): _portable(item) for name, item in value.items()}
    return value


def _without_surrogates(text: str) -> str:
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
