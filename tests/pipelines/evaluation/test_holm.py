"""Holm's correction, by hand and against statsmodels."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from pipelines.evaluation.statistics.estimates import holm


def test_by_hand():
    # 0.01 x 3 = 0.03; 0.02 x 2 = 0.04; 0.03 x 1 = 0.03, not below the one before it.
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_as_statsmodels(values: list[float]):
    # It collects all garbage of the process each time, which takes a second in a large one.
    with mock.patch("gc.collect"):
        reference = np.asarray(multipletests(values, method="holm")[1])
    assert holm(values) == pytest.approx(reference.tolist())
