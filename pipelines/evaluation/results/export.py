"""Results as files: the table for papers and spreadsheets, the scores for other programs.

Tables are written as CSV, Markdown or LaTeX, scores as CSV or JSON Lines, and in the form that
inspect_ai reads. Numbers of files for programs are not rounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from pipelines.errors import failure
from pipelines.evaluation.results.papers import PaperFigure
from pipelines.evaluation.results.remarks import FEW_MARK, FEW_NOTE, has_few_groups
from pipelines.evaluation.results.scores import COSTS, Evaluation, ItemScore, MetricInfo
from pipelines.evaluation.results.table import ResultsRow, ResultsTable
from pipelines.evaluation.statistics.estimates import CorrectionRates
from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.printable import printable

Cell = str | int | float | None

_EXECUTED = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": "$-$",
}
_UNITS = {"percent": " %", "points": " of 100", "seconds": " s"}
_ARROWS = {"higher": "↑", "lower": "↓", None: ""}
_LATEX_ARROWS = {"higher": r"$\uparrow$", "lower": r"$\downarrow$", None: ""}


class _Column(NamedTuple):
    """A column of a printed table: its name, its better direction, its cell for each row."""

    name: str
    better: str | None
    cells: list[str]


def harmless(text: str) -> str:
    """Return `text` as a CSV cell that no spreadsheet runs as a formula: an apostrophe stands
    before it.

    Numbers stay as they are, so that programs can read them.
    """
    begins = text.lstrip()
    if begins.startswith(_EXECUTED) and not _NUMBER.fullmatch(begins):
        return f"'{text}"
    return text


def csv_text(records: Iterable[Mapping[str, Cell]], columns: Iterable[str] = ()) -> str:
    """Return records as CSV (RFC 4180), a row each under a row of their names.

    A name that a record lacks, and None, are an empty cell. First come `columns`, also where no
    record has them, then others in the order in which records name them. No text begins a formula
    (`harmless`); numbers are not rounded.
    """
    rows = list(records)
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    cells = [[_guarded(row.get(name)) for name in names] for row in rows]
    # As objects, so that a column of integers with an empty cell is not made one of floats.
    table = pd.DataFrame(cells, columns=[_guarded(name) for name in names], dtype=object)
    return table.to_csv(index=False, lineterminator="\r\n")


def _guarded(cell: Cell) -> Cell:
    return harmless(cell) if isinstance(cell, str) else cell


def shown_metrics(table: ResultsTable) -> list[MetricInfo]:
    """Return the metrics of which at least one system has a value."""
    return [
        info
        for info in table.metrics
        if any(row.metrics[info.name].value is not None for row in table.rows)
    ]


def table_csv(table: ResultsTable) -> str:
    """Return the table, one row a system: each number with its interval, method and count
    of items.
    """
    rows = [_table_row(row, table) for row in table.rows]
    return csv_text([*rows, *(_control_row(name, table) for name in table.controls)])


def _control_row(name: str, table: ResultsTable) -> dict[str, Cell]:
    """Return answer length or word overlap as a detector: its measures alone."""
    cells: dict[str, Cell] = {"system": name, "method": "control"}
    known = table.detection.estimates(name) if table.detection else {}
    return cells | _measures(known) | _origin(table)


def _worded(table: ResultsTable) -> bool:
    """Return whether any system had prompts that were not the default's."""
    return any(row.description.prompts for row in table.rows)


def _table_row(row: ResultsRow, table: ResultsTable) -> dict[str, Cell]:
    models = "; ".join(f"{role}: {name}" for role, name in row.description.models.items())
    cells: dict[str, Cell] = {
        "system": row.system,
        "method": row.description.method,
        "models": models,
        "n": row.n,
        "repeats": row.repeats,
        "errors": row.errors,
    }
    metrics = {info.name: row.metrics[info.name] for info in shown_metrics(table)}
    for name, one in {"abstained": row.abstained, **metrics}.items():
        cells |= interval_cells(name, one) | {f"{name}_n": one.n}
        cells[f"{name}_interval"] = one.reason or one.method
        few = has_few_groups(one)
        cells[f"{name}_remark"] = f"{one.groups} groups: too narrow" if few else ""
    # Every row has the columns of all, so that they stand where they belong.
    for name in dict.fromkeys(name for one in table.rows for name in one.corrections):
        found = row.corrections.get(name)
        for kind in ("corrected", "spoiled", "change"):
            estimate = getattr(found, kind) if found else Estimate(value=None)
            cells |= interval_cells(f"{name}_{kind}", estimate)
    if table.detection:
        known = table.detection.estimates(row.system)
        measures = table.detection.measures
        cells |= _measures({name: known.get(name, Estimate(value=None)) for name in measures})
    for name in COSTS:
        cells |= {f"{name}_mean": row.costs[name].mean, f"{name}_total": row.costs[name].total}
    cells["paper_figures"] = "; ".join(map(paper_words, row.papers))
    worded = {"own_prompts": "; ".join(row.description.prompts)} if _worded(table) else {}
    return cells | _origin(table, worded)


