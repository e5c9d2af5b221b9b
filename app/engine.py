"""The engine behind the screens, one for each data folder, and a run that a visitor watches."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from app.exposure import workbench_exposure
from pipelines.base import data_folder
from pipelines.engine.estimate import Account
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.models.providers import build_for_strangers, pin_for_strangers
from pipelines.run.events import Event, RunSpec, TokenWritten, Trace
from pipelines.run.live import Subscription
from pipelines.run.view import RunView, fold
from pipelines.store import database_url

PERIOD = 0.3
"""Seconds between two looks at a run that goes on."""

_engines: dict[Path, Engine] = {}
_lock = Lock()


def engine() -> Engine:
    """Return the engine of the data folder, started when it is first asked for."""
    folder = data_folder().resolve()
    with _lock:
        if folder not in _engines:
            _engines[folder] = _open(folder)
        return _engines[folder]


def _open(folder: Path) -> Engine:
    if not workbench_exposure().restricted:
        return Engine(folder, database=database_url(folder))
    return Engine(
        folder,
        database=database_url(folder),
        pool=ModelPool(build_for_strangers, pin_for_strangers),
        libraries=Libraries(folder / "index", any_address=False),
    )


def close_engines() -> None:
    """Stop every run and release everything; the next call to `engine` starts a new engine."""
    with _lock:
        while _engines:
            _engines.popitem()[1].close()


class Watched:
    """A run, its view as of the last `pull`, and the reader of its new events.

    `account` says what it may take and has taken; None for a run that was over at the beginning.
    """

    def __init__(
        self, run_id: str, subscription: Subscription, account: Account | None = None
    ) -> None:
        self.run_id = run_id
        self.account = account
        self.view = RunView()
        self._subscription = subscription
        self._events: list[Event] = []
        self.pull()

    def pull(self) -> RunView:
        """Read the events since the last call."""
        news = self._subscription.drain()
        self.view = fold(news, self.view)
        self._events += [event for event in news if not isinstance(event, TokenWritten)]
        return self.view

    @property
    def trace(self) -> Trace:
        """What was recorded so far."""
        return Trace(events=tuple(self._events))

    @property
    def spec(self) -> RunSpec:
        """What was asked."""
        return self.trace.header.spec

    @property
    def methods(self) -> list[str]:
        """The names of the methods that were asked."""
        return [method.name for method in self.spec.methods]

    def close(self) -> None:
        """Stop watching."""
        self._subscription.close()
