"""A study as text for a terminal, and as CSV, JSON Lines, Markdown and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    estimate_words,
)
from pipelines.evaluation.results.papers import paper_words
from pipelines.evaluation.results.remarks import few_notes
from pipelines.evaluation.results.scores import MetricInfo
from pipelines.evaluation.results.terminal import columns_text
from pipelines.evaluation.statistics.resampling import Estimate
from pipelines.evaluation.studies.grid import Axis, Value
from pipelines.evaluation.studies.table import ChosenPoint, Study, StudyPoint

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
