"""What is computed from evaluations, in a thread of its own, and kept.

Each result is kept with the number of answers that it was computed from: a page that is drawn again
is quick, and shows nothing that is out of date. Results of many thousands of answers take minutes,
in which the page stays usable.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from app.engine import engine
from pipelines.errors import VeriscopeError
from pipelines.evaluation.beginning import stored_forecast
from pipelines.evaluation.forecast import Forecast
from pipelines.evaluation.overview import Overview, overview
from pipelines.evaluation.results.arrays import Grid
from pipelines.evaluation.results.compare import ComparedItem, SystemComparison, comparison, joined
from pipelines.evaluation.results.items import system_items
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import (
    ResultsTable,
    detector_arrays,
    detectors,
    read_for_parts,
    results_table,
)
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
from pipelines.types import Language

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
    """Read what the table of any part takes; raises NotFoundError."""
    read_for_parts(scores_of(key))


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
