"""A study as text for a terminal, and as CSV, JSON Lines, Markdown and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pipelines.evaluation.results.export import (
    Cell,
    csv_text,
    estimate_words,
    interval_cells,
    latex_table,
    markdown_table,
    origin_cells,
    paper_words,
)
from pipelines.evaluation.results.terminal import WIDTH, aligned_parts, wrapped
from pipelines.evaluation.statistics.resampling import Estimate
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
    heads = ["", "replayed", "diverged", *names]
    rows = [
        [
            _mark(study, number) + point.label,
            str(point.replayed),
            str(point.diverged),
            *(estimate_words(point.metrics[name], 2, "-") for name in names),
        ]
        for number, point in enumerate(study.points)
    ]
    columns = [[head, *cells] for head, cells in zip(heads, zip(*rows, strict=True), strict=True)]
    parts = aligned_parts(columns[0], columns[1:], WIDTH)
    notes = "\n".join(line for note in study_notes(study) for line in wrapped(note, WIDTH))
    return "\n\n".join([*parts, notes]) + "\n"


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


def study_csv(study: Study) -> str:
    """Return one row a point: values, counts, and each metric with its interval; nothing is
    rounded.
    """
    names = [info.name for info in study.metrics]

    def row(number: int, point: StudyPoint) -> dict[str, Cell]:
        cells: dict[str, Cell] = {axis.name: point.values.get(axis.name) for axis in study.axes}
        cells |= {"point": point.label, "current": int(point.current)}
        cells["chosen"] = int(_chosen(study) == number)
        cells |= {"replayed": point.replayed, "diverged": point.diverged}
        for name in names:
            pair = point.differences.get(name)
            cells |= interval_cells(name, point.metrics[name])
            cells[f"{name}_n"] = point.metrics[name].n
            difference = pair.difference if pair else Estimate(value=None)
            cells |= interval_cells(f"{name}_difference", difference)
        cells["paper_figures"] = "; ".join(map(paper_words, point.papers))
        cells["system"] = study.system
        return cells | origin_cells(study.data_set, study.data_hash, study.sampling)

    return csv_text(row(number, point) for number, point in enumerate(study.points))


def study_jsonl(study: Study) -> str:
    """Return one line on the study, then one for each point."""
    head = {"study": study.model_dump(mode="json", exclude={"points"})}
    lines = [head, *(point.model_dump(mode="json") for point in study.points)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def study_markdown(study: Study) -> str:
    """Return the study in Markdown."""
    return markdown_table(*_printed(study), study_notes(study))


def study_latex(study: Study) -> str:
    """Return the study in LaTeX for the package booktabs."""
    first, *rest = study_notes(study)
    return latex_table(*_printed(study), first, "tab:study", rest)


STUDY_FORMATS: dict[str, Callable[[Study], str]] = {
    "text": study_text,
    "markdown": study_markdown,
    "csv": study_csv,
    "latex": study_latex,
    "jsonl": study_jsonl,
}
"""Format to how a study is written in it."""


def _printed(study: Study) -> tuple[list[tuple[str, str | None]], list[list[str]]]:
    """Return names of columns with their better direction, and rows of cells."""
    heads: list[tuple[str, str | None]] = [("point", None)]
    heads += [(info.name, info.better) for info in study.metrics]
    heads += [("replayed", None), ("diverged", None)]
    papers = any(point.papers for point in study.points)
    if papers:
        heads.append(("paper", None))
    rows: list[list[str]] = []
    for number, point in enumerate(study.points):
        cells = [_mark(study, number) + point.label]
        cells += [estimate_words(point.metrics[info.name]) for info in study.metrics]
        cells += [str(point.replayed), str(point.diverged)]
        if papers:
            cells.append(_figures(point))
        rows.append(cells)
    return heads, rows


def _figures(point: StudyPoint) -> str:
    return "; ".join(f"{figure.column.en}: {figure.value:f}" for figure in point.papers) or "–"


def _mark(study: Study, number: int) -> str:
    chosen = ">" if _chosen(study) == number else ""
    return chosen + ("*" if study.points[number].current else "") + (" " if chosen else "")


def _chosen(study: Study) -> int | None:
    return study.choice.point if study.choice else None


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
