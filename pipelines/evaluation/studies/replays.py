"""The recorded runs of a system, run again with the settings of every point of a study.

One run is in memory at a time; what is kept of it are numbers. Where a method asks for what was not
recorded, the run diverges at this point: nothing is guessed, it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipelines.engine.reevaluate import recorded_settings, reevaluate
from pipelines.errors import MethodEnded, NotFoundError, UnreadableRunError, VeriscopeError, failure
from pipelines.evaluation.metrics.table import Metric
from pipelines.evaluation.outcomes import Outcome, outcome_of
from pipelines.evaluation.plan import EvaluationSpec, Item, System
from pipelines.evaluation.scoring import (
    applicable,
    outcome_scores,
    stored_items,
    stored_outcomes,
)
from pipelines.evaluation.statistics.estimates import Floats
from pipelines.evaluation.studies.grid import Axis, Value, checked_axes, points
from pipelines.methods.registry import get_method
from pipelines.run.events import Trace
from pipelines.run.view import fold
from pipelines.store import RunStore
from pipelines.store.evaluations import AnswerTask

MAX_REPLAYS = 200_000
"""Points times answers of one study."""

COST_METRICS = ("calls", "judge_calls", "retrievals")
"""Costs that a replay tells; its seconds are not those of a run."""

Progress = Callable[[int, int], None]
"""Called with the answers that are done, and with all."""


@dataclass(frozen=True)
class Replays:
    """What the answers of one system are at each point.

    `points` are the values of the settings, `current` the number of the point with the recorded
    ones. `values` maps a metric to [points, items], the mean over repeats, NaN where there is none.
    For each point `replayed` answers were found from the record alone and `diverged` need a new
    call; both count repeats. `unreadable` runs are deleted, or cannot be read. `altered` runs give
    another answer with the recorded settings than the one that was stored, because the code has
    changed since.
    """

    points: tuple[dict[str, Value], ...]
    current: int
    items: tuple[str, ...]
    groups: tuple[str, ...]
    values: dict[str, Floats]
    replayed: tuple[int, ...]
    diverged: tuple[int, ...]
    answers: int
    unreadable: int
    altered: int


@dataclass
class _MetricSums:
    """Sums and counts of each metric, by item: arrays over the points."""

    points: int
    items: dict[str, int] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    sums: dict[str, list[Floats]] = field(default_factory=dict)
    counts: dict[str, list[Floats]] = field(default_factory=dict)

    def add(self, point: int, item: str, group: str, values: Mapping[str, float | None]) -> None:
        """Add one score of an item."""
        place = self.items.setdefault(item, len(self.items))
        if place == len(self.groups):
            self.groups.append(group)
        for name, value in values.items():
            if value is None:
                continue
            for kept in (self.sums.setdefault(name, []), self.counts.setdefault(name, [])):
                while len(kept) <= place:
                    kept.append(np.zeros(self.points))
            self.sums[name][place][point] += value
            self.counts[name][place][point] += 1

    def means(self) -> dict[str, Floats]:
        """Return a map from metric to [points, items]."""
        found: dict[str, Floats] = {}
        for name, sums in self.sums.items():
            total = np.zeros((self.points, len(self.items)))
            count = np.zeros_like(total)
            total[:, : len(sums)] = np.array(sums).T
            count[:, : len(sums)] = np.array(self.counts[name]).T
            found[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return found


@dataclass(frozen=True)
class _Work:
    """What stays the same for every answer of a study."""

    spec: EvaluationSpec
    system: System
    metrics: list[Metric]
    points: tuple[dict[str, Value], ...]
    current: int


def replay_points(
    store: RunStore,
    evaluation: str,
    owner: str,
    system: str,
    axes: Sequence[Axis],
    *,
    tags: Sequence[str] = (),
    progress: Progress | None = None,
) -> Replays:
    """Return every answer of `system` at every point; blocks, for milliseconds a point and answer.

    The recorded settings are added as a point where `axes` leave them out. With `tags`, only items
    that have all of them are looked at. Raises NotFoundError for
    an unknown evaluation, InvalidInputError for an unknown system, for too many points and where
    nothing can be replayed, and what `progress` raises after an answer.
    """
    stored = store.evaluations.get(evaluation, owner)
    spec = EvaluationSpec.model_validate(stored.spec)
    number, chosen = find_system(spec, system)
    method = get_method(chosen.method.name)
    recorded = method.settings(chosen.method.settings).model_dump()
    now = {axis.name: recorded[axis.name] for axis in checked_axes(axes)}
    tried = points(axes)
    if now not in tried:
        tried = (now, *tried)
    metrics = _metrics(store, evaluation, owner, spec)
    work = _Work(spec, chosen, metrics, tried, tried.index(now))
    total = stored.tasks // len(spec.systems)
    if total * len(tried) > MAX_REPLAYS:
        raise failure(
            "study.many_replays",
            points=len(tried),
            total=total,
            most=max(1, MAX_REPLAYS // max(total, 1)),
        )
    numbers = _MetricSums(len(tried))
    replayed, diverged = np.zeros(len(tried), int), np.zeros(len(tried), int)
    answers = unreadable = altered = 0
    items = enumerate(stored_items(store.evaluations, evaluation, owner))
    position, item = -1, None
    known_tags: set[str] = set()
    for task, run, body in stored_outcomes(
        store.evaluations, evaluation, owner, -1, stored.tasks - 1
    ):
        if task.system != number:
            continue
        while position < task.position:
            position, item = next(items)
        assert item is not None
        known_tags |= {*item.tags}
        if not set(tags) <= set(item.tags):
            continue
        answers += 1
        trace = _read(store, run, owner)
        found = None if trace is None else _replay(work, trace, task, item, numbers)
        if found is None:
            unreadable += 1
        else:
            done = np.array([one is not None for one in found])
            replayed += done
            diverged += ~done
            altered += _differs(found[work.current], Outcome.model_validate(body))
        if progress is not None:
            progress(answers, total)
    if tags and not answers:
        raise failure("evaluation.no_such_tag", tags=[*tags], known=sorted(known_tags))
    if not replayed.any():
        raise failure("study.no_runs", system=system, unreadable=unreadable, answers=answers)
    return Replays(
        points=tried,
        current=work.current,
        items=tuple(numbers.items),
        groups=tuple(numbers.groups),
        values=numbers.means(),
        replayed=tuple(replayed.tolist()),
        diverged=tuple(diverged.tolist()),
        answers=answers,
        unreadable=unreadable,
        altered=altered,
    )


def find_system(spec: EvaluationSpec, name: str) -> tuple[int, System]:
    """Return the number of the system called `name`, and the system. Raises InvalidInputError."""
    for number, one in enumerate(spec.systems):
        if one.name == name:
            return number, one
    known = ", ".join(one.name for one in spec.systems)
    raise failure("evaluation.no_system", system=name, known=known)


def _metrics(store: RunStore, evaluation: str, owner: str, spec: EvaluationSpec) -> list[Metric]:
    offers = (item.offers for item in stored_items(store.evaluations, evaluation, owner))
    return applicable(spec, frozenset().union(*offers))


def _read(store: RunStore, run: str, owner: str) -> Trace | None:
    try:
        return store.load(run, owner)
    except (NotFoundError, UnreadableRunError):
        return None


def _replay(
    work: _Work, trace: Trace, task: AnswerTask, item: Item, numbers: _MetricSums
) -> list[Outcome | None] | None:
    """Return the outcome at each point, None where the run diverges; None for a run of no use."""
    method = get_method(work.system.method.name)
    try:
        recorded = recorded_settings(fold(trace.events), method).model_dump()
    except VeriscopeError:
        return None
    found: list[Outcome | None] = []
    for point, values in enumerate(work.points):
        changed: dict[str, Any] = {} if point == work.current else values
        outcome = _outcome(trace, work.system, recorded | changed)
        found.append(outcome)
        if outcome is None:
            continue
        for score, _ in outcome_scores(
            work.spec, work.metrics, item, task, "", outcome, verdicts=True
        ):
            # What failed has no value.
            read = dict.fromkeys(score.values) if score.error else score.values
            cost = {name: score.cost.get(name) for name in COST_METRICS}
            numbers.add(point, score.item, score.group, {**read, **cost})
    return found


def _outcome(trace: Trace, system: System, settings: Mapping[str, Any]) -> Outcome | None:
    method = get_method(system.method.name)
    try:
        again = reevaluate(trace, method, method.settings(settings))
    except (MethodEnded, VeriscopeError):
        # Settings that do not go together, or a run that never began.
        return None
    if again.diverges_at is not None:
        return None
    return outcome_of(again.trace, method.name, system.models)


def _differs(now: Outcome | None, then: Outcome) -> bool:
    if now is None:
        return True
    return (now.answer, now.verdict, now.error) != (then.answer, then.verdict, then.error)
