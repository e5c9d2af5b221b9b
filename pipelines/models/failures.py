"""The failures of models, whose words are in assets/failures.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from pipelines.errors import ErrorInfo, VeriscopeError, revived
from pipelines.paths import ASSETS


def failure(name: str, provider: str | None, /, **facts: object) -> VeriscopeError:
    """The error that the file has under `name` ("loading.gated"), with `facts` put into its words.

    It is of the class of `pipelines.errors` that has its code.
    """
    group, _, key = name.partition(".")
    said = _table()[group][key]
    message, remedy = (said[part].format_map(facts) for part in ("message", "remedy"))
    return revived(ErrorInfo(code=said["code"], message=message, remedy=remedy, provider=provider))


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ASSETS / "failures.toml").read_text(encoding="utf-8"))
