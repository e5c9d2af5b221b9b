"""Who may begin, and who has to wait how long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from pipelines.engine.pool import Admission, Ticket, Turn
from pipelines.errors import BusyError, QueuedAlreadyError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def doors():
    """Places in a queue, each left by its name."""
    async with AsyncExitStack() as all_of_them:
        yield Doors(all_of_them)


class Doors:
    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._exits: dict[Ticket, AsyncExitStack] = {}

    async def enter(self, queue: Admission, visitor: str, address: str | None = None) -> Ticket:
        own = await self._stack.enter_async_context(AsyncExitStack())
        ticket = await own.enter_async_context(queue.slot(visitor, address))
        self._exits[ticket] = own
        return ticket

    async def leave(self, ticket: Ticket) -> None:
        await self._exits[ticket].aclose()


async def test_as_many_as_there_are_slots_come_in(doors: Doors):
    queue = Admission(slots=2)
    first, second, third = [await doors.enter(queue, name) for name in "abc"]
    assert [one.admitted.is_set() for one in (first, second, third)] == [True, True, False]
    assert queue.turn(first) == Turn(None, 0.0)
    assert queue.turn(third) == Turn(0)
    await doors.leave(first)
    assert third.admitted.is_set()


async def test_in_the_order_of_asking(doors: Doors):
    queue = Admission(slots=1)
    tickets = [await doors.enter(queue, name) for name in "abcd"]
    for place, ticket in enumerate(tickets):
        assert [one.admitted.is_set() for one in tickets] == [n <= place for n in range(4)]
        await doors.leave(ticket)


async def test_who_has_a_run_already_is_passed_over(doors: Doors):
    queue = Admission(slots=2, per_visitor=1)
    mine = await doors.enter(queue, "me")
    again = await doors.enter(queue, "me")
    other = await doors.enter(queue, "you")
    assert (again.admitted.is_set(), other.admitted.is_set()) == (False, True)
    await doors.leave(mine)
    assert again.admitted.is_set()


async def test_a_visitor_is_in_the_queue_once(doors: Doors):
    queue = Admission(slots=1, per_visitor=1)
    await doors.enter(queue, "me")
    await doors.enter(queue, "me")
    with pytest.raises(QueuedAlreadyError, match="of one visitor that may wait there: 1"):
        await doors.enter(queue, "me")


async def test_the_line_has_an_end(doors: Doors):
    queue = Admission(slots=1, max_queue=2)
    for name in "abc":
        await doors.enter(queue, name)
    with pytest.raises(BusyError, match="2 visitors are waiting"):
        await doors.enter(queue, "d")


async def test_an_address_has_some_of_the_places_in_the_line(doors: Doors):
    queue = Admission(slots=1, per_address=2)
    for name in "abc":
        await doors.enter(queue, name, "1.2.3.4")
    with pytest.raises(BusyError, match="2 runs from your network address"):
        await doors.enter(queue, "d", "1.2.3.4")
    await doors.enter(queue, "d", "5.6.7.8")
    for name in "efg":
        # Whose address does not count has a place.
        await doors.enter(queue, name)


async def test_who_gives_up_lets_the_next_one_up(doors: Doors):
    queue = Admission(slots=1)
    _, second, third = [await doors.enter(queue, name) for name in "abc"]
    assert queue.turn(third).before == 1
    await doors.leave(second)
    assert queue.turn(third).before == 0


async def test_the_wait_is_judged_by_how_long_runs_took(doors: Doors):
    clock = Clock()
    queue = Admission(slots=1, clock=clock)
    first, second, third = [await doors.enter(queue, name) for name in "abc"]
    # Nothing has ended yet, so nothing is known.
    assert queue.turn(third) == Turn(1, None)
    clock.now = 30.0
    await doors.leave(first)
    clock.now = 40.0
    # The second has had 10 of the usual 30 seconds; the third is next.
    assert queue.turn(third) == Turn(0, 20.0)
    fourth = await doors.enter(queue, "d")
    assert queue.turn(fourth) == Turn(1, 50.0)
    # A run that takes longer than usual may end at any time.
    clock.now = 100.0
    assert queue.turn(third) == Turn(0, 0.0)
    await doors.leave(second)
    assert queue.turn(third) == Turn(None, 0.0)


async def test_several_slots_shorten_the_wait(doors: Doors):
    clock = Clock()
    queue = Admission(slots=2, clock=clock)
    first = await doors.enter(queue, "a")
    clock.now = 10.0
    await doors.leave(first)
    for name in "bcd":
        await doors.enter(queue, name)
    # Both slots are free in 10 seconds, and one is taken by the visitor before.
    assert queue.turn(await doors.enter(queue, "e")) == Turn(1, 10.0)


async def test_one_who_is_cancelled_leaves():
    queue = Admission(slots=1)

    async def stand() -> None:
        async with queue.slot("me") as ticket:
            await ticket.admitted.wait()
            await asyncio.Event().wait()

    one, other = asyncio.create_task(stand()), asyncio.create_task(stand())
    await asyncio.sleep(0)
    for task in (one, other):
        task.cancel()
    await asyncio.wait({one, other})
    async with queue.slot("you") as ticket:
        assert ticket.admitted.is_set()
