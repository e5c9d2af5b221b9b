"""Where the files that ship with the code are, and those of an installation."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the project."""

ASSETS = ROOT / "assets"
"""Prompts, calibrations, weights of the bundled judge, words, style, paper figures."""

SAMPLE_DATA = ROOT / "sample_data"
"""The sample library, its questions, and the runs recorded on it."""


def data_folder() -> Path:
    """Return where runs, models and indexes are kept: VERISCOPE_DATA, else `.veriscope` here."""
    return Path(os.environ.get("VERISCOPE_DATA") or ".veriscope").expanduser()


@cache
def product_version() -> str:
    """Return the version of this installation as its files tell it; "" where they do not."""
    try:
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])
    except (OSError, ValueError, KeyError):
        return ""
