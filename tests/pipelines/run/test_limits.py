"""What one run may take."""

from __future__ import annotations

import pytest

from pipelines.run.limits import Limits


@pytest.mark.parametrize(
    ("limits", "spent"),
    [
        (Limits(), None),
        (Limits(seconds=60), None),
        (Limits(seconds=59), "time_limit"),
        (Limits(tokens=500), None),
        (Limits(tokens=499), "token_limit"),
        (Limits(seconds=1, tokens=1), "time_limit"),
    ],
)
def test_a_limit_is_passed_when_more_was_taken(limits: Limits, spent: str | None):
    assert limits.spent(seconds=60, tokens=500) == spent
