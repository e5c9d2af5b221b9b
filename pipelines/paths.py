"""Where the files that ship with the code are."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]

ASSETS = _ROOT / "assets"
"""Prompts, calibrations, weights of the bundled judge, words, style, paper figures."""

SAMPLE_DATA = _ROOT / "sample_data"
"""The sample library, its questions, and the runs recorded on it."""
