"""Runs a study: a sweep of settings by replay, or of thresholds on the recorded scores.

Example::

    axes = [read_axis(get_method("drad"), "theta_1=0.5:0.6:0.02")]
    study = sweep(store, evaluation, "me", "drad", axes, choose="accuracy")
    print(study.points[study.choice.point].label, study.choice.held_out.value)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pipelines.engine.profiles import checked_profile
from pipelines.errors import failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.papers import paper_figures
from pipelines.evaluation.results.scores import FLAGGED, HALLUCINATED, Evaluation
from pipelines.evaluation.results.table import Grid, detector_arrays
from pipelines.evaluation.statistics.estimates import Sampling, group_numbers
from pipelines.evaluation.studies.grid import Axis, Value
from pipelines.evaluation.studies.replays import Progress, Replays, find_system, replay_points
from pipelines.evaluation.studies.table import Study, StudyMeasurements, study_table
from pipelines.store import RunStore
from pipelines.store.evaluations import StoredEvaluation
from pipelines.store.profiles import Profile, ProfileOrigin

MAX_CUTS = 51
"""Thresholds that a study of scores tries."""

THRESHOLD = "threshold"
"""The axis of a study of scores: from this score on, an item counts as hallucinated."""


def sweep(
    store: RunStore,
    evaluation: str,
    owner: str,
    system: str,
    axes: Sequence[Axis],
    *,
    prefer: Sequence[str] = (),
    choose: str | None = None,
    at_least: tuple[str, float] | None = None,
    tags: Sequence[str] = (),
    progress: Progress | None = None,
) -> Study:
    """Sweep one or two settings of `system` over `axes`, from its recorded runs alone.

    `prefer`, `choose` and `at_least` as `study_table` takes them, `tags` as `replay_points`; raises
    what both raise.
    """
    stored = store.evaluations.get(evaluation, owner)
    found = replay_points(store, evaluation, owner, system, axes, tags=tags, progress=progress)
    return replayed_study(
        stored, system, axes, found, prefer=prefer, choose=choose, at_least=at_least
    )


def replayed_study(
    stored: StoredEvaluation,
    system: str,
    axes: Sequence[Axis],
    found: Replays,
    *,
    prefer: Sequence[str] = (),
    choose: str | None = None,
    at_least: tuple[str, float] | None = None,
    sampling: Sampling | None = None,
) -> Study:
    """Return the study of what was replayed; another metric chooses another point without a replay.

    Raises InvalidInputError as `study_table`.
    """
    spec = EvaluationSpec.model_validate(stored.spec)
    _, chosen = find_system(spec, system)
    sampling = sampling or Sampling(seed=spec.seed)
    measured = StudyMeasurements(
        points=found.points,
        values=found.values,
        groups=found.groups,
        replayed=found.replayed,
        diverged=found.diverged,
        current=found.current,
    )
    table = study_table(measured, sampling, prefer=prefer, choose=choose, at_least=at_least)
    return Study(
        name=f"{stored.name}: {system}",
        kind="replay",
        evaluation=stored.id,
        data_set=spec.data,
        data_hash=spec.data_hash,
        system=system,
        method=chosen.method.name,
        axes=tuple(axes),
        metrics=table.metrics,
        points=table.points,
        items=len(found.items),
        groups=len(set(group_numbers(found.groups).tolist())),
        answers=found.answers,
        unreadable=found.unreadable,
        altered=found.altered,
        choice=table.choice,
        no_choice=table.no_choice,
        papers=paper_figures(chosen.method.name, spec.data),
        sampling=sampling,
    )


def score_sweep(
    results: Evaluation,
    evaluation: str,
    system: str,
    *,
    choose: str = "verdict_f1",
    at_least: tuple[str, float] | None = None,
    sampling: Sampling | None = None,
) -> Study:
    """Sweep thresholds on the hallucination scores of a detector, from its lowest to its
    highest score.

    An item counts as hallucinated from the threshold on. The scores are those of the table of
    results: where a method's own score is better when higher, it is turned. Raises
    InvalidInputError for a system without scores and labels.
    """
    grid = Grid.of(results, [system] if system in results.systems else [])
    names, scores, labels = detector_arrays(results, grid)
    if not names:
        raise failure("study.no_scores", system=system)
    known = np.isfinite(scores[0]) & np.isfinite(labels[0])
    row, wrong = scores[0][known], labels[0][known]
    groups = [group for group, there in zip(grid.groups, known, strict=True) if there]
    cuts = np.unique(row)
    if len(cuts) > MAX_CUTS:
        cuts = np.unique(np.quantile(row, np.linspace(0, 1, MAX_CUTS), method="nearest"))
    measured = StudyMeasurements(
        points=[{THRESHOLD: float(cut)} for cut in cuts],
        values={
            FLAGGED: (row[None, :] >= cuts[:, None]).astype(np.float64),
            HALLUCINATED: np.repeat(wrong[None, :], len(cuts), axis=0),
        },
        groups=groups,
        replayed=[len(row)] * len(cuts),
        diverged=[0] * len(cuts),
        current=None,
    )
    sampling = sampling or Sampling(seed=results.seed)
    table = study_table(measured, sampling, choose=choose, at_least=at_least)
    return Study(
        name=f"{results.name}: {system}",
        kind="scores",
        evaluation=evaluation,
        data_set=results.data_set,
        data_hash=results.data_hash,
        system=system,
        method=results.systems[system].method,
        axes=(Axis(name=THRESHOLD, values=tuple(float(cut) for cut in cuts)),),
        metrics=table.metrics,
        points=table.points,
        items=len(row),
        groups=len(set(group_numbers(groups).tolist())),
        answers=len(row),
        choice=table.choice,
        no_choice=table.no_choice,
        papers=paper_figures(results.systems[system].method, results.data_set),
        sampling=sampling,
    )


# What a study chose, as a profile that runs can use.


def profile_of(study: Study, settings: Mapping[str, Any], name: str) -> Profile:
    """Return the settings of the chosen point of `study` over those of the system.

    `settings` are those with which the system was evaluated. Raises InvalidInputError where nothing
    was chosen, for a study of scores, and as `checked_profile`.
    """
    choice = study.choice
    if study.kind == "scores":
        raise failure("study.scores_no_setting")
    if choice is None:
        raise failure("study.nothing_chosen")
    values: dict[str, Value] = study.points[choice.point].values
    origin = ProfileOrigin(
        evaluation=study.evaluation,
        data_set=study.data_set,
        system=study.system,
        study=", ".join(axis.name for axis in study.axes),
        metric=choice.metric,
        held_out=choice.held_out.value,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    changed = {study.method: {**settings, **values}}
    return checked_profile(Profile(name=name, settings=changed, origin=origin))
