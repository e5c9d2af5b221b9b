"""Results in a terminal: the numbers that decide, aligned, in lines of at most 120 columns.

Example::

    print(evaluation_text(evaluation))
    print(evaluation_text(evaluation, ["f1", "auroc"]))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from unicodedata import combining, east_asian_width

from pipelines.errors import failure
from pipelines.evaluation.results.export import (
    caption,
    estimate_words,
    judge_notes,
    paper_words,
    shown_metrics,
)
from pipelines.evaluation.results.remarks import FEW_MARK, FEW_NOTE
from pipelines.evaluation.results.scores import COSTS, JUDGED, WEAK, Cost, Evaluation
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

_SHORT: dict[Cost, str] = {
    "calls": "calls",
    "judge_calls": "judge",
    "retrievals": "search",
    "prompt_tokens": "read",
    "tokens": "written",
    "seconds": "seconds",
    "money_usd": "USD",
    "money_cny": "CNY",
    "money_eur": "EUR",
}
_GAP = "  "
_SYSTEM = 24
"""Columns of a system's name."""

_PIECES = re.compile(r"[^\x00-\u2fff\ud800-\udfff]|[^\s\u3000-\uffff]+")

Column = list[str]
"""A head and a cell for each system."""


def text_width(text: str) -> int:
    """Return how many columns `text` takes in a terminal: a Chinese character takes two."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def deciding_metrics(table: ResultsTable) -> list[str]:
    """Return metrics and rankings that say most about what the data set offers, six at most."""
    known = _known(table)
    found = [name for name in _DECIDING if name in known]
    return (found or [name for name in known if not _is_control(table, name)])[:MOST]


def evaluation_text(evaluation: Evaluation, metrics: Sequence[str] = ()) -> str:
    """Return the table of an evaluation as `table_text` has it; nothing else of the table is
    computed.

    Without `metrics` those of `deciding_metrics`. Raises InvalidInputError for a metric without any
    value.
    """
    held, ranked = evaluation.metric_names(), True
    if metrics:
        measures = (*RANKINGS, *QUALITIES)
        unknown = [name for name in metrics if name not in (*held, *measures)]
        # The whole table tells what there is instead.
        wanted = None if unknown else [name for name in metrics if name not in measures]
        ranked = bool(unknown) or len(wanted or ()) < len(metrics)
    else:
        wanted = [name for name in _DECIDING if name in held] or None
    table = results_table(evaluation, metrics=wanted, ranked=ranked)
    return table_text(table, metrics or None)


def table_text(
    table: ResultsTable, metrics: Sequence[str] | None = None, width: int = WIDTH
) -> str:
    """Return the table in lines of at most `width` columns, in several parts where it is wider.

    `metrics` are metrics and rankings of detectors, by default those of `deciding_metrics`; costs
    are means per item. Raises InvalidInputError for a metric without any value.
    """
    known = _known(table)
    for name in metrics or ():
        if name not in known:
            raise failure("table.no_value", metric=name, known=[*known])
    chosen = list(dict.fromkeys(deciding_metrics(table) if metrics is None else metrics))
    controls = _controls(table, chosen)
    names: Column = ["", *(_cut(row.system, _SYSTEM) for row in table.rows), *controls]
    columns = [
        [name, *(estimate_words(one, 2, "-") for one in known[name]), *_measured(name, controls)]
        for name in chosen
    ]
    others = [*_corrections(table, chosen), *_counts(table), *_costs(table)]
    columns += [[*column, *["-"] * len(controls)] for column in others]
    parts = aligned_parts(names, columns, width)
    notes = [caption(table), "Costs are means per item.", *judge_notes(table)]
    if controls:
        named = ", ".join(controls)
        notes.append(f"Controls: {named}. A detector that follows them measures little else.")
    if any(FEW_MARK in cell for column in columns for cell in column[1:]):
        notes.append(FEW_NOTE)
    notes += [
        f"{row.system}: {paper_words(one)}"
        for row in table.rows
        for one in row.papers
        if one.metric in chosen
    ]
    folded = "\n".join(line for note in notes for line in wrapped(note, width))
    return "\n\n".join([*parts, folded]) + "\n"


def aligned_parts(names: Column, columns: Sequence[Column], width: int) -> list[str]:
    """Return columns beside their names, aligned, in parts of at most `width` columns."""
    return ["\n".join(_lines([names, *part])) for part in _parts(names, columns, width)]


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` columns, broken between words and Chinese
    characters.
    """
    lines, line = [], ""
    end = 0
    for found in _PIECES.finditer(text):
        gap = " " if line and found.start() > end else ""
        end = found.end()
        for piece in _halves(found[0], width):
            if text_width(line + gap + piece) > width:
                lines.append(line)
                line, gap = piece, ""
            else:
                line += gap + piece
                gap = ""
    return [*lines, line] if line else lines


