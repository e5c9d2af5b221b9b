"""Errors of predictions as probabilities, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.metrics import brier, calibration_error
from pipelines.evaluation.statistics.detection import probability_errors
from pipelines.evaluation.statistics.estimates import Sampling

FEW = Sampling(resamples=200)


def test_both_errors_by_hand():
    predictions = np.array([0.9, 0.9, 0.1, 0.1, np.nan])
    events = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    found = probability_errors(predictions, events, [""] * 5, FEW)
    assert found is not None
    # (0.01 + 0.81 + 0.01 + 0.01) / 4, and |1.8 - 1| + |0.2 - 0| by 4.
    assert found.brier.value == pytest.approx(0.21)
    assert found.calibration.value == pytest.approx(0.25)
    assert (found.brier.n, found.calibration.n) == (4, 4)


def test_they_are_those_of_the_metrics_and_lie_in_their_intervals():
    source = np.random.default_rng(2)
    predictions = source.random(300)
    events = (source.random(300) < predictions**2).astype(float)
    groups = [f"g{n // 3}" for n in range(300)]
    found = probability_errors(predictions, events, groups, FEW)
    assert found is not None
    told = predictions.tolist(), (events == 1).tolist()
    for estimate, metric in ((found.brier, brier), (found.calibration, calibration_error)):
        assert estimate.value == pytest.approx(metric(*told))
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < metric(*told) < estimate.high
        assert estimate.groups == 100


def test_what_is_no_probability_has_none():
    events = np.array([1.0, 0.0])
    assert probability_errors(np.array([1.2, 0.1]), events, ["", ""], FEW) is None
    assert probability_errors(np.array([np.nan, np.nan]), events, ["", ""], FEW) is None


def test_one_group_has_no_interval():
    found = probability_errors(np.array([0.9, 0.2]), np.array([1.0, 0.0]), ["g", "g"], FEW)
    assert found is not None
    assert (found.calibration.low, found.calibration.reason) == (None, "too_few_groups")
