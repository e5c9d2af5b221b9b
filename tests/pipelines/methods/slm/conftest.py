"""Scales and thresholds that are shipped as a test says, and not as they were measured."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.methods.slm.settings import MEANS
from pipelines.run.findings import JudgeScale


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> JudgeScale:
    """The scale that is shipped for judges "a" and "b"; nothing is for any other."""
    shipped = JudgeScale(mu=0.1, sigma=0.1, n=99, source="calibrated")
    monkeypatch.setattr(
        "pipelines.methods.slm.scores.shipped_scale",
        lambda name, language: shipped if name in "ab" else JudgeScale(),
    )
    return shipped


@pytest.fixture
def thresholds(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Shipped thresholds with a number of their own for every mean, scale and purpose."""
    table = {
        name: {
            key: {mean: round(0.1 + 0.02 * (15 * a + 5 * b + c), 3) for c, mean in enumerate(MEANS)}
            for b, key in enumerate(("phi", "epsilon", "raw"))
        }
        for a, name in enumerate(("f1", "precision"))
    }
    monkeypatch.setattr("pipelines.methods.slm.scores.shipped_thresholds", lambda names: table)
    return table
