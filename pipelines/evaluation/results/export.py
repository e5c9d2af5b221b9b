"""Results as files: the table for papers and spreadsheets, the scores for other programs.

Tables are written as CSV, Markdown or LaTeX, scores as CSV or JSON Lines, and in the form that
inspect_ai reads. Numbers of files for programs are not rounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.base import printable
from pipelines.errors import failure
from pipelines.evaluation.results.columns import (
    Answered,
    Line,
    ResultsColumn,
    Row,
    Spent,
    Value,
    estimates_in,
    held,
    lines,
    part_of,
    printed_columns,
    results_columns,
    typed_frame,
)
from pipelines.evaluation.results.compare import ComparedItem, SystemComparison
from pipelines.evaluation.results.packed import ItemScore
from pipelines.evaluation.results.papers import PaperFigure, paper_value, paper_words
from pipelines.evaluation.results.scores import (
    COSTS,
    FEW_MARK,
    JUDGED,
    WEAK,
    Evaluation,
    few_notes,
    has_few_groups,
)
from pipelines.evaluation.results.table import ResultsTable, detector_arrays, results_table
from pipelines.evaluation.statistics.detection import QUALITIES, RANKINGS
from pipelines.evaluation.statistics.estimates import Estimate, PairedDifference

if TYPE_CHECKING:
    # Loaded by what makes a table: light commands begin without it.
    import pandas as pd

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
_ARROWS = {"higher": "↑", "lower": "↓", None: ""}
_LATEX_ARROWS = {"higher": r"$\uparrow$", "lower": r"$\downarrow$", None: ""}


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
    import pandas as pd

    rows = list(records)
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    cells = [[row.get(name) for name in names] for row in rows]
    # As objects, so that a column of integers with an empty cell is not made one of floats.
    return _frame_csv(pd.DataFrame(cells, columns=names, dtype=object))


def columns_csv(columns: Iterable[ResultsColumn[Row]], rows: Sequence[Row]) -> str:
    """Return a table as CSV, as `typed_frame` has it; what only people read is left out."""
    return _frame_csv(_for_programs(columns, rows))


def _for_programs(columns: Iterable[ResultsColumn[Row]], rows: Sequence[Row]) -> pd.DataFrame:
    return typed_frame([one for one in columns if one.group not in ("name", "papers")], rows)


def _frame_csv(frame: pd.DataFrame) -> str:
    import pandas as pd
    from pandas.api.types import is_object_dtype

    for place, dtype in enumerate(frame.dtypes):
        if is_object_dtype(dtype):
            # Not by `map`, which makes floats of whole numbers with an empty cell.
            cells = [_guarded(cell) for cell in frame.iloc[:, place]]
            frame.isetitem(place, pd.Series(cells, dtype=object))
    safe = frame.set_axis([_guarded(name) for name in frame], axis=1)
    return safe.to_csv(index=False, lineterminator="\r\n")


def _guarded(cell: Any) -> Any:
    return harmless(cell) if isinstance(cell, str) else cell


def table_csv(table: ResultsTable) -> str:
    """Return the table, one row a system: each number with its interval, method and count
    of items.
    """
    return _frame_csv(table_frame(table))


def table_frame(table: ResultsTable) -> pd.DataFrame:
    """Return what `table_csv` writes, with its types."""
    rows, every = lines(table), results_columns(table)
    known = held(every, rows)
    # These are there without any value as well, so that files can be put below each other.
    always = ("cost", "correction")
    return _for_programs([one for one in every if one in known or one.group in always], rows)


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


def amount_words(mean: float, digits: int = 3) -> str:
    """Return an amount with one digit more than `digits`, and from 100 on as a whole number."""
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.{digits + 1}g}"


def cell_words(
    value: Value,
    digits: int = 3,
    missing: str = "–",
    notes: Mapping[PaperFigure, int] | None = None,
) -> str:
    """Return a cell of a printed table; `notes` numbers the notes on figures of papers."""
    match value:
        case Estimate():
            return estimate_words(value, digits, missing)
        case Answered():
            return f"{value.items} × {value.repeats}" if value.repeats > 1 else str(value.items)
        case Spent():
            mean = value.found.mean
            return missing if mean is None else amount_words(mean, digits)
        case tuple():
            return "; ".join(_figure(one, notes or {}) for one in value) or missing
        case float():
            return f"{value:.3g}"
        case _:
            return missing if value is None else str(value)


def _figure(figure: PaperFigure, notes: Mapping[PaperFigure, int]) -> str:
    """Return a paper's figure with the number of its note; without one, with what it is of."""
    value = paper_value(figure)
    return f"{value} ({notes[figure]})" if figure in notes else f"{figure.column.en}: {value}"


def printed_frame(
    columns: Iterable[ResultsColumn[Row]],
    rows: Sequence[Row],
    digits: int = 3,
    missing: str = "–",
    notes: Mapping[PaperFigure, int] | None = None,
) -> pd.DataFrame:
    """Return a table for people: words under the titles of `columns`."""
    import pandas as pd

    shown = list(columns)
    cells = [[cell_words(one.value(row), digits, missing, notes) for one in shown] for row in rows]
    return pd.DataFrame(cells, columns=[one.title for one in shown], dtype=object)


