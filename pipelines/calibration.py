"""Defaults that the papers leave open, derived from data and shipped under `assets/calibration`.

Each file is written by a command and says which data, model and records it was derived from.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pipelines.paths import ASSETS

_FOLDER = ASSETS / "calibration"


@cache
def calibration(method: str) -> dict[str, Any]:
    """Return the whole calibration file of a method, provenance included; empty when there
    is none.
    """
    path = _FOLDER / f"{method}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def calibrated(method: str, *names: str) -> float | None:
    """Return a calibrated default, under `names` in the file; None where it was never derived."""
    entry = calibration(method)
    for name in names:
        entry = entry.get(name, {})
    return float(entry["value"]) if entry else None
