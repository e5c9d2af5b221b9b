"""Random worlds for tests of properties: some for every change, all of them before a release."""

from __future__ import annotations

from typing import Any

import pytest

SHARE = 4
"""`make test` takes one world in so many; `make verify` takes all."""


def worlds(count: int) -> list[Any]:
    """Seeds 0 to `count` - 1, as parameters of a test."""
    return [
        pytest.param(seed, marks=() if seed < count // SHARE else pytest.mark.verify)
        for seed in range(count)
    ]
