"""The table of a study: every metric at every point, and the best point, chosen and reported apart.

A point that is best on some items is partly best by luck. So the point is chosen on the even
groups of items, and what is reported of it is read from the odd ones, which chose nothing. The two
halves also change their parts, for one number on all items (two-fold cross-validation).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.results.columns import (
    ResultsColumn,
    constant_columns,
    held,
    origin_columns,
    printed_columns,
)
from pipelines.evaluation.results.export import (
    columns_csv,
    columns_latex,
    columns_markdown,
    columns_text,
    estimate_words,
)
from pipelines.evaluation.results.papers import PaperFigure, paper_words
from pipelines.evaluation.results.scores import (
    DETECTOR_VALUES,
    FLAGGED,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    SECOND_SCORE,
    MetricInfo,
    few_notes,
)
from pipelines.evaluation.results.table import larger_ranks
from pipelines.evaluation.statistics.detection import (
    BEST,
    RANKINGS,
    best_qualities,
    detection,
)
from pipelines.evaluation.statistics.estimates import (
    Estimate,
    Floats,
    PairedDifference,
    Sampling,
    group_numbers,
    paired_differences,
    ratio_estimates,
)
from pipelines.evaluation.studies.grid import Axis, Value, point_label
from pipelines.evaluation.studies.replays import COST_METRICS

MOST_DIVERGED = 0.1
"""A point is not chosen where a larger share of the answers needs a new call."""

VERDICT_METRICS = (
    "verdict_precision",
    "verdict_recall",
    "verdict_f1",
    "verdict_precision_accurate",
    "verdict_recall_accurate",
    "verdict_f1_accurate",
    "verdict_accuracy",
    "flagged",
)
"""Of the method's own verdicts, against people's labels or the accepted answers. Positive is
hallucinated, except for those whose names end in "_accurate", which are the SLM paper's; `flagged`
is the share of items found hallucinated.
"""

_PREFERRED = ("accuracy", "f1", "truthful", "list_f1_5", "factscore", "verdict_f1", "auroc")
"""The first of these that there is chooses, where nobody says what does."""

_INNER = (*DETECTOR_VALUES, FLAGGED)


class _Ratio(NamedTuple):
    """A metric of [points, items] as a ratio of two sums: a mean has 1 below each known value."""

    above: Floats
    below: Floats

    def over(self, items: NDArray[np.bool_]) -> _Ratio:
        """Return the ratio on these items alone."""
        return _Ratio(np.where(items, self.above, 0.0), np.where(items, self.below, 0.0))

    def values(self) -> Floats:
        """Return the value at each point, NaN where it is not defined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.above.sum(axis=1) / self.below.sum(axis=1)


class StudyPoint(Frozen):
    """One combination of values. `current`: the settings with which it was evaluated.

    `replayed` answers are known at this point, `diverged` would need a new call. `differences` are
    this point minus the current one, on the items that both have; the current point has none.
    `papers` are the figures that the method's paper prints for it.
    """

    label: str
    values: dict[str, Value]
    current: bool = False
    replayed: int
    diverged: int
    metrics: dict[str, Estimate]
    differences: dict[str, PairedDifference] = Field(default_factory=dict)
    papers: tuple[PaperFigure, ...] = ()


class ChosenPoint(Frozen):
    """The best point on the even groups of items, and what it comes to on the odd ones.

    `point` and `current` are numbers of points; `current` is None where there is none. `selected`
    is the value on the even groups, which is too good by the choice; `held_out` that on the odd
    groups, beside `held_out_current` and their paired `difference`. `cross_validated` has each half
    judged by what the other half chose; `other_point` is what the odd groups chose. `candidates`
    points were compared, on the `items` that all of them have.
    """

    metric: str
    point: int
    current: int | None
    selected: float
    held_out: Estimate
    held_out_current: Estimate | None
    difference: PairedDifference | None
    cross_validated: Estimate | None
    other_point: int | None
    candidates: int
    items: int


