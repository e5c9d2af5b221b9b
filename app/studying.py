"""The studies under way: one for each visitor, in a thread of their own, kept until the next.

A study takes milliseconds for each point and answer; of many answers that is minutes, in which the
page stays usable and can stop it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import NamedTuple

from app.engine import engine
from app.evaluated import ResultKey, scores_of
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.evaluation.studies.grid import Axis
from pipelines.evaluation.studies.replays import Replays, StudyStoppedError, replay_points
from pipelines.evaluation.studies.running import replayed_study, score_sweep
from pipelines.evaluation.studies.table import Study
from pipelines.run.scope import unexpected

_log = logging.getLogger(__name__)

_KEPT = 16
"""Studies that are kept, the latest of each visitor; what is older is done again when asked for."""

_pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="studying")
_works: dict[str, StudyWork] = {}
_lock = Lock()


class StudySubject(NamedTuple):
    """What is studied: the settings `axes` of `system` in the evaluation."""

    evaluation: str
    system: str
    axes: tuple[Axis, ...]


class StudyWork:
    """A study under way, or done: `done` of `total` answers, `error` where it failed."""

    def __init__(self, asked: StudySubject, owner: str) -> None:
        self.asked = asked
        self.done = 0
        self.total = 0
        self.error: ErrorInfo | None = None
        self._owner = owner
        self._stop = Event()
        self._studies: dict[str, Study] = {}
        self._future: Future[Replays | None] = _pool.submit(self._replay)

    @property
    def going_on(self) -> bool:
        """Whether it still works."""
        return not self._future.done()

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it before its end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End it before its next answer."""
        self._stop.set()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._future.result()

    def study(self, choose: str | None, prefer: Sequence[str] = ()) -> Study | None:
        """Return the study, with the point that is best by `choose`; None while there is none.

        Raises InvalidInputError for a metric that it has not.
        """
        found = None if self.going_on else self._future.result()
        if found is None:
            return None
        key = choose or ""
        if key not in self._studies:
            stored = engine().service.store.evaluations.get(self.asked.evaluation, self._owner)
            self._studies[key] = replayed_study(
                stored, self.asked.system, self.asked.axes, found, choose=choose, prefer=prefer
            )
        return self._studies[key]

    def _replay(self) -> Replays | None:
        store, asked = engine().service.store, self.asked
        try:
            return replay_points(
                *(store, asked.evaluation, self._owner, asked.system, asked.axes),
                progress=self._progress,
                stop=self._stop,
            )
        except StudyStoppedError:
            return None
        except VeriscopeError as error:
            self.error = error.info()
        except Exception:
            _log.exception("A study failed")
            self.error = unexpected().info()
        return None

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


def start_study(owner: str, asked: StudySubject) -> StudyWork:
    """Study this, in place of what the visitor studied before."""
    with _lock:
        before = _works.pop(owner, None)
        if before is not None:
            before.stop()
        work = _works[owner] = StudyWork(asked, owner)
        for old in list(_works)[:-_KEPT]:
            _works.pop(old).stop()
        return work


def study_of(owner: str, evaluation: str) -> StudyWork | None:
    """Return the visitor's study, where it is of this evaluation."""
    with _lock:
        work = _works.get(owner)
    return work if work is not None and work.asked.evaluation == evaluation else None


def score_study(key: ResultKey, system: str, choose: str) -> Study:
    """Study thresholds on the scores of `system`; raises as `score_sweep`."""
    return score_sweep(scores_of(key), key.evaluation, system, choose=choose)


def stop_studies() -> None:
    """Stop every study and forget it."""
    with _lock:
        while _works:
            _works.popitem()[1].stop()
