"""What is computed from evaluations, kept by the number of answers that it was computed from.

So a page that is drawn again is quick, and nothing that is out of date is shown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import streamlit as st

from app.engine import engine
from pipelines.evaluation.beginning import stored_forecast
from pipelines.evaluation.forecast import Forecast
from pipelines.evaluation.results.compare import Comparison, comparison
from pipelines.evaluation.results.scores import HALLUCINATED, HALLUCINATION_SCORE, Evaluation
from pipelines.evaluation.results.table import ResultsTable, detector_arrays, results_table
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.detection import Curve, ReliabilityBin, curves, reliability
from pipelines.types import Language


class Of(NamedTuple):
    """The evaluation `evaluation` of `owner` when `answered` answers were there, as a key."""

    evaluation: str
    owner: str
    answered: int


class Filter(NamedTuple):
    """The part of the items that is looked at; see `results_table`."""

    tags: tuple[str, ...] = ()
    language: Language | None = None


class Curves(NamedTuple):
    """Curves of detectors by name. Only predictions in [0, 1] have a reliability diagram."""

    roc: dict[str, Curve]
    precision_recall: dict[str, Curve]
    reliability: dict[str, list[ReliabilityBin]]


@st.cache_resource(max_entries=32, show_spinner=False)
def forecast_of(of: Of, at_once: int) -> Forecast:
    """What the rest takes. Raises NotFoundError."""
    store = engine().service.store.evaluations
    return stored_forecast(store, of.evaluation, of.owner, at_once=at_once)


@st.cache_resource(max_entries=8, show_spinner=False)
def results_of(of: Of) -> Evaluation:
    """The scores. Raises NotFoundError."""
    return read_results(engine().service.store.evaluations, of.evaluation, of.owner)[1]


@st.cache_resource(max_entries=8, show_spinner=False)
def metrics_of(of: Of) -> tuple[str, ...]:
    """The metrics that at least one answer has, in the order of the table.

    Scores and labels of detectors are none: the table ranks them in a part of its own.
    """
    found = results_of(of)
    held = {name for one in found.scores for name, value in one.values.items() if value is not None}
    hidden = (HALLUCINATION_SCORE, HALLUCINATED)
    return tuple(name for name in found.metric_names() if name in held and name not in hidden)


@st.cache_resource(max_entries=32, show_spinner=False)
def table_of(of: Of, part: Filter, metrics: tuple[str, ...]) -> ResultsTable:
    """The table of `part`, with `metrics` or all that there are; raises what `results_table` raises."""
    return results_table(
        results_of(of), metrics=metrics or metrics_of(of), tags=part.tags, language=part.language
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def comparison_of(of: Of, part: Filter, systems: tuple[str, ...], metric: str) -> Comparison:
    """`systems` item by item; raises what `comparison` raises."""
    return comparison(results_of(of), systems, metric, tags=part.tags, language=part.language)


@st.cache_resource(max_entries=16, show_spinner=False)
def curves_of(of: Of, part: Filter) -> Curves:
    """The curves of the detectors of `part`, those that are defined."""
    found = results_of(of).selected(tags=part.tags, language=part.language)
    names, scores, labels = detector_arrays(found)
    drawn = Curves({}, {}, {})
    for name, own, truth in zip(names, scores, labels, strict=True):
        known = np.isfinite(own) & np.isfinite(truth)
        pair = curves(own[known], truth[known])
        if pair is not None:
            drawn.roc[name], drawn.precision_recall[name] = pair
        if known.any() and (own[known] >= 0).all() and (own[known] <= 1).all():
            drawn.reliability[name] = list(reliability(own[known], truth[known]))
    return drawn
