"""Work that several callers ask for at the same time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from pipelines.aio import Merger


class Counting:
    """Doubles numbers; the first batch goes on until the gate is opened."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.gate = threading.Event(), threading.Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.begun.set()
        self.gate.wait()
        if any(item < 0 for item in items):
            raise ValueError("below zero")
        return [2 * item for item in items]


def waiting_behind(
    work: Counting, *asked: Sequence[int], most: int = 32
) -> list[Future[list[int]]]:
    """The futures of what is asked for while a first batch is under way."""
    merger = Merger(work, most=most)
    merger.submit([0])
    work.begun.wait()
    return [merger.submit(items) for items in asked]


def test_what_comes_while_a_batch_is_under_way_makes_up_the_next():
    work = Counting()
    futures = waiting_behind(work, [1, 2], [], [3], [4, 5])
    work.gate.set()
    assert [future.result() for future in futures] == [[2, 4], [], [6], [8, 10]]
    assert work.batches == [[0], [1, 2, 3, 4, 5]]


def test_a_batch_ends_with_the_caller_who_fills_it():
    work = Counting()
    futures = waiting_behind(work, [1, 2], [3, 4], [5], [6], most=3)
    work.gate.set()
    assert [future.result() for future in futures] == [[2, 4], [6, 8], [10], [12]]
    assert work.batches == [[0], [1, 2, 3, 4], [5, 6]]


def test_nobody_fails_because_of_another():
    work = Counting()
    good, bad, other = waiting_behind(work, [1], [-1], [2])
    work.gate.set()
    assert (good.result(), other.result()) == ([2], [4])
    with pytest.raises(ValueError, match="below zero"):
        bad.result()
    assert work.batches == [[0], [1, -1, 2], [1], [-1], [2]]


def test_one_who_gives_up_is_not_worked_for():
    work = Counting()
    gone, stays = waiting_behind(work, [1], [2])
    assert gone.cancel()
    work.gate.set()
    assert stays.result() == [4]
    assert work.batches == [[0], [2]]


def test_a_failure_is_the_callers():
    work = Counting()
    work.gate.set()
    merger = Merger(work)
    with pytest.raises(ValueError, match="below zero"):
        merger.submit([-1]).result()
    assert merger.submit([3]).result() == [6]
