"""Calls that share slots, and calls that have them all."""

from __future__ import annotations

import asyncio
import contextlib

from pipelines.models.limiter import Limiter


class Visits:
    """Lets calls in and out of a limiter by name."""

    def __init__(self, slots: int | None = None) -> None:
        self.limiter = Limiter(slots)
        self.inside: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, *, exclusive: bool = False) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._visit(name, exclusive))
        await settle()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tasks[name]
        await settle()

    async def _visit(self, name: str, exclusive: bool) -> None:
        async with self.limiter.slot(exclusive=exclusive):
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
