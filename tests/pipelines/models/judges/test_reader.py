"""How verdicts on windows become one."""

from __future__ import annotations

from math import log

import pytest

from pipelines.models.judges.base import Reading
from pipelines.models.judges.reader import Scaling, Scores, settle


def scores(*shares: float) -> Scores:
    """Scores whose softmax is `shares`."""
    return tuple(log(max(share, 1e-12)) for share in shares)


def test_without_evidence_nothing_is_settled():
    assert settle([]) == Reading(0.0, 0.0, 1.0)


def test_one_window_is_the_verdict():
    assert settle([scores(0.6, 0.1, 0.3)]) == pytest.approx((0.6, 0.1, 0.3))


def test_the_clearest_support_counts():
    windows = [scores(0.1, 0.1, 0.8), scores(0.8, 0.1, 0.1), scores(0.0, 0.0, 1.0)]
    # The first window has contradiction to silence as one to eight.
    assert settle(windows) == pytest.approx((0.8, 0.2 / 9, 0.2 * 8 / 9))


def test_what_is_not_supported_is_shared_as_the_first_window_says():
    # Of the half that is left after the support elsewhere, three quarters contradict.
    settled = settle([scores(0.2, 0.6, 0.2), scores(0.5, 0.0, 0.5)])
    assert settled == pytest.approx((0.5, 0.5 * 0.75, 0.5 * 0.25))
    assert sum(settled) == pytest.approx(1.0)


def test_a_temperature_above_one_makes_less_sure():
    # Scores of ln 4, 0 and 0 are shares of 4/6; halved they are ln 2: 2/4.
    assert settle([(log(4), 0.0, 0.0)])[0] == pytest.approx(4 / 6)
    assert settle([(log(4), 0.0, 0.0)], Scaling(temperature=2.0))[0] == pytest.approx(2 / 4)


def test_offsets_are_added_to_what_the_temperature_leaves():
    # ln 4 / 2 + ln 3 is ln 6: shares of 6, 1 and 1.
    scaling = Scaling(2.0, (log(3), 0.0, 0.0))
    assert settle([(log(4), 0.0, 0.0)], scaling)[0] == pytest.approx(6 / 8)


def test_the_lean_shares_what_is_not_supported():
    # Shares of 1, 1 and 1: two thirds are not supported, of which ln 3 gives contradiction 3 of 4.
    reading = settle([(0.0, 0.0, 0.0)], Scaling(lean=log(3)))
    assert reading == pytest.approx((1 / 3, 2 / 3 * 3 / 4, 2 / 3 * 1 / 4))


def test_scores_beyond_all_measure_are_no_error():
    assert settle([(0.0, -2000.0, 2000.0)]) == pytest.approx((0.0, 0.0, 1.0))
    assert settle([(0.0, 2000.0, -2000.0)]) == pytest.approx((0.0, 1.0, 0.0))
