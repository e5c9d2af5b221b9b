"""Results in a terminal: the numbers that decide, aligned, in lines of at most 120 columns.

Example::

    print(evaluation_text(evaluation))
    print(evaluation_text(evaluation, ["f1", "auroc"]))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.errors import failure
from pipelines.evaluation.results.columns import (
    Line,
    ResultsColumn,
    Row,
    Spent,
    Value,
    estimates_in,
    held,
    lines,
    printed_columns,
    results_columns,
)
from pipelines.evaluation.results.export import caption, judge_notes, printed_frame
from pipelines.evaluation.results.papers import paper_words
from pipelines.evaluation.results.remarks import few_notes
from pipelines.evaluation.results.scores import JUDGED, WEAK, Evaluation
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.statistics.qualities import QUALITIES
from pipelines.evaluation.statistics.ranking import RANKINGS
from pipelines.evaluation.statistics.resampling import Estimate

WIDTH = 120
MOST = 6
"""Metrics that are shown where nobody chose any."""

_DECIDING = (
    *(
        "accuracy",
        JUDGED,
        f"{JUDGED}{WEAK}",
        "f1",
        "exact_match",
        "truthful",
        "list_f1_5",
        "list_recall_5",
    ),
    *(
        "fact_precision",
        "auroc",
        "auc_pr_nonfactual",
        "auc_pr_factual",
        "span_f1_characters",
        "abstention",
    ),
)
"""The first of these that have a value are shown: those that compare methods come first."""

_GAP = 2
_NAME = 26
"""Columns of the terminal that a row's name takes at most."""


def deciding_metrics(table: ResultsTable) -> list[str]:
    """Return metrics and rankings that say most about what the data set offers, six at most."""
    rows = lines(table)
    known = {one.key: one for one in held(results_columns(table), rows) if _is_number(one)}
    found = [name for name in _DECIDING if name in known]
    # A control is a metric of which neither end is good.
    return (found or [name for name, one in known.items() if one.better is not None])[:MOST]


def _is_number(column: ResultsColumn[Line]) -> bool:
    return column.group in ("metric", "measure")


def evaluation_text(evaluation: Evaluation, metrics: Sequence[str] = ()) -> str:
    """Return the table of an evaluation as `table_text` has it; nothing else of the table is
    computed.

    Without `metrics` those of `deciding_metrics`. Raises InvalidInputError for a metric without any
    value.
    """
    names, ranked = evaluation.metric_names(), True
    if metrics:
        measures = (*RANKINGS, *QUALITIES)
        unknown = [name for name in metrics if name not in (*names, *measures)]
        # The whole table tells what there is instead.
        wanted = None if unknown else [name for name in metrics if name not in measures]
        ranked = bool(unknown) or len(wanted or ()) < len(metrics)
    else:
        wanted = [name for name in _DECIDING if name in names] or None
    table = results_table(evaluation, metrics=wanted, ranked=ranked)
    return table_text(table, metrics or None)


def table_text(
    table: ResultsTable, metrics: Sequence[str] | None = None, width: int = WIDTH
) -> str:
    """Return the table in lines of at most `width` columns, in several parts where it is wider.

    `metrics` are metrics and rankings of detectors, by default those of `deciding_metrics`; costs
    are means per item. Raises InvalidInputError for a metric without any value.
    """
    rows = lines(table)
    columns = held(printed_columns(results_columns(table)), rows)
    known = {one.key: one for one in columns if _is_number(one)}
    for name in metrics or ():
        if name not in known:
            raise failure("table.no_value", metric=name, known=[*known])
    chosen = list(dict.fromkeys(deciding_metrics(table) if metrics is None else metrics))
    controls = [line.system for line in rows if line.row is None]
    if not any(known[name].group == "measure" for name in chosen):
        rows, controls = [line for line in rows if line.row is not None], []
    # What was corrected is told by the first metric that finds answers right or wrong.
    told = {one.of for one in columns if one.group == "correction"}
    by = next((name for name in chosen if name in told), None)
    others = [
        one
        for one in columns
        if (one.group == "correction" and one.of == by)
        or (one.group in ("count", "cost") and any(_counts(one.value(row)) for row in rows))
    ]
    names = [one for one in columns if one.group == "name"]
    shown = [*names, *(known[name] for name in chosen), *others]
    notes = [caption(table), "Costs are means per item.", *judge_notes(table)]
    if controls:
        named = ", ".join(controls)
        notes.append(f"Controls: {named}. A detector that follows them measures little else.")
    notes += few_notes(estimates_in(shown, rows))
    notes += [
        f"{row.system}: {paper_words(one)}"
        for row in table.rows
        for one in row.papers
        if one.metric in chosen
    ]
    return columns_text(shown, rows, notes, width, _NAME)


def _counts(value: Value) -> bool:
    """Return whether a count or a cost is more than nothing."""
    if isinstance(value, Estimate):
        return bool(value.value)
    return bool(value.found.mean if isinstance(value, Spent) else value)


def columns_text(
    columns: Sequence[ResultsColumn[Row]],
    rows: Sequence[Row],
    notes: Iterable[str],
    width: int = WIDTH,
    longest: int = WIDTH // 2,
) -> str:
    """Return a table in lines of at most `width` columns, with notes below it.

    Names of rows are cut to `longest` columns.
    """
    folded = "\n".join(line for note in notes for line in wrapped(note, width))
    parts = [*aligned_parts(columns, rows, width, longest), folded]
    return "\n\n".join(filter(None, parts)) + "\n"


def aligned_parts(
    columns: Sequence[ResultsColumn[Row]],
    rows: Sequence[Row],
    width: int = WIDTH,
    longest: int = WIDTH // 2,
) -> list[str]:
    """Return the columns beside the first one, which names the rows; in parts that each fit.

    A column that never fits stands alone.
    """
    frame = printed_frame(columns, rows, 2, "-")
    heads = ["" if one.group == "name" else one.short or one.title for one in columns]
    cells = [[head, *frame.iloc[:, place]] for place, head in enumerate(heads)]
    cells[0] = [_cut(name, longest) for name in cells[0]]
    wide = [max(map(cell_len, column)) for column in cells]
    part, left = 0, width - wide[0]
    numbered: list[tuple[int, int]] = []
    for place in range(1, len(cells)):
        taken = _GAP + wide[place]
        if taken > left and numbered and numbered[-1][0] == part:
            part, left = part + 1, width - wide[0]
        left -= taken
        numbered.append((part, place))
    return [
        _grid([cells[0], *(cells[place] for _, place in together)])
        for _, together in groupby(numbered, key=lambda one: one[0])
    ]


def _grid(columns: Sequence[Sequence[str]]) -> str:
    """Return aligned lines, the names to the left and numbers to the right."""
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for place in range(len(columns)):
        grid.add_column(justify="right" if place else "left", no_wrap=True)
    for cells in zip(*columns, strict=True):
        # As texts, in which no bracket is a style.
        grid.add_row(*map(Text, cells))
    # As wide as it takes: in less room it would cut numbers.
    console = _console(sum(_GAP + max(map(cell_len, column)) for column in columns))
    with console.capture() as told:
        console.print(grid)
    return "\n".join(line.rstrip() for line in told.get().splitlines())


def _console(width: int) -> Console:
    return Console(file=StringIO(), width=width, color_system=None, legacy_windows=False)


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` columns, broken between words and in long ones."""
    found = Text(text).wrap(_console(width), width, overflow="fold")
    return [line.plain.rstrip() for line in found]


def _cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns; two full stops say that it goes on."""
    text = " ".join(text.split())
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 2).rstrip()}.."
