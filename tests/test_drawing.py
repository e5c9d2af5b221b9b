"""What the day draws of long tests in a browser."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.drawing import DRAWN, MOST, left_out_today


def case(file: str, function: str, number: int, mark: str = "verify") -> Any:
    return SimpleNamespace(
        path=Path(file),
        name=f"{function}[{number}]",
        originalname=function,
        get_closest_marker=lambda name: name == mark or None,
    )


ITEMS = [
    *(case("test_browser_axe.py", "test_a", number) for number in range(MOST + 4)),
    *(case("test_browser_axe.py", "test_b", number) for number in range(MOST)),
    *(case("test_browser_axe.py", "test_c", number, "alone") for number in range(MOST + 4)),
    *(case("test_worlds.py", "test_a", number) for number in range(MOST + 4)),
]


def test_a_day_leaves_out_what_is_too_much_of_one_long_test(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(DRAWN, raising=False)
    assert left_out_today(ITEMS) == []
    monkeypatch.setenv(DRAWN, "20261128")
    left_out = left_out_today(ITEMS)
    assert len(left_out) == 4
    assert all(one in ITEMS[: MOST + 4] for one in left_out)
    # Both processes of a verification leave out the same.
    assert left_out_today(ITEMS) == left_out
    others = set()
    for day in range(1, 29):
        monkeypatch.setenv(DRAWN, f"202611{day:02}")
        others |= {one.name for one in left_out_today(ITEMS)}
    assert others == {one.name for one in ITEMS[: MOST + 4]}