class Study(Frozen):
    """What settings of one system come to on one evaluation.

    `kind` "replay": the recorded runs with other settings; "scores": other thresholds on the
    recorded scores. `unreadable` and `altered` as in `Replays`. `papers` are figures of the paper
    that belong to no point. `choice` is None without a metric to choose by, and `no_choice` says
    why.
    """

    name: str
    kind: Literal["replay", "scores"]
    evaluation: str
    data_set: str
    data_hash: str
    system: str
    method: str
    axes: tuple[Axis, ...]
    metrics: tuple[MetricInfo, ...]
    points: tuple[StudyPoint, ...]
    items: int
    groups: int
    answers: int
    unreadable: int = 0
    altered: int = 0
    choice: ChosenPoint | None = None
    no_choice: str = ""
    papers: tuple[PaperFigure, ...] = ()
    source: str = ""
    sampling: Sampling

    def metric(self, name: str) -> MetricInfo:
        """Return what is known of a metric of the study. Raises InvalidInputError for another."""
        for one in self.metrics:
            if one.name == name:
                return one
        raise failure("study.no_metric", metric=name, known=[one.name for one in self.metrics])


class StudyMeasurements(NamedTuple):
    """What a table is made of: points, and metric to [points, items] with the items' groups.

    `replayed` and `diverged` are counts of answers by point; `current` the recorded point.
    """

    points: Sequence[Mapping[str, Value]]
    values: Mapping[str, Floats]
    groups: Sequence[str]
    replayed: Sequence[int]
    diverged: Sequence[int]
    current: int | None


class StudyTable(NamedTuple):
    """The points with their estimates, the metrics that have a value, and the choice."""

    points: tuple[StudyPoint, ...]
    metrics: tuple[MetricInfo, ...]
    choice: ChosenPoint | None
    no_choice: str


def study_table(
    measured: StudyMeasurements,
    sampling: Sampling,
    *,
    prefer: Sequence[str] = (),
    choose: str | None = None,
    at_least: tuple[str, float] | None = None,
) -> StudyTable:
    """Return estimates at every point, and the point that is best by `choose`.

    The metric that chooses is `choose`, else the first of `prefer` that there is, else one that
    tells most; never a cost. With `at_least`, a point is chosen only where that metric reaches this
    value on the items that choose. Raises InvalidInputError for an unknown metric, and for a
    minimum of or beside a ranking of scores.
    """
    ratios = _ratios(measured.values)
    rankings = _rankings(measured, sampling)
    order = [
        *(name for name in METRICS if name not in COST_METRICS),
        *VERDICT_METRICS,
        *COST_METRICS,
    ]
    shown = [name for name in dict.fromkeys(order) if name in ratios] + [*rankings]
    for name in (*([choose] if choose else []), *([at_least[0]] if at_least else [])):
        if name not in shown:
            raise failure("study.no_value", metric=name, known=[*shown])
    estimates = _estimates(
        {name: ratios[name] for name in shown if name in ratios}, measured, sampling
    )
    estimates |= rankings
    differences = _differences(ratios, shown, measured, sampling)
    found = tuple(
        StudyPoint(
            label=point_label(values),
            values=dict(values),
            current=number == measured.current,
            replayed=measured.replayed[number],
            diverged=measured.diverged[number],
            metrics={name: estimates[name][number] for name in shown},
            differences=differences.get(number, {}),
        )
        for number, values in enumerate(measured.points)
    )
    infos = tuple(metric_info(name) for name in shown)
    wanted = [name for name in (*prefer, *_PREFERRED) if name in shown]
    wanted += [one.name for one in infos if one.better and one.name not in COST_METRICS]
    by = choose or next(iter(wanted), None)
    if by is None:
        return StudyTable(found, infos, None, "no_metric")
    if at_least is not None and (ranking := {by, at_least[0]} & rankings.keys()):
        raise failure("study.minimum_of_ranking", metric=min(ranking), rankings=[*rankings])
    choice = (
        _choice(by, at_least, ratios, measured, sampling)
        if by in ratios
        else _ranked_choice(by, measured, sampling)
    )
    if isinstance(choice, str):
        return StudyTable(found, infos, None, choice)
    return StudyTable(found, infos, choice, "")


def metric_info(name: str) -> MetricInfo:
    """Return what is known of a metric of studies."""
    if name in VERDICT_METRICS:
        return MetricInfo(name=name, better=None if name == "flagged" else "higher")
    if name in COST_METRICS:
        return MetricInfo(name=name, high=None, better="lower")
    if name in RANKINGS:
        return MetricInfo(name=name)
    return MetricInfo.of(name)


