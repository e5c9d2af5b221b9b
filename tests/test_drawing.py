"""What the day draws of long tests in a browser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.drawing import DRAWN, LEAST, SHARE, left_out_today, long_first


def case(file: str, function: str, number: int, mark: str = "verify") -> Any:
    return SimpleNamespace(
        path=Path(file),
        name=f"{function}[{number}]",
        originalname=function,
        get_closest_marker=lambda name: name == mark or None,
    )


MANY = SHARE * (LEAST + 1)
ITEMS = [
    *(case("app/test_browser_axe.py", "test_a", number) for number in range(MANY)),
    *(case("app/test_browser_axe.py", "test_b", number) for number in range(LEAST)),
    *(case("app/test_browser_axe.py", "test_c", number) for number in range(LEAST + 1)),
    *(case("app/test_browser_axe.py", "test_d", number, "slow") for number in range(MANY)),
    *(case("components/test_browser_use.py", "test_a", number) for number in range(MANY)),
    *(case("app/test_worlds.py", "test_a", number) for number in range(MANY)),
]


def test_a_day_leaves_out_what_is_too_much_of_one_long_test(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(DRAWN, raising=False)
    assert left_out_today(ITEMS) == []
    monkeypatch.setenv(DRAWN, "20261128")
    left_out = left_out_today(ITEMS)
    assert Counter(one.name.partition("[")[0] for one in left_out) == {
        "test_a": MANY - LEAST - 1,
        "test_c": 1,
    }
    # Both processes of a verification leave out the same.
    assert left_out_today(ITEMS) == left_out
    drawn = set[str]()
    for day in range(1, 29):
        monkeypatch.setenv(DRAWN, f"202611{day:02}")
        drawn |= {one.name for one in ITEMS[:MANY] if one not in left_out_today(ITEMS)}
    assert drawn == {one.name for one in ITEMS[:MANY]}


def test_a_verification_begins_with_the_files_of_few_long_tests(monkeypatch: pytest.MonkeyPatch):
    short = [case("app/test_page.py", "test_a", number, "slow") for number in range(2)]
    one = [case("kills/test_kills.py", "test_a", 0)]
    items = [*short, *ITEMS, *one]
    monkeypatch.delenv(DRAWN, raising=False)
    assert long_first(items) == items
    monkeypatch.setenv(DRAWN, "20261128")
    ordered = long_first(items)
    assert ordered[0] is one[0]
    assert ordered[-2:] == short
    assert Counter(map(id, ordered)) == Counter(map(id, items))
