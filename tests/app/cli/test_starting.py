"""What a command loads before it begins."""

from __future__ import annotations

import subprocess
import sys

from scripts.environment import ROOT

HEAVY = (
    "openai",
    "pandas",
    "sklearn",
    "statsmodels",
    "scipy.stats",
    "truescore",
    "torch",
    "transformers",
)


def test_libraries_of_statistics_and_models_are_loaded_by_what_computes_with_them():
    program = f"import sys, app.cli.main; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
