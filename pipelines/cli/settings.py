"""Settings of methods as they are given on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pipelines.errors import InvalidInputError


def read_settings(
    names: Iterable[str], assignments: Sequence[str], remedy: str
) -> dict[str, dict[str, Any]]:
    """Name to settings, from assignments "NAME.SETTING=VALUE"; values are JSON, else text.

    Raises InvalidInputError, with `remedy`, for an assignment that names no setting of these.
    """
    settings: dict[str, dict[str, Any]] = {name: {} for name in names}
    for assignment in assignments:
        target, _, value = assignment.partition("=")
        name, _, field = target.partition(".")
        if name not in settings or not field or not value:
            raise InvalidInputError(
                f"--set {assignment!r} names no setting of a chosen method.", remedy=remedy
            )
        try:
            settings[name][field] = json.loads(value)
        except json.JSONDecodeError:
            settings[name][field] = value
    return settings
