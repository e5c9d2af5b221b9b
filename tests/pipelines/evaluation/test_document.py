"""The document on evaluations names every data set and every metric that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.evaluation.datasets.formats import FORMATS, KINDS
from pipelines.evaluation.metrics.table import METRICS

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*KINDS, *METRICS])
def test_each_is_named(name: str):
    assert f"`{name}`" in TEXT


def test_licences_are_those_of_the_formats():
    sets = TEXT.split("## Data sets")[1].split("## Metrics")[0]
    lines = [line for line in sets.splitlines() if line.startswith("| `")]
    for one in FORMATS:
        (line,) = [line for line in lines if f"`{one.kind}`" in line.split("|")[1]]
        assert not one.licence or line.rstrip().endswith(f"{one.licence} |")