def _ratios(values: Mapping[str, Floats]) -> dict[str, _Ratio]:
    """Return every metric that is a ratio of sums over items."""
    found: dict[str, _Ratio] = {}
    for name, one in values.items():
        if name not in _INNER and np.isfinite(one).any():
            known = np.isfinite(one)
            found[name] = _Ratio(np.where(known, one, 0.0), known.astype(np.float64))
    flagged, wrong = values.get(FLAGGED), values.get(HALLUCINATED)
    if flagged is None or not np.isfinite(flagged).any():
        return found
    said = np.isfinite(flagged)
    found["flagged"] = _Ratio(np.where(said, flagged, 0.0), said.astype(np.float64))
    if wrong is None:
        return found
    both = said & np.isfinite(wrong)
    if not both.any():
        return found
    f, h = np.where(both, flagged, 0.0), np.where(both, wrong, 0.0)
    clear, right = np.where(both, 1 - f, 0.0), np.where(both, 1 - h, 0.0)
    # F1 is 2 TP / (flagged + hallucinated): a ratio of two sums as well.
    found["verdict_precision"] = _Ratio(f * h, f)
    found["verdict_recall"] = _Ratio(f * h, h)
    found["verdict_f1"] = _Ratio(2 * f * h, f + h)
    found["verdict_precision_accurate"] = _Ratio(clear * right, clear)
    found["verdict_recall_accurate"] = _Ratio(clear * right, right)
    found["verdict_f1_accurate"] = _Ratio(2 * clear * right, clear + right)
    found["verdict_accuracy"] = _Ratio(f * h + clear * right, both.astype(np.float64))
    return found


def _estimates(
    ratios: Mapping[str, _Ratio], measured: StudyMeasurements, sampling: Sampling
) -> dict[str, list[Estimate]]:
    if not ratios:
        return {}
    above = np.concatenate([one.above for one in ratios.values()])
    below = np.concatenate([one.below for one in ratios.values()])
    found = ratio_estimates(above, below, measured.groups, sampling)
    size = len(measured.points)
    return {name: found[k * size : (k + 1) * size] for k, name in enumerate(ratios)}


def _rankings(measured: StudyMeasurements, sampling: Sampling) -> dict[str, list[Estimate]]:
    """Return how well the scores rank the items at each point; empty without scores and labels."""
    scores, labels = _detector(measured)
    if scores is None or labels is None:
        return {}
    found: dict[str, list[Estimate]] = {name: [] for name in (*RANKINGS, *BEST)}
    done: dict[bytes, Mapping[str, Estimate]] = {}
    for row, truth in zip(scores, labels, strict=True):
        # A threshold changes verdicts, not scores: many points share one ranking.
        key = row.tobytes() + truth.tobytes()
        if key not in done:
            (ranked,) = detection(
                row[None, :], truth, ["point"], measured.groups, sampling
            ).rankings
            (best,) = best_qualities(row[None, :], truth[None, :], measured.groups)
            done[key] = {**ranked, **best}
        for name, column in found.items():
            column.append(done[key].get(name, Estimate(value=None)))
    if all(one.value is None for one in found["auroc"]):
        return {}
    return found


def _detector(measured: StudyMeasurements) -> tuple[Floats | None, Floats | None]:
    """Return scores and labels, [points, items] each; a label on which repeats are even is
    left out.
    """
    scores = measured.values.get(HALLUCINATION_SCORE)
    labels = measured.values.get(HALLUCINATED)
    if scores is None or labels is None or not (np.isfinite(scores) & np.isfinite(labels)).any():
        return None, None
    if (second := measured.values.get(SECOND_SCORE)) is not None:
        scores = larger_ranks(scores, second)
    labels = np.where(labels == 0.5, np.nan, np.where(np.isfinite(labels), labels > 0.5, np.nan))
    return scores, labels


def _differences(
    ratios: Mapping[str, _Ratio],
    shown: Sequence[str],
    measured: StudyMeasurements,
    sampling: Sampling,
) -> dict[int, dict[str, PairedDifference]]:
    """Return each other point minus the current one, for metrics that are means over items."""
    now = measured.current
    if now is None:
        return {}
    labels = [point_label(values) for values in measured.points]
    # Holm's correction counts every pair, so the current point is not compared with itself.
    pairs = [(number, now) for number in range(len(labels)) if number != now]
    found: dict[int, dict[str, PairedDifference]] = {number: {} for number, _ in pairs}
    for name in shown:
        means = _means(ratios[name]) if name in ratios else None
        if means is None:
            continue
        compared = paired_differences(means, labels, measured.groups, sampling, pairs)
        for (number, _), one in zip(pairs, compared, strict=True):
            found[number][name] = one
    return found


