"""Work done at the same time and in batches, and files that are there whole or not at all."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TextIO, TypeVar

from pipelines.errors import VeriscopeError, failure

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
    """Return a coroutine around anything awaitable, since a TaskGroup takes nothing else."""
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


# Work of several callers at the same time, done in one batch.

R = TypeVar("R")


class _Part(NamedTuple, Generic[T, R]):
    """What one caller asks for."""

    items: list[T]
    results: Future[list[R]]


class Merger(Generic[T, R]):
    """Gives what callers ask for at the same time to `work` together.

    `work` takes items and returns a result for each, in order. It runs on a thread of its own, once
    at a time; what comes meanwhile waits and makes up the next batch, in the order it came. A batch
    ends with the caller whose items are the `most`-th. Where a batch fails, the parts of its
    callers are tried one by one, so that nobody fails because of another's. May be called from any
    thread.

    >>> merger = Merger(judge.verdicts)
    >>> (verdict,) = await asyncio.wrap_future(merger.submit([claim]))
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], *, most: int = 32) -> None:
        self._work = work
        self._most = most
        self._waiting: list[_Part[T, R]] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="merged")

    def submit(self, items: Sequence[T]) -> Future[list[R]]:
        """Return the results for `items`, later; one that is cancelled before is not worked for."""
        part = _Part[T, R](list(items), Future())
        with self._lock:
            self._waiting.append(part)
        # As often as there are parts: those that were taken with others find nothing to do.
        self._thread.submit(self._work_off)
        return part.results

    def _work_off(self) -> None:
        parts = [part for part in self._taken() if part.results.set_running_or_notify_cancel()]
        if not parts:
            return
        try:
            self._answer(parts)
        except Exception as error:
            if len(parts) == 1:
                parts[0].results.set_exception(error)
                return
            for part in parts:
                self._answer_alone(part)

    def _taken(self) -> list[_Part[T, R]]:
        with self._lock:
            count = size = 0
            while count < len(self._waiting) and size < self._most:
                size += len(self._waiting[count].items)
                count += 1
            taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _answer(self, parts: Sequence[_Part[T, R]]) -> None:
        results = iter(self._work([item for part in parts for item in part.items]))
        found = [[next(results) for _ in part.items] for part in parts]
        for part, mine in zip(parts, found, strict=True):
            part.results.set_result(mine)

    def _answer_alone(self, part: _Part[T, R]) -> None:
        try:
            self._answer([part])
        except Exception as error:
            part.results.set_exception(error)


# Files that are there whole or not at all, also when the process is killed while it writes.

_PARTIAL = ".partial"


def make_data_folder(folder: Path, name: str = "The path") -> None:
    """Create the data folder if it is not there. Raises InvalidInputError where it cannot be one.

    `name` is what the error calls it. It is the path only where the reader of the error gave that
    path.
    """
    try:
        # What people asked is nobody else's on this machine.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise failure("storage.no_folder", folder=name, reason=error.strerror) from error


def write_whole(
    path: Path, text: str, mode: int | None = None, *, unless_there: bool = False
) -> None:
    """Write `text` into the file `path`, which until then stays as it was.

    It is written beside it and moved into its place; the next call uses up what a killed one left.
    A device or a pipe is written to as it is. `mode` are the permissions of a file that holds a
    secret. With `unless_there` a file that holds anything is left as it is: of several processes
    the first one writes it. Raises OSError.
    """
    if _is_special(path):
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    with _partial(path.with_name(f".{path.name}{_PARTIAL}"), mode) as (partial, file):
        if unless_there and path.exists() and path.stat().st_size:
            partial.unlink()
            return
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        if mode is None and path.exists():
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
        partial.replace(path)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` into the file `path`, which is there whole or not at all, and on the disk.

    For a file that nobody else writes. A device or a pipe is written to as it is. Raises OSError.
    """
    if _is_special(path):
        path.write_bytes(data)
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}{_PARTIAL}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _is_special(path: Path) -> bool:
    """Return whether there is something at `path` that is no file and cannot be replaced by one.

    Asked of the path as it is given: what /dev/stdout resolves to has no name where it is a pipe.
    """
    return path.exists() and not path.is_file()


@contextmanager
def _partial(path: Path, mode: int | None) -> Iterator[tuple[Path, TextIO]]:
    """Give the empty file `path`, ours alone until the block ends; removed if it is left."""
    with _locked(path, 0o666 if mode is None else mode) as file:
        file.truncate()
        try:
            yield path, file
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise


def _locked(path: Path, mode: int) -> TextIO:
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, mode), "w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(OSError):
            # Another process, which had it before, may have moved it away meanwhile.
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()
