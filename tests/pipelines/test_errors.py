"""Errors that come from another process."""

from __future__ import annotations

import pickle

import pytest

from pipelines.errors import BusyError, RateLimitError, VeriscopeError


@pytest.mark.parametrize(
    "error",
    [
        BusyError("Too many.", remedy="Wait.", provider="p"),
        RateLimitError("Slow down.", remedy="Wait.", retry_after=3.5),
    ],
)
def test_they_arrive_as_they_were(error: VeriscopeError):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.info() == error.info()
    assert vars(found) == vars(error)