def _means(ratio: _Ratio) -> Floats | None:
    """Return an array [points, items] of a metric that has a value for each item, else None."""
    if not np.isin(ratio.below, (0.0, 1.0)).all():
        return None
    # A share among some of the items is not compared item by item.
    return np.where(ratio.below > 0, ratio.above, np.nan)


def _halves(groups: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the items of even and of odd groups: items of one document stay together."""
    even = group_numbers(groups) % 2 == 0
    return even, ~even


def _candidates(measured: StudyMeasurements) -> list[int]:
    """Return the points at which enough answers are known."""
    return [
        number
        for number, (known, missing) in enumerate(
            zip(measured.replayed, measured.diverged, strict=True)
        )
        if known and missing <= MOST_DIVERGED * (known + missing)
    ]


def _choice(
    by: str,
    at_least: tuple[str, float] | None,
    ratios: Mapping[str, _Ratio],
    measured: StudyMeasurements,
    sampling: Sampling,
) -> ChosenPoint | str:
    """Return the best point by a ratio, or why there is none."""
    ratio, rows = ratios[by], _candidates(measured)
    covered = _covered(measured)
    shared = np.asarray(covered[rows].all(axis=0)) if rows else np.zeros(len(measured.groups), bool)
    even, odd = (half & shared for half in _halves(measured.groups))
    lower = metric_info(by).better == "lower"

    def allowed(half: NDArray[np.bool_]) -> list[int]:
        if at_least is None:
            return rows
        reached = ratios[at_least[0]].over(half).values()
        return [row for row in rows if reached[row] >= at_least[1]]

    def best(half: NDArray[np.bool_]) -> int | None:
        values = ratio.over(half).values()
        return _best(values, allowed(half), measured.current, lower=lower)

    if not rows:
        return "all_diverge"
    if even.any() and not allowed(even):
        return "none_reaches"
    first, second = best(even), best(odd)
    if first is None or not ratio.over(odd).below[first].any():
        return "too_few_items"
    (held,) = _one(ratio, first, odd, measured, sampling)
    now = measured.current
    current = None if now is None else _one(ratio, now, odd, measured, sampling)[0]
    means, difference = _means(ratio), None
    if means is not None and now is not None:
        labels = [point_label(values) for values in measured.points]
        pair = [(first, now)]
        half = np.where(odd, means, np.nan)
        (difference,) = paired_differences(half, labels, measured.groups, sampling, pair)
    crossed = None
    if second is not None:
        above = np.where(even, ratio.above[second], np.where(odd, ratio.above[first], 0.0))
        below = np.where(even, ratio.below[second], np.where(odd, ratio.below[first], 0.0))
        (crossed,) = ratio_estimates(above[None, :], below[None, :], measured.groups, sampling)
    return ChosenPoint(
        metric=by,
        point=first,
        current=now,
        selected=float(ratio.over(even).values()[first]),
        held_out=held,
        held_out_current=current,
        difference=difference,
        cross_validated=crossed,
        other_point=second,
        candidates=len(rows),
        items=int(shared.sum()),
    )


def _ranked_choice(by: str, measured: StudyMeasurements, sampling: Sampling) -> ChosenPoint | str:
    """Return the best point by a ranking of scores, or why there is none."""
    rows, now = _candidates(measured), measured.current
    if not rows:
        return "all_diverge"
    shared = np.asarray(_covered(measured)[rows].all(axis=0))
    even, odd = (half & shared for half in _halves(measured.groups))

    def ranked(half: NDArray[np.bool_]) -> list[Estimate]:
        values = {name: np.where(half, one, np.nan) for name, one in measured.values.items()}
        found = _rankings(measured._replace(values=values), sampling)
        return found.get(by, [Estimate(value=None)] * len(measured.points))

    there, here = ranked(even), ranked(odd)
    values = np.array([np.nan if one.value is None else one.value for one in there])
    best = _best(values, rows, now, lower=False)
    if best is None or here[best].value is None:
        return "too_few_items"
    return ChosenPoint(
        metric=by,
        point=best,
        current=now,
        selected=float(values[best]),
        held_out=here[best],
        held_out_current=None if now is None else here[now],
        difference=None,
        cross_validated=None,
        other_point=None,
        candidates=len(rows),
        items=int(shared.sum()),
    )


def _covered(measured: StudyMeasurements) -> NDArray[np.bool_]:
    """Return an array [points, items]: where anything is known of an item."""
    return np.any([np.isfinite(one) for one in measured.values.values()], axis=0)


def _best(values: Floats, rows: Sequence[int], current: int | None, *, lower: bool) -> int | None:
    """Return the best of these points; among equals the current one, else the one in
    their middle.
    """
    known = [row for row in rows if np.isfinite(values[row])]
    if not known:
        return None
    top = min(values[known]) if lower else max(values[known])
    equal = [row for row in known if abs(values[row] - top) < 1e-12]
    # The ends of a plateau are the first to fall on other items.
    return current if current in equal else equal[(len(equal) - 1) // 2]


def _one(
    ratio: _Ratio,
    point: int,
    items: NDArray[np.bool_],
    measured: StudyMeasurements,
    sampling: Sampling,
) -> list[Estimate]:
    half = ratio.over(items)
    rows = slice(point, point + 1)
    return ratio_estimates(half.above[rows], half.below[rows], measured.groups, sampling)


# A study as text for a terminal, and as CSV, JSON Lines, Markdown and LaTeX.

SHOWN = 6
"""Metrics of the text for a terminal, where nobody chose any."""

_NO_CHOICE = {
    "no_metric": "No point is chosen: the study has no metric with a better direction.",
    "all_diverge": "No point is chosen: at each, more than a tenth of the answers need a new call.",
    "none_reaches": "No point is chosen: on the even items none reaches the minimum.",
    "too_few_items": "No point is chosen: the items cannot be divided into two halves.",
}


def study_text(study: Study, metrics: Sequence[str] = ()) -> str:
    """Return the study in lines of at most 120 columns; without `metrics` those that say most.

    Raises InvalidInputError for a metric that it has not.
    """
    names = [study.metric(name).name for name in metrics] or shown_metrics(study)
    columns = [one for one in study_columns(study, names) if one.group not in ("file", "papers")]
    return columns_text(columns, study_rows(study), study_notes(study))


def shown_metrics(study: Study) -> list[str]:
    """Return the metric that chose first, then others that differ between points, six at most."""
    first = [study.choice.metric] if study.choice else []

    def moves(name: str) -> bool:
        return len({point.metrics[name].value for point in study.points}) > 1

    names = [info.name for info in study.metrics]
    rest = [name for name in names if moves(name)] or names
    return list(dict.fromkeys([*first, *rest]))[:SHOWN]


def study_notes(study: Study) -> list[str]:
    """Return what the numbers of a study mean, in sentences."""
    sampling = study.sampling
    notes = [
        f"{study.name}: {study.data_set} ({study.data_hash[:12]}), {study.items} items,"
        f" no new call. Brackets: {100 * sampling.level:g} % intervals, seed {sampling.seed}."
        " *: the recorded settings; >: the chosen point."
    ]
    if study.source:
        notes.append(study.source)
    if any(point.diverged for point in study.points):
        notes.append(
            "Diverged: answers that need a new call at this point. Its numbers leave them out."
        )
    if study.unreadable:
        notes.append(f"{study.unreadable} of {study.answers} runs are deleted or cannot be read.")
    if study.altered:
        notes.append(
            f"{study.altered} of {study.answers} runs give another answer with the recorded"
            " settings than the stored one: the code has changed since they were recorded."
        )
    notes += choice_notes(study)
    notes += few_notes(one for point in study.points for one in point.metrics.values())
    for point in study.points:
        notes += [f"{point.label}: {paper_words(figure)}" for figure in point.papers]
    return notes + [f"{study.method}: {paper_words(figure)}" for figure in study.papers]


def choice_notes(study: Study) -> list[str]:
    """Return what was chosen, on what, and what it comes to on the items that chose nothing."""
    choice = study.choice
    if choice is None:
        return [_NO_CHOICE[study.no_choice]] if study.no_choice else []
    point = study.points[choice.point]
    notes = [
        f"Chosen on even items by {choice.metric}: {point.label} ({choice.selected:.3f} there)."
        f" On odd items: {_words(choice.held_out)}{_against(choice)}."
        f" {choice.candidates} points were compared on {choice.items} items that all of them have."
    ]
    if choice.cross_validated is not None and choice.other_point is not None:
        other = study.points[choice.other_point].label
        notes.append(
            f"Two-fold cross-validated: {_words(choice.cross_validated)}; odd items choose {other}."
        )
    return notes


class StudyRow(NamedTuple):
    """A row of the table of a study: a point, and whether it was chosen."""

    point: StudyPoint
    chosen: bool


def study_rows(study: Study) -> list[StudyRow]:
    """Return the points of a study as the rows of its table."""
    chosen = study.choice.point if study.choice else None
    return [StudyRow(point, number == chosen) for number, point in enumerate(study.points)]


def study_columns(
    study: Study, metrics: Sequence[str] | None = None
) -> list[ResultsColumn[StudyRow]]:
    """Return every column of the table of a study, whose rows are `study_rows`.

    `metrics` are shown in this order, by default all. Raises InvalidInputError for another.
    """
    names = [info.name for info in study.metrics] if metrics is None else metrics
    infos = [study.metric(name) for name in names]
    return [
        *(_axis(axis) for axis in study.axes),
        ResultsColumn("name", "point", None, _marked, "name"),
        ResultsColumn("point", "point", None, lambda row: row.point.label),
        ResultsColumn("current", "current", None, lambda row: int(row.point.current)),
        ResultsColumn("chosen", "chosen", None, lambda row: int(row.chosen)),
        _count("replayed", "study.replayed", lambda row: row.point.replayed),
        _count("diverged", "study.diverged", lambda row: row.point.diverged),
        *(column for info in infos for column in _metric(info)),
        ResultsColumn(
            "papers", "paper", None, lambda row: row.point.papers, "papers", "study.paper"
        ),
        ResultsColumn("paper_figures", "papers", None, lambda row: row.point.papers),
        *constant_columns(system=study.system),
        *origin_columns(study.data_set, study.data_hash, study.sampling),
    ]


def _axis(axis: Axis) -> ResultsColumn[StudyRow]:
    def value(row: StudyRow) -> Value:
        return row.point.values.get(axis.name)

    return ResultsColumn(axis.name, axis.name, None, value)


def _count(key: str, words: str, read: Callable[[StudyRow], int]) -> ResultsColumn[StudyRow]:
    return ResultsColumn(key, key, None, read, "count", words)


def _metric(info: MetricInfo) -> list[ResultsColumn[StudyRow]]:
    """Return a metric at each point, and for files what it is more than with the recorded ones."""

    def difference(row: StudyRow) -> Estimate:
        pair = row.point.differences.get(info.name)
        return pair.difference if pair else Estimate(value=None)

    def value(row: StudyRow) -> Estimate:
        return row.point.metrics[info.name]

    return [
        ResultsColumn(info.name, info.name, info.better, value, "metric", means=info),
        ResultsColumn(
            f"{info.name}_difference", f"{info.name}, difference", info.better, difference
        ),
    ]


def _marked(row: StudyRow) -> str:
    """Return a point with its marks: the recorded settings, the chosen ones."""
    marks = ">" * row.chosen + "*" * row.point.current
    return marks + " " * row.chosen + row.point.label


def study_csv(study: Study) -> str:
    """Return one row a point: values, counts, and each metric with its interval; nothing is
    rounded.
    """
    return columns_csv(study_columns(study), study_rows(study))


def study_jsonl(study: Study) -> str:
    """Return one line on the study, then one for each point."""
    head = {"study": study.model_dump(mode="json", exclude={"points"})}
    lines = [head, *(point.model_dump(mode="json") for point in study.points)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def study_markdown(study: Study) -> str:
    """Return the study in Markdown."""
    return columns_markdown(_printed(study), study_rows(study), study_notes(study))


def study_latex(study: Study) -> str:
    """Return the study in LaTeX for the package booktabs."""
    return columns_latex(_printed(study), study_rows(study), study_notes(study), "tab:study")


def _printed(study: Study) -> list[ResultsColumn[StudyRow]]:
    return held(printed_columns(study_columns(study)), study_rows(study))


STUDY_FORMATS: dict[str, Callable[[Study], str]] = {
    "text": study_text,
    "markdown": study_markdown,
    "csv": study_csv,
    "latex": study_latex,
    "jsonl": study_jsonl,
}
"""Format to how a study is written in it."""


def _words(estimate: Estimate) -> str:
    return estimate_words(estimate, missing="not known")


def _against(choice: ChosenPoint) -> str:
    """Return the recorded settings on the same items, with the difference."""
    if choice.held_out_current is None:
        return ""
    words = f", recorded settings {_words(choice.held_out_current)}"
    pair = choice.difference
    if pair is None or pair.difference.value is None:
        return words
    tested = "" if pair.p is None else f", p = {pair.p:.3g}"
    return f"{words}, difference {_words(pair.difference)}{tested}"
