"""What is computed from evaluations and from labels, in a thread of its own, and kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from app.engine import engine
from pipelines.annotation.adjudication import by_item, item_agreement, to_decide
from pipelines.annotation.agreement import (
    PersonAgreement,
    TaskAgreement,
    people_agreement,
    task_agreement,
)
from pipelines.annotation.detectors import (
    Behind,
    FittedDetector,
    fit_detectors,
    labelled_scores,
    methods_behind,
)
from pipelines.annotation.judges import SessionJudges, evaluations_of, session_judges
from pipelines.annotation.labelling import (
    Adjudication,
    Comment,
    GivenLabel,
    Skip,
    Which,
    comments,
    decisions,
    skips,
    standing_labels,
)
from pipelines.annotation.results import (
    Detectors,
    FinalLabels,
    SessionLabels,
    session_detectors,
    session_finals,
    session_labels,
)
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import ItemBody, Task
from pipelines.base import Language
from pipelines.errors import NotFoundError, VeriscopeError
from pipelines.evaluation.beginning import Forecast, stored_forecast
from pipelines.evaluation.results.compare import (
    ComparedItem,
    SystemComparison,
    comparison,
    joined,
    system_items,
)
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import (
    Grid,
    ResultsTable,
    detector_arrays,
    detectors,
    results_table,
)
from pipelines.evaluation.runner import Overview, overview
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.detection import (
    Curve,
    DetectorRankings,
    ReliabilityPoint,
    curves,
    reliability,
)
from pipelines.evaluation.studies.running import score_sweep
from pipelines.evaluation.studies.table import Study
from pipelines.jobs import Jobs, NotYet
from pipelines.store.annotations import Annotator, WholeSession

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = 5.0
"""Seconds that a page waits for a new result before it says that it is being computed."""

_KEPT = 32
_KEPT_SCORES = 4
"""Scores of many thousands of answers take much memory."""

_results: Jobs[None, Any] = Jobs(kept=_KEPT, in_turn=True)


class ResultKey(NamedTuple):
    """The evaluation `evaluation` of `owner` when `answered` answers were there, as a key.

    `judged` is the stamp of what models had judged of them by then.
    """

    evaluation: str
    owner: str
    answered: int
    judged: str = ""


class Filter(NamedTuple):
    """The part of the items that is looked at; see `results_table`."""

    tags: tuple[str, ...] = ()
    language: Language | None = None


class Curves(NamedTuple):
    """Curves of detectors by name. Only predictions in [0, 1] have a reliability diagram."""

    roc: dict[str, Curve]
    precision_recall: dict[str, Curve]
    reliability: dict[str, list[ReliabilityPoint]]


def computed(make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what `make` makes of `arguments`, made once.

    Raises NotYet while it is being made for longer than a page can wait, and what `make` raises.
    """
    return _made(_PATIENCE, make, *arguments, **named)


