"""The judging of evaluations that is under way: one for each, in the engine, until it ends.

It goes on when the tab that began it is closed. What was judged stays, so that it can be continued.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, suppress
from dataclasses import replace
from threading import Lock

from app.engine import engine
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.evaluation.judging.runner import JudgeRunner, JudgingProgress
from pipelines.evaluation.judging.spec import JudgeSpec
from pipelines.evaluation.plan import Budget
from pipelines.run.scope import unexpected

_log = logging.getLogger(__name__)

_works: dict[tuple[str, str], JudgingWork] = {}
_lock = Lock()


class JudgingWork:
    """The judging of one evaluation: how far it is, and the error that ended it unexpectedly."""

    def __init__(self, runner: JudgeRunner) -> None:
        self.progress: JudgingProgress | None = None
        self.error: ErrorInfo | None = None
        self._runner = runner
        self._future: Future[None] = engine().submit(self._carry_out())

    @property
    def going_on(self) -> bool:
        """Whether it still works."""
        return not self._future.done()

    def stop(self) -> None:
        """End it. A call that is under way is made again when it is continued."""
        self._future.cancel()
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended; what went wrong stands in `error`."""
        with suppress(CancelledError):
            self._future.result()

    async def _carry_out(self) -> None:
        try:
            async with aclosing(self._runner.run()) as steps:
                async for progress in steps:
                    # The runner goes on to change its own.
                    self.progress = replace(progress)
        except VeriscopeError as error:
            self.error = error.info()
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("The judging of an evaluation ended unexpectedly")
            self.error = unexpected().info()


def start_judging(
    evaluation: str, spec: JudgeSpec, *, owner: str, key: str | None, budget: Budget, at_once: int
) -> JudgingWork:
    """Have the answers of an evaluation judged, or find the work that is done on it already."""
    with _lock:
        known = _works.get((owner, evaluation))
        if known is not None and known.going_on:
            return known
        runner = JudgeRunner(
            engine().service,
            evaluation,
            spec,
            owner=owner,
            key=key,
            budget=budget,
            at_once=at_once,
        )
        work = _works[owner, evaluation] = JudgingWork(runner)
    return work


def judging_of(evaluation: str, owner: str) -> JudgingWork | None:
    """Return what this process does, or last did, to judge an evaluation of `owner`."""
    return _works.get((owner, evaluation))


def forget_judging(evaluation: str, owner: str) -> None:
    """Stop the judging of an evaluation that is about to be deleted, and remember nothing of it."""
    with _lock:
        work = _works.pop((owner, evaluation), None)
    if work is not None and work.going_on:
        work.stop()


def stop_judging() -> None:
    """Stop all of it, before the engine is closed; it can be continued."""
    with _lock:
        works = list(_works.values())
        _works.clear()
    for work in works:
        if work.going_on:
            work.stop()
