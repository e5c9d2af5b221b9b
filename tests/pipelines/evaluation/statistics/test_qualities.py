"""Measures of a detector beside its rankings, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.metrics.detection import brier, calibration_error
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.statistics.detection import (
    BEST,
    QUALITIES,
    score_qualities,
    span_qualities,
)
from pipelines.evaluation.statistics.estimates import Sampling

FEW = Sampling(resamples=200)
NAN = float("nan")


def test_each_is_a_metric_of_detectors():
    assert {METRICS[name].kind for name in QUALITIES} == {"detector"}


def test_measures_of_probabilities_by_hand():
    scores = np.array([0.9, 0.8, 0.4, 0.2, NAN])
    labels = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    (found,) = score_qualities(scores[None], labels[None], [""] * 5, FEW)
    # At 0.9 three of four are told; sensitivity 1/2 and specificity 1, or the other way round.
    assert found["best_accuracy"].value == 0.75
    assert found["best_balanced_accuracy"].value == 0.75
    # Chosen on these items, so no interval would be true.
    assert (found["best_accuracy"].low, found["best_accuracy"].n) == (None, 4)
    assert found["brier"].value == pytest.approx((0.01 + 0.64 + 0.36 + 0.04) / 4)
    # Each in a bin of its own: the mean distance.
    assert found["ece"].value == pytest.approx((0.1 + 0.8 + 0.6 + 0.2) / 4)
    assert found["brier"].low is not None
    assert found["ece_equal_mass"].n == 4


def test_they_are_those_of_the_metrics():
    source = np.random.default_rng(4)
    scores = source.random(200)
    labels = (source.random(200) < scores).astype(float)
    told = scores.tolist(), (labels == 1).tolist()
    (found,) = score_qualities(scores[None], labels[None], [""] * 200, FEW)
    assert found["brier"].value == pytest.approx(brier(*told))
    assert found["ece"].value == pytest.approx(calibration_error(*told))
    mass = found["ece_equal_mass"]
    assert mass.value == pytest.approx(calibration_error(*told, binning="mass"))
    assert mass.low is not None
    assert mass.high is not None
    assert mass.low <= mass.high


def test_each_detector_has_what_its_scores_allow():
    scores = np.array([[3.0, -1.0], [0.5, 0.5], [NAN, NAN], [0.9, 0.2]])
    labels = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    ranked, alike, none, both = score_qualities(scores, labels, ["", ""], FEW)
    # No probabilities; labels of one kind alone; no scores; everything.
    assert set(ranked) == set(BEST)
    assert ranked["best_accuracy"].value == 1
    assert set(alike) == {"brier", "ece", "ece_equal_mass"}
    assert none == {}
    assert set(both) == set(QUALITIES[:7])
    assert (alike["ece"].value, both["ece"].value) == (0.5, pytest.approx(0.15))
    assert score_qualities(np.empty((0, 2)), np.empty((0, 2)), ["", ""], FEW) == []


def test_span_counts_are_summed_before_f1_is_taken():
    # Two texts: 1 of 1 found and marked, of 3 labelled; nothing found of 2 marked, 0 labelled.
    counts = np.array([[1.0, 0.0, NAN], [1.0, 2.0, NAN], [3.0, 0.0, NAN]])
    found = span_qualities({"exact": counts, "iou": np.full((3, 3), NAN)}, ["a", "b", "c"], FEW)
    assert set(found) == {"span_f1_exact"}
    assert found["span_f1_exact"].value == pytest.approx(2 * 1 / (3 + 3))
    assert (found["span_f1_exact"].n, found["span_f1_exact"].groups) == (2, 2)
