"""Work done together: all results, or the one error that counts after everything has ended."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from pipelines.aio import calls_for, together, usable_cores
from pipelines.errors import MissingReply, NotFoundError, ServerFailedError, VeriscopeError

FAILED = ServerFailedError("It broke.", remedy="Wait.")
OTHER = NotFoundError("It is gone.", remedy="Look elsewhere.")
MISSING = MissingReply("Not recorded.", remedy="Run it anew.")


class Worker:
    """Work that the test controls, and that notes how it ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.ended = "not yet"

    async def work(self, result: object = None, *, when_cancelled: object = None) -> object:
        """Wait for `go`, then return or raise `result`; `when_cancelled` is raised instead."""
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            for _ in range(5):  # what is cancelled may still have something to record
                await asyncio.sleep(0)
            self.ended = "cancelled"
            if isinstance(when_cancelled, BaseException):
                raise when_cancelled from None
            raise
        self.ended = "done"
        if isinstance(result, BaseException):
            raise result
        return result


async def value(given: object) -> object:
    return given


async def fails(error: BaseException, turns: int = 0) -> object:
    for _ in range(turns):
        await asyncio.sleep(0)
    raise error


async def test_no_work_gives_no_results():
    assert await together() == []


async def test_results_keep_the_order_of_the_arguments():
    first, second = Worker(), Worker()
    all_of_it = asyncio.create_task(together(first.work("a"), second.work("b"), value("c")))
    await first.begun.wait()
    await second.begun.wait()
    second.go.set()
    await asyncio.sleep(0)
    first.go.set()
    assert await all_of_it == ["a", "b", "c"]


async def test_the_work_overlaps():
    """Each waits for the other, so one after the other would never end."""
    first, second = asyncio.Event(), asyncio.Event()

    async def meet(mine: asyncio.Event, other: asyncio.Event) -> None:
        mine.set()
        await other.wait()

    await together(meet(first, second), meet(second, first))


async def test_tasks_and_futures_are_work_too():
    task = asyncio.create_task(value(1))
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    future.set_result(2)
    assert await together(task, future, value(3)) == [1, 2, 3]


async def test_the_first_error_cancels_the_others_and_waits_for_their_end():
    slow = Worker()
    with pytest.raises(ServerFailedError) as caught:
        await together(slow.work(), fails(FAILED, turns=2))
    assert caught.value is FAILED
    assert slow.ended == "cancelled"


async def test_a_task_is_cancelled_like_a_coroutine():
    slow = Worker()
    task = asyncio.create_task(slow.work())
    with pytest.raises(ServerFailedError):
        await together(task, fails(FAILED, turns=2))
    assert task.cancelled()
    assert slow.ended == "cancelled"


async def test_an_error_keeps_its_cause_and_gets_no_other():
    cause = ValueError("bad JSON")

    async def fail() -> None:
        raise FAILED from cause

    with pytest.raises(ServerFailedError) as caught:
        await together(fail())
    assert caught.value.__cause__ is cause
    assert not isinstance(caught.value.__context__, BaseExceptionGroup)


async def test_of_several_errors_the_first_is_raised():
    with pytest.raises(NotFoundError) as caught:
        await together(fails(FAILED, turns=1), fails(OTHER))
    assert caught.value is OTHER


async def test_an_error_raised_while_being_cancelled_does_not_replace_the_first():
    slow = Worker()
    with pytest.raises(ServerFailedError):
        await together(slow.work(when_cancelled=OTHER), fails(FAILED, turns=2))


@pytest.mark.parametrize("error", [MISSING, ValueError("a mistake")])
async def test_what_is_no_expected_failure_comes_first(error: Exception):
    slow = Worker()
    with pytest.raises(type(error)) as caught:
        await together(fails(FAILED), slow.work(when_cancelled=error))
    assert caught.value is error


async def test_of_several_unexpected_errors_the_first_is_raised():
    slow = Worker()
    with pytest.raises(MissingReply):
        await together(slow.work(when_cancelled=ValueError("later")), fails(MISSING, turns=2))


async def test_an_expected_failure_may_be_caught_outside():
    """`except VeriscopeError` around it sees the failure itself, and never a missing reply."""
    with contextlib.suppress(VeriscopeError):
        await together(fails(FAILED))
    with pytest.raises(MissingReply), contextlib.suppress(VeriscopeError):
        await together(fails(FAILED), fails(MISSING))


async def test_an_inner_error_passes_through_an_outer_one():
    slow = Worker()
    with pytest.raises(ServerFailedError) as caught:
        await together(slow.work(), together(value(1), fails(FAILED, turns=3)))
    assert caught.value is FAILED
    assert slow.ended == "cancelled"


async def test_a_group_of_errors_that_the_work_raises_stays_a_group():
    group = ExceptionGroup("several", [ValueError("one")])
    with pytest.raises(ExceptionGroup) as caught:
        await together(fails(group))
    assert caught.value is group


async def test_cancelling_the_caller_cancels_the_work_and_waits_for_its_end():
    first, second = Worker(), Worker()
    all_of_it = asyncio.create_task(together(first.work(), second.work()))
    await first.begun.wait()
    await second.begun.wait()
    all_of_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await all_of_it
    assert all_of_it.cancelled()
    assert (first.ended, second.ended) == ("cancelled", "cancelled")


async def test_a_cancelled_caller_stays_cancelled_whatever_the_work_raises():
    slow = Worker()
    all_of_it = asyncio.create_task(together(slow.work(when_cancelled=FAILED)))
    await slow.begun.wait()
    all_of_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await all_of_it


async def test_a_caller_cancelled_while_a_failure_is_cleared_up_is_cancelled():
    slow = Worker()
    all_of_it = asyncio.create_task(together(slow.work(), fails(FAILED, turns=2)))
    await slow.cancelled.wait()
    all_of_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await all_of_it
    assert slow.ended == "cancelled"


async def test_after_a_failure_the_caller_is_not_cancelled():
    with pytest.raises(ServerFailedError):
        await together(Worker().work(), fails(FAILED, turns=1))
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0
    await asyncio.sleep(0)


async def test_it_can_be_used_while_a_cancelled_caller_clears_up():
    found: list[object] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            found.extend(await together(value(1), value(2)))
            with contextlib.suppress(ServerFailedError):
                await together(fails(FAILED))
            found.append("after")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert found == [1, 2, "after"]


async def test_work_that_is_cancelled_from_elsewhere_is_not_taken_for_done():
    inner = asyncio.create_task(Worker().work())
    await asyncio.sleep(0)
    inner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together(inner, value(1))


@pytest.mark.parametrize(("cores", "calls"), [(1, 2), (2, 4), (3, 6), (4, 8), (64, 8)])
def test_a_small_machine_is_given_few_calls_at_once(cores: int, calls: int):
    assert calls_for(cores) == calls
    assert usable_cores() >= 1
