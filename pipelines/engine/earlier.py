"""What a visitor's earlier runs took: read from the store once, then remembered by their ids."""

from __future__ import annotations

import threading

from pipelines.engine.estimate import RunUsage, past_of, same_model
from pipelines.errors import StorageError, VeriscopeError
from pipelines.run.spec import ModelSpec
from pipelines.run.view import fold
from pipelines.store import RunStore
from pipelines.store.runs import FinishedRun

LATEST = 5
"""So many runs of a model are enough: what it took long ago says less about today."""

_REMEMBERED = 2000
_ROUNDING = 0.001
"""Seconds. A run enters the store with the time at which it begins, an imported one later."""


class EarlierRuns:
    """The latest runs of every visitor, as far as somebody asked. Safe in any thread."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._known: dict[str, RunUsage | None] = {}
        self._lock = threading.Lock()

    def of(self, owner: str, main: ModelSpec, *, checks: bool = False) -> tuple[RunUsage, ...]:
        """Return the owner's latest finished runs with `main` as their main model, newest first.

        Those that answered a question, or those that checked a given text (`checks`).
        Runs that asked no model, because everything was cached, and imported ones,
        which took their time elsewhere, are left out.
        """
        found: list[RunUsage] = []
        for run in self._store.finished(owner):
            if run.checks != checks or not same_model(run.main, main):
                continue
            if (past := self._past(run, owner)) is not None:
                found.append(past)
                if len(found) == LATEST:
                    break
        return tuple(found)

    def _past(self, run: FinishedRun, owner: str) -> RunUsage | None:
        with self._lock:
            if run.id in self._known:
                return self._known[run.id]
        try:
            past = self._read(run, owner)
        except StorageError:
            # It may be read the next time.
            return None
        with self._lock:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[run.id] = past
        return past

    def _read(self, run: FinishedRun, owner: str) -> RunUsage | None:
        try:
            view = fold(self._store.load(run.id, owner).events)
        except StorageError:
            raise
        except VeriscopeError:
            # It was deleted meanwhile, or is of a version that cannot be read.
            return None
        if view.header is None:
            return None
        here = abs(run.created.timestamp() - view.header.created) < _ROUNDING
        past = past_of(view)
        return past if here and (past.made.calls or past.judge_calls) else None
