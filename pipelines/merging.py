"""Work of several callers at the same time, done in one batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
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
        """Return the results for `items`, later; a future that is cancelled before is not
        worked for.
        """
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
