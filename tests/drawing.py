"""What a day draws: long tests take a part of what there is, another one every day.

`VERISCOPE_DRAWN` names the day whose part is wanted, such as that of a result that failed.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

DRAWN = "VERISCOPE_DRAWN"
SHARE, LEAST = 5, 1
"""Of the cases of one long test of a front end in a browser a verification takes one in so many,
but no fewer than these."""


_SERVED = ("test_browser", "test_orders")


def seed_of_the_day() -> int:
    """Return the seed: the day as YYYYMMDD, in UTC, where `VERISCOPE_DRAWN` names no other."""
    return int(os.environ.get(DRAWN) or f"{datetime.now(UTC):%Y%m%d}")


def drawn_today() -> Random:
    """Return the day's own source of chance."""
    return Random(seed_of_the_day())


def left_out_today(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of long tests of front ends in a browser that the day does not draw.

    Pages, languages, widths and themes multiply, and each case takes a browser many seconds. Only
    a verification leaves any out, which names the day: a file that is run by itself has all cases.
    """
    if DRAWN not in os.environ:
        return []
    found: defaultdict[tuple[str, Any], list[pytest.Item]] = defaultdict(list)
    for item in items:
        served = "app" in item.path.parts and item.path.name.startswith(_SERVED)
        if served and item.get_closest_marker("verify"):
            found[str(item.path), getattr(item, "originalname", item.name)].append(item)
    drawn = drawn_today()
    return [
        one
        for cases in found.values()
        for one in drawn.sample(cases, max(0, len(cases) - max(LEAST, len(cases) // SHARE)))
    ]


def long_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items with the files of long tests before the others in a verification, that with
    the fewest of them first.

    A file is the work of one process. What is long alone would begin last else, when the other
    processes have nothing left to do.
    """
    every = list(items)
    if DRAWN not in os.environ:
        return every
    count = Counter(str(one.path) for one in every if one.get_closest_marker("verify"))
    return sorted(every, key=lambda one: count.get(str(one.path), len(every)))