def _notes(table: ResultsTable) -> list[str]:
    """Return the notes under the table: who judged, and what each figure of a paper depends on."""
    few = few_notes(estimates_in(printed_columns(results_columns(table)), lines(table)))
    papers = paper_numbers(table).items()
    figures = [f"({number}) {paper_words(one)}" for one, number in papers]
    return [*judge_notes(table), *few, *figures]


def judge_notes(table: ResultsTable) -> list[str]:
    """Return, for each column of judgements, which model judged, how far, and what people
    say of it.
    """
    return [f"{column}: by {judge.words}." for column, judge in table.judges.items()]


def caption(table: ResultsTable) -> str:
    """Return what the table is of, and how its intervals were computed."""
    sampling = table.sampling
    filters = part_of(table)
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
    columns, rows = _printed(table)
    below = [caption(table), *_notes(table)]
    return columns_markdown(columns, rows, below, digits, paper_numbers(table))


def _printed(table: ResultsTable) -> tuple[list[ResultsColumn[Line]], list[Line]]:
    rows = lines(table)
    return held(printed_columns(results_columns(table)), rows), rows


def columns_markdown(
    columns: Sequence[ResultsColumn[Row]],
    rows: Sequence[Row],
    below: Iterable[str],
    digits: int = 3,
    notes: Mapping[PaperFigure, int] | None = None,
) -> str:
    """Return a table in Markdown under titles with their better direction, and `below` it notes."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(map(_markdown, cells)) + " |"

    frame = printed_frame(columns, rows, digits, notes=notes)
    heads = (f"{one.title} {_ARROWS[one.better]}".strip() for one in columns)
    rule = "|" + "|".join([" --- ", *[" ---: "] * (len(columns) - 1)]) + "|"
    told = [part for note in below for part in ("", _markdown(note))]
    body = map(line, frame.itertuples(index=False, name=None))
    return "\n".join([line(heads), rule, *body, *told, ""])


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
    columns, rows = _printed(table)
    below = [caption(table), *_notes(table)]
    return columns_latex(columns, rows, below, label, digits, paper_numbers(table))


def columns_latex(
    columns: Sequence[ResultsColumn[Row]],
    rows: Sequence[Row],
    below: Sequence[str],
    label: str,
    digits: int = 3,
    notes: Mapping[PaperFigure, int] | None = None,
) -> str:
    """Return a table in LaTeX under titles with their better direction.

    The first of `below` is its caption, the others are notes.
    """
    frame = printed_frame(columns, rows, digits, notes=notes).map(latex)
    # A line that begins with a bracket would be read as an option of the line before.
    frame.isetitem(0, ["{}" + cell for cell in frame.iloc[:, 0]])
    heads = [f"{latex(one.title)} {_LATEX_ARROWS[one.better]}".strip() for one in columns]
    styled = frame.set_axis(heads, axis=1).style.hide(axis="index")
    first, *others = map(latex, below)
    text = styled.to_latex(
        column_format="l" + "r" * (len(columns) - 1),
        position_float="centering",
        hrules=True,
        label=label,
        caption=first,
    )
    told = "".join(f"\\par\\footnotesize {note}\n" for note in others)
    end = "\\end{table}"
    return "% \\usepackage{booktabs}\n" + text.replace(end, told + end)


def latex(text: str) -> str:
    """Return `text` with everything escaped that LaTeX would take for a command, or refuse."""
    plain = printable(" ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in plain)


def scores_csv(evaluation: Evaluation) -> str:
    """Return every score of every item, one row each."""
    return csv_text(score_records(evaluation))


def score_records(evaluation: Evaluation) -> list[dict[str, Cell]]:
    """Return the rows of `scores_csv`."""
    metrics = evaluation.metric_names()
    originals = sorted(evaluation.scores.names("original_values"))

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

    return [row(score) for score in evaluation.scores]


def scores_jsonl(evaluation: Evaluation) -> str:
    """Return every score as one line of JSON, after a first line on the evaluation itself."""
    head = {"evaluation": evaluation.model_dump(mode="json", exclude={"scores"})}
    scores = (score.model_dump(mode="json") for score in evaluation.scores)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in chain([head], scores))


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


# A comparison of systems as files: the pairs as a table, the items one by one.
#
# Markdown and LaTeX hold the pairs, for papers; CSV and JSON Lines hold the items, for programs.

_TESTS = {"mcnemar": "McNemar, mid-p", "none": None}


def pair_columns(found: SystemComparison) -> list[ResultsColumn[PairedDifference]]:
    """Return the columns of a table of pairs; what is right is told of a metric that finds it."""
    # What is discordant on a metric of what is wrong, or abstained, is not right.
    right = found.metric.better == "higher"
    return [
        ResultsColumn("first", "First", None, lambda pair: pair.first),
        ResultsColumn("second", "Second", None, lambda pair: pair.second),
        ResultsColumn("difference", "First minus second", None, lambda pair: pair.difference),
        ResultsColumn("p", "p", None, lambda pair: pair.p),
        ResultsColumn("adjusted", "p, Holm", None, lambda pair: pair.adjusted),
        ResultsColumn("test", "Test", None, lambda pair: _TESTS.get(pair.test, pair.test)),
        ResultsColumn(
            "only_first", "Only first right", None, lambda pair: pair.only_first if right else None
        ),
        ResultsColumn(
            "only_second",
            "Only second right",
            None,
            lambda pair: pair.only_second if right else None,
        ),
    ]


def comparison_csv(found: SystemComparison) -> str:
    """Return every item, a row each: its value, answer and run by each system; numbers are not
    rounded.
    """

    def row(item: ComparedItem) -> dict[str, Cell]:
        cells = {"item": item.item, "question": item.summary.text, "spread": item.spread}
        for system, one in zip(found.systems, item.answers, strict=True):
            for part in ("value", "repeats", "answer", "run", "error"):
                cells[f"{system}.{part}"] = getattr(one, part)
        return cells

    return csv_text(map(row, found.items))


def comparison_jsonl(found: SystemComparison) -> str:
    """Return a first line with the estimates, pairs and bands, then every item as one line
    of JSON.
    """
    head = {"comparison": found.model_dump(mode="json", exclude={"items"})}
    lines = [head, *(item.model_dump(mode="json") for item in found.items)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def comparison_markdown(found: SystemComparison, digits: int = 3) -> str:
    """Return every pair of systems in Markdown, with what the numbers are."""
    return columns_markdown(
        pair_columns(found), found.pairs, comparison_notes(found, digits), digits
    )


def comparison_latex(
    found: SystemComparison, digits: int = 3, label: str = "tab:comparison"
) -> str:
    """Return every pair of systems in LaTeX for the package booktabs."""
    below = [*comparison_notes(found, digits)]
    return columns_latex(pair_columns(found), found.pairs, below, label, digits)


def _caption(found: SystemComparison) -> str:
    sampling = found.sampling
    versions = ", ".join(f"{name} {one}" for name, one in sampling.versions.items())
    return (
        f"{found.metric.name} on the {found.n} items that all of them have, {found.left_out} left "
        f"out. Brackets: {100 * sampling.level:g} % intervals, {sampling.resamples} bootstrap "
        f"draws over groups of items, seed {sampling.seed}; Holm's correction is over these "
        f"pairs. {versions}."
    )


def comparison_notes(found: SystemComparison, digits: int) -> Iterator[str]:
    """Yield what the numbers are, the value of each system, who cannot be told apart, and what
    is likely too narrow.
    """
    yield _caption(found)
    for name, estimate in zip(found.systems, found.estimates, strict=True):
        yield f"{name}: {estimate_words(estimate, digits)}"
    for band in found.bands:
        if len(band) > 1:
            yield f"Cannot be told apart at 5 %: {', '.join(band)}"
    yield from few_notes([*found.estimates, *(pair.difference for pair in found.pairs)])


# Results in a terminal: the numbers that decide, aligned, in lines of at most 120 columns.
#
# Example::
#
#     print(evaluation_text(evaluation))
#     print(evaluation_text(evaluation, ["f1", "auroc"]))

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


_BARS, _LONGEST = 10, 40
"""Bars of a histogram, and signs of the longest one."""


def histograms_text(evaluation: Evaluation) -> str:
    """Return how the scores of each detector are distributed, of accurate and hallucinated items.

    Bars count items; all bars of a detector are drawn to one scale. Mean and standard deviation are
    those of its scores, which speak for a hallucination where they are high.
    """
    names, scores, labels = detector_arrays(evaluation)
    found: list[str] = []
    for name, row, truth in zip(names, scores, labels, strict=True):
        kinds = {"accurate": row[truth == 0.0], "hallucinated": row[truth == 1.0]}
        known = {kind: values[np.isfinite(values)] for kind, values in kinds.items()}
        whole = np.concatenate([*known.values()])
        edges = np.histogram_bin_edges(whole, _BARS)
        counts = {kind: np.histogram(values, edges)[0] for kind, values in known.items()}
        most = max(1, *(int(one.max()) for one in counts.values()))
        found.append(f"\nScores of {name}")
        for kind, values in known.items():
            spread = (
                f", mean {values.mean():.3f}, deviation {values.std():.3f}" if len(values) else ""
            )
            found.append(f"  {kind}: {len(values)} items{spread}")
            for low, high, count in zip(edges[:-1], edges[1:], counts[kind], strict=True):
                bar = "#" * round(_LONGEST * int(count) / most)
                found.append(f"    {low:9.3f} to {high:9.3f} {int(count):5} {bar}".rstrip())
    return "\n".join([*found, ""])


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
