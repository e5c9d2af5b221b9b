"""How verdicts on windows become one."""

from __future__ import annotations

from math import log

import pytest

from pipelines.models.judges.base import Reading
from pipelines.models.judges.reader import Scores, settle


def scores(*shares: float) -> Scores:
    """Scores whose softmax is `shares`."""
    return tuple(log(max(share, 1e-12)) for share in shares)


def test_without_evidence_nothing_is_settled():
    assert settle([]) == Reading(0.0, 0.0, 1.0)


def test_one_window_is_the_verdict():
    assert settle([scores(0.6, 0.1, 0.3)]) == pytest.approx((0.6, 0.1, 0.3))


def test_the_clearest_support_counts():
    windows = [scores(0.1, 0.1, 0.8), scores(0.8, 0.1, 0.1), scores(0.0, 0.0, 1.0)]
    assert settle(windows) == pytest.approx((0.8, 0.1, 0.1))


def test_support_here_and_contradiction_there_share_what_there_is():
    settled = settle([scores(0.9, 0.0, 0.1), scores(0.0, 0.6, 0.4)])
    assert settled == pytest.approx((0.6, 0.4, 0.0))
    assert sum(settled) == pytest.approx(1.0)


def test_a_temperature_above_one_makes_less_sure():
    # Scores of ln 4, 0 and 0 are shares of 4/6; halved they are ln 2: 2/4.
    assert settle([(log(4), 0.0, 0.0)])[0] == pytest.approx(4 / 6)
    assert settle([(log(4), 0.0, 0.0)], temperature=2.0)[0] == pytest.approx(2 / 4)
