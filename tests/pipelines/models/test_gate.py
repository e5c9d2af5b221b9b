"""Calls that share a server, and calls that have it alone."""

from __future__ import annotations

import asyncio
import contextlib

from pipelines.models.gate import CallGate


class Visits:
    """Lets calls in and out of a gate by name."""

    def __init__(self) -> None:
        self.gate = CallGate()
        self.inside: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, *, alone: bool = False) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._visit(name, alone))
        await settle()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tasks[name]
        await settle()

    async def _visit(self, name: str, alone: bool) -> None:
        async with self.gate.enter(alone=alone):
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


async def test_a_call_alone_waits_for_the_others_and_holds_back_the_next():
    visits = Visits()
    await visits.come("a")
    await visits.come("alone", alone=True)
    await visits.come("late")
    assert visits.inside == ["a"]
    await visits.leave("a")
    assert visits.inside == ["alone"]
    await visits.leave("alone")
    assert visits.inside == ["late"]


async def test_calls_alone_take_turns():
    visits = Visits()
    await visits.come("first", alone=True)
    await visits.come("second", alone=True)
    assert visits.inside == ["first"]
    await visits.leave("first")
    assert visits.inside == ["second"]


async def test_one_that_gives_up_while_waiting_lets_the_others_in():
    visits = Visits()
    await visits.come("a")
    await visits.come("alone", alone=True)
    await visits.come("late")
    await visits.give_up("alone")
    assert visits.inside == ["a", "late"]


async def test_one_that_is_cancelled_inside_leaves():
    visits = Visits()
    await visits.come("alone", alone=True)
    await visits.come("late")
    await visits.give_up("alone")
    assert visits.inside == ["late"]


async def test_one_cancelled_at_the_moment_it_is_let_in_gives_its_place_back():
    visits = Visits()
    await visits.come("a", alone=True)
    await visits.come("b", alone=True)
    waiting = visits._tasks["b"]
    visits._leave["a"].set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await settle()
    await visits.come("c", alone=True)
    assert visits.inside == ["c"]


def test_each_event_loop_has_its_own_places():
    gate = CallGate()

    async def hold() -> None:
        async with gate.enter(alone=True):
            pass

    asyncio.run(hold())
    asyncio.run(hold())
