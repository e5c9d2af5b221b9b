"""The evaluations under way on the engine's loop: one runner each, however many tabs show it.

They go on when the tab that began them is closed, until they end or the server does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import replace
from threading import Lock

from app.engine import engine
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.evaluation.runner import EvaluationProgress, Runner
from pipelines.run.scope import unexpected

_log = logging.getLogger(__name__)

_known: dict[tuple[str, str], Work] = {}
_lock = Lock()


class Work:
    """One evaluation that is carried out, or was: how far it is, and why it ended.

    `goal` is how many answers there are when it has done what it was started for. `progress` is
    None until its first look at the store; `error` is what ended it unexpectedly.
    """

    def __init__(self, runner: Runner, at_once: int, most: int | None) -> None:
        self.at_once = at_once
        self.goal: int | None = None
        self.progress: EvaluationProgress | None = None
        self.error: ErrorInfo | None = None
        self._most = most
        self._runner = runner
        self._future: Future[None] = engine().submit(self._carry_out())

    @property
    def going_on(self) -> bool:
        """Whether it still works."""
        return not self._future.done()

    def stop(self) -> None:
        """End it, and wait until what it had begun has ended; not to be called on the loop."""

        async def tell() -> None:
            self._runner.stop()

        engine().call(tell())
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended; what went wrong stands in `error`."""
        with suppress(Exception):
            self._future.result()

    async def _carry_out(self) -> None:
        try:
            async with aclosing(self._runner.run(self._most)) as steps:
                async for progress in steps:
                    if self.goal is None:
                        wanted = progress.total - progress.answered
                        most = wanted if self._most is None else min(wanted, self._most)
                        self.goal = progress.answered + most
                    # The runner goes on to change its own.
                    self.progress = replace(progress)
        except VeriscopeError as error:
            self.error = error.info()
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("An evaluation ended unexpectedly")
            self.error = unexpected().info()


def start(
    evaluation: str,
    *,
    owner: str,
    keys: Mapping[str, str],
    at_once: int,
    most: int | None = None,
) -> Work:
    """Carry an evaluation out within its limits, or find the work that is done on it already.

    `most` answers at most are asked for.
    """
    with _lock:
        known = _known.get((owner, evaluation))
        if known is not None and known.going_on:
            return known
        runner = Runner(
            engine().service,
            evaluation,
            owner=owner,
            keys=keys,
            at_once=at_once,
        )
        work = _known[owner, evaluation] = Work(runner, at_once, most)
    return work


def work_on(evaluation: str, owner: str) -> Work | None:
    """Return what this process does, or last did, on an evaluation of `owner`."""
    return _known.get((owner, evaluation))


def forget(evaluation: str, owner: str) -> None:
    """Stop an evaluation that is about to be deleted, and remember nothing of it."""
    work = work_on(evaluation, owner)
    if work is not None:
        work.stop()
    with _lock:
        _known.pop((owner, evaluation), None)


def stop_evaluations() -> None:
    """Stop all of them, before the engine is closed; they can be continued."""
    with _lock:
        works = list(_known.values())
        _known.clear()
    for work in works:
        if work.going_on:
            work.stop()
