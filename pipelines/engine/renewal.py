"""Makes sure that other processes see this one as alive while its runs go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from pipelines.errors import StorageError
from pipelines.store import RunStore


class PresenceRenewal:
    """Renews the presence of `store` every `seconds` while `needed` is true.

    A server that was started again has forgotten who is writing. It does so in a thread of its own:
    a server that does not answer keeps no other work waiting.
    """

    def __init__(self, store: RunStore, seconds: float, needed: Callable[[], bool]) -> None:
        self._store = store
        self._seconds = seconds
        self._needed = needed
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to renew, if that has not begun."""
        if self._thread is None:
            work = threading.Thread(target=self._renew, name="veriscope-presence", daemon=True)
            self._thread = work
            work.start()

    def close(self) -> None:
        """Stop. Blocks until a renewal that is under way has ended: it would take the lock."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._closing.wait(self._seconds):
            if self._needed():
                with suppress(StorageError):
                    self._store.renew_presence()