def interval_cells(name: str, one: Estimate) -> dict[str, Cell]:
    """Return the cells of an estimate called `name`: its value and the ends of its interval."""
    return {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}


def _measures(known: Mapping[str, Estimate]) -> dict[str, Cell]:
    """Return how well something detects, by each measure."""
    cells: dict[str, Cell] = {}
    for name, one in known.items():
        cells |= interval_cells(name, one) | {f"{name}_n": one.n}
    return cells


def origin_cells(data_set: str, data_hash: str, sampling: Sampling) -> dict[str, Cell]:
    """Return the cells that say what a row was computed from, and how its intervals were drawn."""
    cells: dict[str, Cell] = {"data_set": data_set, "data_hash": data_hash}
    drawn = {"seed": sampling.seed, "resamples": sampling.resamples, "level": sampling.level}
    return cells | drawn


def _origin(table: ResultsTable, worded: Mapping[str, Cell] | None = None) -> dict[str, Cell]:
    """Return what a row was computed from; `worded` says which prompts were the user's own."""
    cells = origin_cells(table.data_set, table.data_hash, table.sampling) | dict(worded or {})
    if filters := _filters(table):
        cells |= {"only": "; ".join(filters), "items": table.items}
    return cells


def _filters(table: ResultsTable) -> list[str]:
    """Return the tags and the language of the items that the table is of; none where it
    is of all.
    """
    return [*table.tags, *([table.language] if table.language else [])]


def paper_value(figure: PaperFigure) -> str:
    """Return the digits as printed, with the unit where it is not a fraction or a count."""
    return f"{figure.value:f}{_UNITS.get(figure.unit, '')}"


def paper_words(figure: PaperFigure) -> str:
    """Return a paper's figure in one line, with all that it depends on."""
    source = " ".join(filter(None, [figure.paper, figure.date]))
    model, data = (words.en for words in (figure.model, figure.data))
    what = f"{figure.row.en}, {figure.column.en}: {paper_value(figure)}"
    return f"{what} (model: {model}; data: {data}; paper: {source})"


def paper_numbers(table: ResultsTable) -> dict[PaperFigure, int]:
    """Return the papers' figures of a table with the numbers of their notes, counted from 1."""
    figures = dict.fromkeys(figure for row in table.rows for figure in row.papers)
    return {figure: number for number, figure in enumerate(figures, start=1)}


def estimate_words(estimate: Estimate, digits: int = 3, missing: str = "–") -> str:
    """Return a text such as "0.712 [0.680, 0.745]", without the interval where there is none."""
    if estimate.value is None:
        return missing
    value = _rounded(estimate.value, digits)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = _rounded(estimate.low, digits), _rounded(estimate.high, digits)
    mark = FEW_MARK if has_few_groups(estimate) else ""
    return f"{value} [{low}, {high}]{mark}"


