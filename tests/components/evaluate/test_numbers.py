"""Estimates, p values and outcomes in words."""

from __future__ import annotations

import pytest

from components.base.words import Catalogue
from components.evaluate.table import (
    estimate_cell,
    estimate_text,
    metric_head,
    number,
    outcome,
    p_text,
    p_words,
    range_text,
    sampling_text,
)
from pipelines.evaluation.results.scores import MetricInfo
from pipelines.evaluation.statistics.estimates import Estimate, PairedDifference, Sampling
from tests.components.html_tree import read


def pair(value: float | None, p: float | None, adjusted: float | None) -> PairedDifference:
    difference = Estimate(value=value, n=10, groups=10)
    return PairedDifference(
        first="a", second="b", difference=difference, p=p, adjusted=adjusted, test="mcnemar"
    )


@pytest.mark.parametrize(
    ("estimate", "signed", "text"),
    [
        (Estimate(value=0.5312, low=0.4611, high=0.5984), False, "0.53 [0.46, 0.60]"),
        # A very narrow interval deserves a third decimal.
        (Estimate(value=0.5312, low=0.5281, high=0.5339), False, "0.531 [0.528, 0.534]"),
        (Estimate(value=-0.23, low=-0.295, high=0.01), True, "−0.23 [−0.29, +0.01]"),
        (Estimate(value=0.06, low=0.02, high=0.1), True, "+0.06 [+0.02, +0.10]"),
        (Estimate(value=84.3, low=80.2, high=90.7), False, "84 [80, 91]"),
        (Estimate(value=0.5, reason="all_equal"), False, "0.50"),
        (Estimate(value=None, reason="no_items"), False, "–"),
    ],
)
def test_estimates(estimate: Estimate, signed: bool, text: str, t: Catalogue) -> None:
    assert estimate_text(estimate, t, signed=signed) == text


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [(0.0, True, "0.00"), (-0.001, True, "0.00"), (0.001, True, "0.00"), (1234.0, False, "1234")],
)
def test_what_rounds_to_zero_has_no_sign(value: float, signed: bool, text: str) -> None:
    assert number(value, 2, signed=signed) == text


def test_a_cell_says_what_is_missing_and_on_how_many_items(t: Catalogue) -> None:
    estimate = Estimate(value=None, reason="no_items")
    assert t("evaluate.reason.no_items") in read(estimate_cell(estimate, t, items=9)).text()
    fewer = Estimate(value=0.5, low=0.4, high=0.6, n=7, groups=7, method="wilson")
    assert read(estimate_cell(fewer, t, items=9)).text() == "0.50 [0.40, 0.60]n = 7"
    assert read(estimate_cell(fewer, t, items=7)).text() == "0.50 [0.40, 0.60]"


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "–"), (0.0004, "< 0.001"), (0.0342, "= 0.034"), (0.0999, "= 0.10"), (1.0, "= 1.00")],
)
def test_p_values(p: float | None, text: str) -> None:
    assert p_text(p) == text


def test_a_test_says_which_and_what_holm_made_of_it(t: Catalogue) -> None:
    found = pair(0.1, 0.004, 0.012)
    assert p_words(found, 1, t) == "p = 0.004 (mid-p McNemar test)"
    assert p_words(found, 3, t) == (
        "p = 0.004 (mid-p McNemar test); = 0.012 after Holm over 3 pairs"
    )
    assert p_words(pair(None, None, None), 3, t) == "no test"


@pytest.mark.parametrize(
    ("value", "adjusted", "better", "expected"),
    [
        (0.1, 0.01, "higher", "first"),
        (-0.1, 0.01, "higher", "second"),
        (0.1, 0.01, "lower", "second"),
        (0.1, 0.05, "higher", "alike"),
        (0.1, 0.01, None, "unknown"),
        (0.1, None, "higher", "unknown"),
    ],
)
def test_outcomes(value: float, adjusted: float | None, better: str | None, expected: str) -> None:
    info = MetricInfo.model_validate({"name": "accuracy", "better": better})
    assert outcome(pair(value, 0.01, adjusted), info) == expected


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0, 1, "0–1"), (0, None, "≥ 0"), (None, 0, "≤ 0"), (None, None, ""), (-1, 1, "-1–1")],
)
def test_ranges(low: float | None, high: float | None, text: str) -> None:
    assert range_text(MetricInfo(name="m", low=low, high=high)) == text


def test_a_head_says_range_and_direction(t: Catalogue) -> None:
    head, label = metric_head(MetricInfo(name="made_up", better="lower"), t)
    assert label == "made_up 0–1 ↓"
    assert t("papers.better.lower") in read(head).text()
    head, label = metric_head(MetricInfo(name="made_up", low=None, high=None, better=None), t)
    assert (label, read(head).text().strip()) == ("made_up", "made_up")


def test_how_it_was_computed_is_told(t: Catalogue) -> None:
    text = sampling_text(Sampling(seed=7, resamples=2000, level=0.9, versions={"scipy": "1"}), t)
    assert "90 % intervals" in text
    assert "2,000 draws" in text
    assert "seed 7; scipy 1." in text
