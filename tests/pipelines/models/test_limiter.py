"""Calls that share slots, and calls that have them all."""

from __future__ import annotations

import asyncio
import contextlib

from pipelines.models.hosted import PATIENCE, Limiter


class Visits:
    """Lets calls in and out of a limiter by name."""

    def __init__(self, slots: int | None = None) -> None:
        self.now = 0.0
        self.limiter = Limiter(slots, clock=lambda: self.now)
        self.inside: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, *, exclusive: bool = False, effort: int = 1) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._visit(name, exclusive, effort))
        await settle()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tasks[name]
        await settle()

    async def take_turns(self) -> list[str]:
        """Let the one inside leave until nobody is left; the order in which they were inside."""
        order: list[str] = []
        while self.inside:
            (name,) = self.inside
            order.append(name)
            await self.leave(name)
        return order

    async def _visit(self, name: str, exclusive: bool, effort: int) -> None:
        async with self.limiter.slot(exclusive=exclusive, effort=effort):
            self.inside.append(name)
            try:
                await self._leave[name].wait()
            finally:
                self.inside.remove(name)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_ordinary_calls_share():
    visits = Visits()
    await visits.come("a")
    await visits.come("b")
    assert visits.inside == ["a", "b"]


async def test_no_more_calls_are_let_in_than_there_are_slots_first_come_first_served():
    visits = Visits(2)
    for name in "abcd":
        await visits.come(name)
    assert visits.inside == ["a", "b"]
    assert visits.limiter.busy == 2
    await visits.leave("a")
    assert visits.inside == ["b", "c"]
    await visits.leave("b")
    await visits.leave("c")
    await visits.leave("d")
    assert visits.limiter.busy == 0


async def test_calls_of_short_work_go_first_and_equal_ones_in_the_order_they_came():
    visits = Visits(1)
    for name, effort in (("first", 20), ("b20", 20), ("c20", 20), ("d2", 2), ("e1", 1), ("f1", 1)):
        await visits.come(name, effort=effort)
    assert await visits.take_turns() == ["first", "e1", "f1", "d2", "b20", "c20"]


async def test_short_work_that_comes_later_and_later_does_not_keep_long_work_waiting():
    visits = Visits(1)
    await visits.come("inside")
    await visits.come("long", effort=20)
    for at in (18, 19, 20):
        visits.now = at * PATIENCE
        await visits.come(f"short {at}", effort=1)
    # Within 19 steps of patience it is overtaken; calls that come after that wait behind it.
    assert await visits.take_turns() == ["inside", "short 18", "long", "short 19", "short 20"]


async def test_an_exclusive_call_that_waits_is_overtaken_by_shorter_work_only():
    visits = Visits(2)
    await visits.come("first", effort=20)
    await visits.come("exclusive", exclusive=True, effort=5)
    await visits.come("long", effort=20)
    assert visits.inside == ["first"]
    await visits.come("short", effort=1)
    assert visits.inside == ["first", "short"]
    await visits.leave("first")
    await visits.leave("short")
    assert visits.inside == ["exclusive"]


async def test_an_exclusive_call_has_all_slots_and_is_not_overtaken():
    visits = Visits(2)
    await visits.come("first")
    await visits.come("exclusive", exclusive=True)
    await visits.come("last")
    assert visits.inside == ["first"]
    await visits.leave("first")
    assert (visits.inside, visits.limiter.busy) == (["exclusive"], 1)
    await visits.leave("exclusive")
    assert (visits.inside, visits.limiter.busy) == (["last"], 1)


async def test_one_that_gives_up_while_all_slots_are_taken_gives_its_turn_away():
    visits = Visits(1)
    for name in "abc":
        await visits.come(name)
    await visits.give_up("b")
    await visits.leave("a")
    assert visits.inside == ["c"]


async def test_an_exclusive_call_waits_for_the_others_and_holds_back_the_next():
    visits = Visits()
    await visits.come("a")
    await visits.come("exclusive", exclusive=True)
    await visits.come("late")
    assert visits.inside == ["a"]
    await visits.leave("a")
    assert visits.inside == ["exclusive"]
    await visits.leave("exclusive")
    assert visits.inside == ["late"]


async def test_exclusive_calls_take_turns():
    visits = Visits()
    await visits.come("first", exclusive=True)
    await visits.come("second", exclusive=True)
    assert visits.inside == ["first"]
    await visits.leave("first")
    assert visits.inside == ["second"]


async def test_one_that_gives_up_while_waiting_lets_the_others_in():
    visits = Visits()
    await visits.come("a")
    await visits.come("exclusive", exclusive=True)
    await visits.come("late")
    await visits.give_up("exclusive")
    assert visits.inside == ["a", "late"]


async def test_one_that_is_cancelled_inside_leaves():
    visits = Visits()
    await visits.come("exclusive", exclusive=True)
    await visits.come("late")
    await visits.give_up("exclusive")
    assert visits.inside == ["late"]


async def test_one_cancelled_at_the_moment_it_is_let_in_gives_its_slot_back():
    visits = Visits()
    await visits.come("a", exclusive=True)
    await visits.come("b", exclusive=True)
    waiting = visits._tasks["b"]
    visits._leave["a"].set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await settle()
    await visits.come("c", exclusive=True)
    assert visits.inside == ["c"]


def test_each_event_loop_has_its_own_slots():
    limiter = Limiter(1)

    async def hold() -> None:
        async with limiter.slot(exclusive=True):
            pass

    asyncio.run(hold())
    asyncio.run(hold())


async def test_more_slots_are_used_from_the_next_call_on():
    visits = Visits(1)
    for name in "abcd":
        await visits.come(name)
    assert visits.inside == ["a"]
    visits.limiter.slots = 3
    await visits.come("e")
    assert visits.inside == ["a", "b", "c"]