def begin(make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> None:
    """Make what will be asked for, after what was asked for before; nobody waits for it."""
    with suppress(NotYet, VeriscopeError):
        _made(0.0, make, *arguments, **named)


def _made(patience: float, make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    key = (make, arguments, tuple(named.items()))
    return _results.made(key, partial(make, *arguments, **named), patience=patience)


def forecast_of(key: ResultKey, at_once: int) -> Forecast:
    """Return what the rest takes. Raises NotFoundError."""
    store = engine().service.store.evaluations
    return stored_forecast(store, key.evaluation, key.owner, at_once=at_once)


@lru_cache(maxsize=_KEPT)
def overview_of(key: ResultKey) -> Overview:
    """Return what the results show at first, with the detectors; raises as `overview` does."""
    return overview(engine().service.store.evaluations, key.evaluation, key.owner)


@lru_cache(maxsize=_KEPT_SCORES)
def scores_of(key: ResultKey) -> Evaluation:
    """Return the scores. Raises NotFoundError."""
    return read_results(engine().service.store.evaluations, key.evaluation, key.owner)[1]


def parts_ready(key: ResultKey) -> None:
    """Read what the table of any part takes. Raises NotFoundError."""
    scores_of(key)


def table_of(key: ResultKey, part: Filter, metrics: tuple[str, ...]) -> ResultsTable:
    """Return the table of `part`, without `metrics` of all there are; raises as
    `results_table` does.

    Detectors are ranked by `detection_of`, which takes longer than all the rest.
    """
    return _table(key, part).with_metrics(metrics or overview_of(key).table.held)


@lru_cache(maxsize=_KEPT)
def _table(key: ResultKey, part: Filter) -> ResultsTable:
    """Return the table of `part` with all metrics; that of all items has its detectors."""
    if part == Filter():
        return overview_of(key).table
    found = scores_of(key)
    return results_table(found, tags=part.tags, language=part.language, ranked=False)


@lru_cache(maxsize=_KEPT)
def detection_of(key: ResultKey, part: Filter) -> DetectorRankings | None:
    """Return the detectors of `part`, None where there are none; raises as `results_table` does."""
    table = _table(key, part)
    if part == Filter():
        return table.detection
    found = scores_of(key)
    grid = Grid.of(found, tags=part.tags, language=part.language)
    return detectors(found, table.sampling, grid, compared=False)


Other = tuple[ResultKey, tuple[str, str], bool]
"""Another evaluation to compare with, the labels of both, and whether equal ids are equal items."""


@lru_cache(maxsize=1)
def joined_of(
    key: ResultKey, other: ResultKey, labels: tuple[str, str], same_ids: bool
) -> Evaluation:
    """Return two evaluations as one, each system under the label of its own; raises as
    `joined` does.
    """
    both = {label: scores_of(one) for label, one in zip(labels, (key, other), strict=True)}
    return joined(both, "any" if same_ids else "same")


def comparison_of(
    key: ResultKey, part: Filter, systems: tuple[str, ...], metric: str, other: Other | None = None
) -> SystemComparison:
    """Compare `systems` item by item, also of two evaluations; raises what `comparison` raises."""
    found = scores_of(key) if other is None else joined_of(key, *other)
    return comparison(found, systems, metric, tags=part.tags, language=part.language)


def items_of(
    key: ResultKey, part: Filter, system: str, metric: str, other: Other | None = None
) -> tuple[ComparedItem, ...]:
    """Return the items of one system, the worst first; raises what `system_items` raises."""
    found = scores_of(key) if other is None else joined_of(key, *other)
    return system_items(found, system, metric, tags=part.tags, language=part.language)


def curves_of(key: ResultKey, part: Filter) -> Curves:
    """Return the curves of the detectors of `part`, those that are defined."""
    found = scores_of(key)
    grid = Grid.of(found, tags=part.tags, language=part.language)
    drawn = Curves({}, {}, {})
    for name, scores, labels in zip(*detector_arrays(found, grid), strict=True):
        pair = curves(scores, labels)
        if pair is not None:
            drawn.roc[name], drawn.precision_recall[name] = pair
        known = scores[np.isfinite(scores)]
        if known.size and known.min() >= 0 and known.max() <= 1:
            drawn.reliability[name] = reliability(scores, labels)
    return drawn


def score_study(key: ResultKey, system: str, choose: str) -> Study:
    """Study thresholds on the scores of `system`; raises as `score_sweep`."""
    return score_sweep(scores_of(key), key.evaluation, system, choose=choose)


# Results that are computed from the labels of a session, in a separate thread, and cached.
#
# The key of each result counts the events of the session. So a page that is drawn again is quick,
# and shows nothing that is out of date.


class SessionKey(NamedTuple):
    """The session `session` with so many events, items and control items, as a key."""

    session: str
    stamp: tuple[int, int, int]


class Disputed(NamedTuple):
    """An item that people labelled; `agreement` in [0, 1] as in `item_agreement`."""

    item: int
    task: Task
    agreement: float
    people: int
    decided: bool


class Disputes(NamedTuple):
    """What is to be decided, the lowest agreement first, and what was decided, the last first."""

    open: list[Disputed]
    decided: list[Disputed]
    decisions: dict[int, Adjudication]
    labels: dict[int, list[GivenLabel]]
    comments: list[Comment]
    skips: list[Skip]
    bodies: dict[int, ItemBody]
    people: dict[int, Annotator]


def now(lead: Lead) -> SessionKey:
    """Return the session as it is now, as a key."""
    found = lead.store.annotations.standing(lead.session_id)
    return SessionKey(lead.session_id, (found.events, found.items, found.gold))


@lru_cache(maxsize=2)
def whole_of(key: SessionKey) -> WholeSession:
    """Return everything in the session. Raises NotFoundError."""
    return engine().service.store.annotations.whole(key.session)


@lru_cache(maxsize=2)
def labels_of(key: SessionKey) -> SessionLabels:
    """Return every label. Raises NotFoundError."""
    return session_labels(whole_of(key))


@lru_cache(maxsize=16)
def agreement_of(key: SessionKey, task: Task, which: Which) -> TaskAgreement:
    """Return how far people agree on one task."""
    found = labels_of(key)
    return task_agreement(task, found.given(which), found.bodies)


def people_of(key: SessionKey, task: Task, which: Which) -> list[PersonAgreement]:
    """Return how far each person agrees with the others on one task."""
    found = labels_of(key)
    return people_agreement(agreement_of(key, task, which), found.given(which), found.bodies)


@lru_cache(maxsize=8)
def _finals(key: SessionKey, which: Which) -> FinalLabels:
    return session_finals(whole_of(key), which)


def detectors_of(key: SessionKey, task: Task, which: Which) -> Detectors:
    """Return the detectors against the final labels."""
    return session_detectors(whole_of(key), _finals(key, which), task)


def fitted_of(
    key: SessionKey, task: Task, which: Which, share: float, seed: int
) -> tuple[list[FittedDetector], dict[str, Behind]]:
    """Return thresholds and calibrations fitted on a `share` of the groups, and whose they are."""
    whole = whole_of(key)
    scores = labelled_scores(task, whole.items, _finals(key, which).labels)
    fitted = fit_detectors(scores, share_trained=share, seed=seed)
    return fitted, methods_behind(engine().service.store, whole)


def judged_stamp(key: SessionKey) -> tuple[str, ...]:
    """Return what changes with everything that models judge of the evaluations of the session."""
    whole, store = whole_of(key), engine().service.store
    stamps: list[str] = []
    for evaluation in evaluations_of(whole.items):
        try:
            stamps.append(store.judgements.stamp(evaluation, whole.session.owner))
        except NotFoundError:
            stamps.append("gone")
    return tuple(stamps)


def judges_of(key: SessionKey, which: Which, judged: tuple[str, ...]) -> SessionJudges:
    """Return the judges of the session's evaluations when `judged` was the `judged_stamp`."""
    return session_judges(engine().service.store, whole_of(key), which)


@lru_cache(maxsize=2)
def disputes_of(key: SessionKey) -> Disputes:
    """Return what there is to decide, and what was decided."""
    whole = whole_of(key)
    labels = standing_labels(whole.events)
    decided = decisions(whole.events)
    control = {one.number for one in whole.items if one.gold is not None}
    groups = by_item(labels)
    bodies = {one.number: ItemBody.model_validate(one.body) for one in whole.items}

    def disputed(item: int) -> Disputed:
        given = [one.label for one in groups.get(item, [])]
        agreement = item_agreement(given)
        return Disputed(
            item,
            bodies[item].task,
            1.0 if agreement is None else agreement,
            len(given),
            item in decided,
        )

    order = {event.item: event.seq for event in whole.events if event.kind == "adjudicated"}
    return Disputes(
        open=[disputed(item) for item in to_decide(labels, decided) if item not in control],
        decided=[disputed(item) for item in sorted(decided, key=order.__getitem__, reverse=True)],
        decisions=decided,
        labels=groups,
        comments=comments(whole.events),
        skips=skips(whole.events),
        bodies=bodies,
        people={one.number: one for one in whole.annotators},
    )
