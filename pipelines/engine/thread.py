"""A `Service` on a thread of its own, for front ends whose code is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from pipelines.engine.service import Service

T = TypeVar("T")


class Engine:
    """Owns the event loop that all runs of this process live on, and the service on it."""

    def __init__(self, data: Path, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="veriscope-engine", daemon=True
        )
        self._thread.start()
        self.service = self.call(self._open(data, options))

    async def _open(self, data: Path, options: dict[str, Any]) -> Service:
        return Service(data, **options)

    async def _finish(self) -> None:
        await self.service.aclose()
        begun = asyncio.all_tasks() - {asyncio.current_task()}
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the engine's loop and wait for it; never call this on that loop."""
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` on the engine's loop, without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop every run and the thread."""
        self.call(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
