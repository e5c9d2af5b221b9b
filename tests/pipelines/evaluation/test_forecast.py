"""Forecasts, with numbers worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.beginning import Range, forecast
from pipelines.evaluation.outcomes import Cost


def test_the_mean_of_each_system_times_what_is_left_of_it():
    paid = {"direct": [Cost(calls=1)] * 2, "drad": [Cost(calls=4, judge_calls=2), Cost(calls=10)]}
    found = forecast(paid, {"direct": 10, "drad": 5})
    # Direct: 10 x 1, and no spread. DRAD: the mean of 6 and 10 is 8, 5 x 8 = 40; the standard
    # deviation is sqrt(8), the error of the mean sqrt(8) / sqrt(2) = 2, twice that times 5 is 20.
    assert found.calls == Range(value=50, low=30, high=70)
    assert (found.answers, found.unknown, found.money) == (15, (), {})


def test_spreads_of_systems_are_independent():
    # Each: mean 2, deviation sqrt(2), error 1, twice that for one answer: 2. Together: sqrt(8).
    paid = {name: [Cost(tokens=1), Cost(prompt_tokens=1, tokens=2)] for name in ("a", "b")}
    found = forecast(paid, {"a": 1, "b": 1})
    assert found.tokens.value == 4
    assert found.tokens.low == pytest.approx(4 - 8**0.5)
    assert found.tokens.high == pytest.approx(4 + 8**0.5)


def test_time_is_shared_by_what_is_worked_on_at_once():
    paid = {"a": [Cost(seconds=10), Cost(seconds=14)]}
    found = forecast(paid, {"a": 6}, at_once=3)
    # 6 x 12 = 72 seconds, two errors are 2 x 2 x 6 = 24; a third of both.
    assert found.seconds == Range(value=24, low=16, high=32)


def test_money_is_told_by_currency():
    paid = {"a": [Cost(money={"USD": 1.0}), Cost(money={"USD": 1.0, "CNY": 4.0})]}
    found = forecast(paid, {"a": 2})
    assert found.money["USD"] == Range(value=2, low=2, high=2)
    # 0 and 4: mean 2, two of them 4; two errors are 2 x 2 x 2 = 8, but nothing is below 0.
    assert found.money["CNY"] == Range(value=4, low=0, high=12)


def test_one_answer_has_no_spread_and_none_is_said():
    found = forecast({"a": [Cost(calls=3)], "b": []}, {"a": 2, "b": 7, "c": 0})
    assert found.calls == Range(value=6)
    # One without ends leaves the sum without.
    both = forecast({"a": [Cost(calls=3)], "b": [Cost(calls=1)] * 2}, {"a": 2, "b": 1})
    assert both.calls == Range(value=7)
    assert (found.answers, found.unknown) == (9, ("b",))


def test_nothing_left_takes_nothing():
    found = forecast({"a": [Cost(calls=1)] * 3}, {"a": 0})
    assert (found.answers, found.calls) == (0, Range(value=0, low=0, high=0))


@given(
    st.lists(st.floats(0, 1e4), min_size=2, max_size=20),
    st.integers(0, 1000),
    st.integers(1, 8),
)
def test_the_forecast_lies_within_its_ends(seconds: list[float], left: int, at_once: int):
    paid = {"a": [Cost(seconds=each) for each in seconds]}
    found = forecast(paid, {"a": left}, at_once=at_once).seconds
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high
    mean = sum(seconds) / len(seconds)
    assert found.value == pytest.approx(mean * left / at_once, abs=1e-6)
