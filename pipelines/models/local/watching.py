"""Pieces of a text on their way from the decoding thread to the caller's event loop."""

import asyncio
from contextlib import suppress

from pipelines.models.base import Delta, Watcher
from pipelines.models.local.work import Sequence
from pipelines.types import Generation

__all__ = ["Pieces"]


class Pieces:
    """Shows a watcher each piece, on the event loop this was made on."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[Delta, int] | None] = asyncio.Queue()

    def put(self, delta: Delta, written: int) -> None:
        """Called in the decoding thread: `delta` ends after `written` tokens."""
        self._post((delta, written))

    def _post(self, item: tuple[Delta, int] | None) -> None:
        with suppress(RuntimeError):  # the loop is closed and nobody is left to see it
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def follow(self, sequence: Sequence) -> Generation:
        """Wait for the sequence, or end it where the watcher returns True."""
        sequence.future.add_done_callback(lambda _: self._post(None))
        seen: list[Delta] = []
        while (item := await self._queue.get()) is not None:
            delta, written = item
            seen.append(delta)
            if self._watch(delta):
                sequence.future.cancel()
                return sequence.result_until(seen, written, "watcher")
        return sequence.future.result()