def _rounded(value: float, digits: int) -> str:
    # What rounds to zero has no sign.
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _columns(table: ResultsTable, digits: int) -> list[_Column]:
    """Return the printed table: metrics, detectors, abstentions, errors and costs, and the
    papers'.
    """
    rows = table.rows
    found = [_Column("System", None, [row.system for row in rows])]
    for info in shown_metrics(table):
        cells = [estimate_words(row.metrics[info.name], digits) for row in rows]
        found.append(_Column(info.name, info.better, cells))
        found += _papers(table, info.name, info.better)
    if table.detection:
        known = [table.detection.estimates(row.system) for row in rows]
        for name in table.detection.measures:
            better = MetricInfo.of(name).better
            cells = [estimate_words(one.get(name, Estimate(value=None)), digits) for one in known]
            found.append(_Column(name, better, cells))
            found += _papers(table, name, better)
    for metric in dict.fromkeys(name for row in rows for name in row.corrections):
        for kind, better in (("corrected", "higher"), ("spoiled", "lower")):
            cells = [
                estimate_words(getattr(row.corrections[metric], kind), digits)
                if metric in row.corrections
                else "–"
                for row in rows
            ]
            found.append(_Column(f"{kind} ({metric})", better, cells))
    found.append(_Column("abstained", None, [estimate_words(r.abstained, digits) for r in rows]))
    found.append(_Column("n", None, [str(row.n) for row in rows]))
    found.append(_Column("errors", "lower", [str(row.errors) for row in rows]))
    for name in COSTS:
        means = [row.costs[name].mean for row in rows]
        if any(mean is not None for mean in means):
            cells = ["–" if mean is None else f"{mean:.4g}" for mean in means]
            found.append(_Column(f"{name} per item", "lower", cells))
    for name in table.controls:
        known = table.detection.estimates(name) if table.detection else {}
        found[0].cells.append(f"{name} (control)")
        for column in found[1:]:
            column.cells.append(
                estimate_words(known.get(column.name, Estimate(value=None)), digits)
            )
    return found


def _papers(table: ResultsTable, metric: str, better: str | None) -> list[_Column]:
    """Return a column of what papers print for `metric`, each with the number of its note;
    or none.
    """
    numbers = paper_numbers(table)
    cells = [
        "; ".join(
            f"{paper_value(figure)} ({numbers[figure]})"
            for figure in row.papers
            if figure.metric == metric
        )
        for row in table.rows
    ]
    return [_Column(f"{metric}, papers", better, [c or "–" for c in cells])] if any(cells) else []


def _notes(table: ResultsTable) -> list[str]:
    """Return the notes under the table: who judged, and what each figure of a paper depends on."""
    few = [FEW_NOTE] if marks_few_groups(table) else []
    papers = paper_numbers(table).items()
    figures = [f"({number}) {paper_words(one)}" for one, number in papers]
    return [*judge_notes(table), *few, *figures]


def judge_notes(table: ResultsTable) -> list[str]:
    """Return, for each column of judgements, which model judged, how far, and what people
    say of it.
    """
    return [f"{column}: by {judge.words}." for column, judge in table.judges.items()]


def marks_few_groups(table: ResultsTable) -> bool:
    """Return whether one of the table's numbers is marked for its few groups."""
    ranked = (*table.detection.rankings, *table.detection.qualities) if table.detection else ()
    numbers = [
        *(one for row in table.rows for one in (row.abstained, *row.metrics.values())),
        *(one for row in table.rows for c in row.corrections.values() for one in _ends(c)),
        *(one for rankings in ranked for one in rankings.values()),
    ]
    return any(map(has_few_groups, numbers))


def _ends(one: CorrectionRates) -> tuple[Estimate, Estimate]:
    return one.corrected, one.spoiled


def caption(table: ResultsTable) -> str:
    """Return what the table is of, and how its intervals were computed."""
    sampling = table.sampling
    filters = _filters(table)
    part = f", only {', '.join(filters)}" if filters else ""
    models = dict.fromkeys(n for row in table.rows for n in row.description.models.values())
    versions = ", ".join(f"{n} {one}" for n, one in {**table.versions, **sampling.versions}.items())
    date = f"{datetime.fromtimestamp(table.created, UTC):%Y-%m-%d}, " if table.created else ""
    return (
        f"{table.name}: {table.data_set} ({table.data_hash[:12]}), {table.items} items{part}. "
        f"Brackets: {100 * sampling.level:g} % intervals, {sampling.resamples} bootstrap draws "
        f"over groups of items, seed {sampling.seed}; Wilson for proportions. "
        f"Models: {', '.join(models) or 'none'}. {date}{versions}."
    )


def table_markdown(table: ResultsTable, digits: int = 3) -> str:
    """Return the table in Markdown, with a line on how the intervals were computed."""
    columns = _columns(table, digits)
    heads = [(one.name, one.better) for one in columns]
    rows = zip(*(one.cells for one in columns), strict=True)
    return markdown_table(heads, rows, [caption(table), *_notes(table)])