def _halves(word: str, width: int) -> list[str]:
    """Return a word in pieces that each fit a line."""
    return [word[at : at + width] for at in range(0, len(word), width)]


def _known(table: ResultsTable) -> dict[str, list[Estimate]]:
    """Return every metric and measure of a detector with a value, and the estimate of
    each system.
    """
    found = {
        info.name: [row.metrics[info.name] for row in table.rows] for info in shown_metrics(table)
    }
    if table.detection:
        missing = Estimate(value=None)
        known = [table.detection.estimates(row.system) for row in table.rows]
        for name in table.detection.measures:
            found[name] = [one.get(name, missing) for one in known]
    return {
        name: estimates
        for name, estimates in found.items()
        if any(one.value is not None for one in estimates)
    }


def _is_control(table: ResultsTable, name: str) -> bool:
    return all(info.name != name or info.better is None for info in table.metrics)


def _controls(table: ResultsTable, chosen: Sequence[str]) -> dict[str, dict[str, Estimate]]:
    """Return answer length and word overlap with their measures, where detectors are ranked."""
    if table.detection is None or not any(name in table.detection.measures for name in chosen):
        return {}
    return {name: table.detection.estimates(name) for name in table.controls}


def _measured(name: str, controls: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    """Return the cells of the controls in the column `name`."""
    missing = Estimate(value=None)
    return [estimate_words(known.get(name, missing), 2, "-") for known in controls.values()]


def _corrections(table: ResultsTable, chosen: Sequence[str]) -> list[Column]:
    """Return what became of wrong and of right answers, by the first metric that tells."""
    held = {name for row in table.rows for name in row.corrections}
    name = next((one for one in chosen if one in held), None)
    if name is None:
        return []
    missing = Estimate(value=None)

    def column(kind: str) -> Column:
        found = (row.corrections.get(name) for row in table.rows)
        return [kind, *(estimate_words(getattr(one, kind, missing), 2, "-") for one in found)]

    return [column("corrected"), column("spoiled")]


def _counts(table: ResultsTable) -> list[Column]:
    rows = table.rows
    found = [["n", *(str(row.n) for row in rows)]]
    if any(row.errors for row in rows):
        found.append(["errors", *(str(row.errors) for row in rows)])
    if any(row.abstained.value for row in rows):
        found.append(["abstained", *(f"{row.abstained.value or 0:.2f}" for row in rows)])
    return found


def _costs(table: ResultsTable) -> list[Column]:
    """Return the costs that any system has."""
    found: list[Column] = []
    for name in COSTS:
        means = [row.costs[name].mean for row in table.rows]
        if any(means):
            cells = ("-" if mean is None else _amount(mean) for mean in means)
            found.append([_SHORT[name], *cells])
    return found


def _amount(mean: float) -> str:
    """Return three digits, without an exponent where the number is not tiny."""
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"


def _parts(names: Column, columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Return the columns in parts that each fit beside the names; one that never fits
    stands alone.
    """
    number, left = 0, width - max(map(text_width, names))
    numbered: list[tuple[int, Column]] = []
    for column in columns:
        wide = len(_GAP) + max(map(text_width, column))
        if wide > left and numbered and numbered[-1][0] == number:
            number, left = number + 1, width - max(map(text_width, names))
        left -= wide
        numbered.append((number, column))
    return [[column for _, column in part] for _, part in groupby(numbered, key=lambda one: one[0])]


def _lines(columns: Sequence[Column]) -> list[str]:
    """Return aligned lines, the names to the left and numbers to the right."""
    wide = [max(map(text_width, column)) for column in columns]
    lines: list[str] = []
    for first, *rest in zip(*columns, strict=True):
        cells = [first + " " * (wide[0] - text_width(first))]
        cells += [
            " " * (width - text_width(cell)) + cell
            for cell, width in zip(rest, wide[1:], strict=True)
        ]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns; two full stops say that it goes on."""
    text = " ".join(text.split())
    if text_width(text) <= width:
        return text
    while text_width(text) > width - 2:
        text = text[:-1]
    return text + ".."
