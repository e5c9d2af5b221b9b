"""Work done at the same time, which ends together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any, TypeVar

from pipelines.errors import VeriscopeError

T = TypeVar("T")
U = TypeVar("U")


def usable_cores() -> int:
    """Return the cores that this process may use, which may be fewer than the machine has."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def calls_for(cores: int) -> int:
    """Return how many calls a model that runs on so many cores is given at once, from 2 to 8.

    Of few, the first end early, and the next find the beginning of their prompt already read. More
    would all read it at the same time.
    """
    return max(2, min(8, 2 * cores))


async def together(*work: Awaitable[T]) -> list[T]:
    """Return the results of all `work`, done at the same time, in the order of the arguments.

    The first error cancels the rest. It is raised as it is, not in an ExceptionGroup, after
    everything has ended, what the cancelled work records at its end included. Where several fail,
    the first error is raised, but one that is no VeriscopeError comes before those that are: an
    expected failure must not hide a mistake or a reply that a recording lacks. Cancelling the
    caller cancels all of the work and raises CancelledError, whatever the work raises meanwhile.
    """
    caller = asyncio.current_task()
    assert caller is not None
    cancelled_before = caller.cancelling()
    errors: tuple[BaseException, ...] = ()
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_result(one)) for one in work]
            if tasks:
                # Without this, Python 3.11 leaves the caller marked as cancelled after a failure.
                await asyncio.wait(tasks)
    except BaseExceptionGroup as failures:
        errors = failures.exceptions
    # Raised out here, so that the errors keep the cause and the context they have.
    if caller.cancelling() > cancelled_before:
        raise asyncio.CancelledError
    if errors:
        raise next((e for e in errors if not isinstance(e, VeriscopeError)), errors[0])
    return [task.result() for task in tasks]


async def _result(work: Awaitable[T]) -> T:
    """Return a coroutine around anything that can be awaited, since a TaskGroup takes
    nothing else.
    """
    return await work


async def both(one: Awaitable[T], other: Awaitable[U]) -> tuple[T, U]:
    """Return `together` for two things of different kinds."""
    results: list[Any] = await together(one, other)
    return results[0], results[1]


async def ended(*work: asyncio.Future[Any]) -> None:
    """Cancel what is still running, and wait until it has ended; nothing is raised.

    Gathered, so that being cancelled oneself is not taken for the end of `work`.
    """
    for one in work:
        one.cancel()
    await asyncio.gather(*work, return_exceptions=True)