def markdown_table(
    heads: Sequence[tuple[str, str | None]], rows: Iterable[Sequence[str]], notes: Iterable[str]
) -> str:
    """Return a table in Markdown under names with their better direction, and notes below it."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(map(_markdown, cells)) + " |"

    named = (f"{name} {_ARROWS[better]}".strip() for name, better in heads)
    rule = "|" + "|".join([" --- ", *[" ---: "] * (len(heads) - 1)]) + "|"
    below = [part for note in notes for part in ("", _markdown(note))]
    return "\n".join([line(named), rule, *map(line, rows), *below, ""])


def _markdown(text: str) -> str:
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|*_`\[\]#~])", r"\\\1", plain)


def table_latex(table: ResultsTable, digits: int = 3, label: str = "tab:results") -> str:
    r"""Return the table in LaTeX for the package booktabs; text is escaped, Chinese needs ctex
    or xeCJK.

    Raises InvalidInputError for a label that LaTeX could not refer to.
    """
    if not re.fullmatch(r"[\w:.-]+", label, re.ASCII):
        raise failure("table.latex_label", label=label)
    columns = _columns(table, digits)
    heads = [(one.name, one.better) for one in columns]
    rows = zip(*(one.cells for one in columns), strict=True)
    return latex_table(heads, rows, caption(table), label, _notes(table))


def latex_table(
    heads: Sequence[tuple[str, str | None]],
    rows: Iterable[Sequence[str]],
    below: str,
    label: str,
    notes: Iterable[str],
) -> str:
    """Return a table in LaTeX under names with their better direction; `below` is its caption."""
    named = (f"{latex(name)} {_LATEX_ARROWS[better]}".strip() for name, better in heads)
    # A line that begins with a bracket would be read as an option of the line before.
    body = [" & ".join(map(latex, cells)) + r" \\" for cells in rows]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{latex(below)}}}",
            f"  \\label{{{label}}}",
            f"  \\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
            r"    \toprule",
            "    " + " & ".join(named) + r" \\",
            r"    \midrule",
            *(f"    {{}}{line}" for line in body),
            r"    \bottomrule",
            r"  \end{tabular}",
            *(f"  \\par\\footnotesize {latex(note)}" for note in notes),
            r"\end{table}",
            "",
        ]
    )


def latex(text: str) -> str:
    """Return `text` with everything escaped that LaTeX would take for a command, or refuse."""
    plain = printable(" ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in plain)


def scores_csv(evaluation: Evaluation) -> str:
    """Return every score of every item, one row each."""
    metrics = evaluation.metric_names()
    originals = sorted({name for one in evaluation.scores for name in one.original_values})

    def row(score: ItemScore) -> dict[str, Cell]:
        return {
            "item": score.item,
            "group": score.group,
            "system": score.method,
            "repeat": score.repeat,
            "run": score.run,
            "error": score.error,
            "flags": ";".join(score.flags),
            **{name: score.values.get(name) for name in metrics},
            **{f"original.{name}": score.original_values.get(name) for name in originals},
            **{f"cost.{name}": score.cost.get(name) for name in COSTS},
            "question": evaluation.items[score.item].text,
            "answer": score.answer,
            "original": score.original,
        }

    return csv_text(map(row, evaluation.scores))


def scores_jsonl(evaluation: Evaluation) -> str:
    """Return every score as one line of JSON, after a first line on the evaluation itself."""
    head = {"evaluation": evaluation.model_dump(mode="json", exclude={"scores"})}
    lines: list[dict[str, Any]] = [head]
    lines += [score.model_dump(mode="json") for score in evaluation.scores]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def inspect_jsonl(evaluation: Evaluation, system: str) -> str:
    """Return the scores of one system in the form that `precomputed_scores` of inspect_ai reads.

    One line a repeat: `id`, `epoch` (counted from 1), `value` (metric to number), `answer` and
    `metadata`. The name of the file has to end in ".jsonl". Raises InvalidInputError for an unknown
    system.
    """
    if system not in evaluation.systems:
        raise failure("evaluation.no_system", system=system, known=[*evaluation.systems])
    lines: list[str] = []
    for score in evaluation.scores:
        known = {name: value for name, value in score.values.items() if value is not None}
        if score.method != system or score.error or not known:
            continue
        record = {
            "id": score.item,
            "epoch": score.repeat + 1,
            "value": known,
            "answer": score.answer,
            "metadata": {"run": score.run, "group": score.group, "flags": list(score.flags)},
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)
