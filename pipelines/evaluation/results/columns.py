"""The columns of tables of results: what each is called, which end is better, what stands in it.

A table of results is one list of columns: `results_columns` of an evaluation, others beside what
they are of (studies, comparisons). CSV, Markdown, LaTeX, a terminal and the pages write the values
of that list and add nothing of their own, so that a new column is one more entry here.

Example::

    frame = typed_frame(held(results_columns(table), lines(table)), lines(table))
    frame[["system", "accuracy", "accuracy_low", "accuracy_high"]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from pipelines.evaluation.results.papers import PaperFigure, paper_words
from pipelines.evaluation.results.scores import COSTS, Better, Cost, MetricInfo, has_few_groups
from pipelines.evaluation.results.table import CostSummary, ResultsRow, ResultsTable
from pipelines.evaluation.statistics.detection import DetectorRankings
from pipelines.evaluation.statistics.estimates import Estimate, Sampling

if TYPE_CHECKING:
    # Loaded by what makes a table: light commands begin without it.
    import pandas as pd

Row = TypeVar("Row")

Group = Literal["name", "metric", "measure", "papers", "correction", "count", "cost", "file"]
"""What a column is about. Those of "file" stand in files for programs alone, "name" and "papers"
in tables for people alone; a "measure" is one of a detector."""

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


@dataclass(frozen=True)
class Answered:
    """How many items a system has, each answered up to `repeats` times."""

    items: int
    repeats: int


@dataclass(frozen=True)
class Spent:
    """A cost of one system; `scores` is how many scores could have it."""

    cost: Cost
    found: CostSummary
    scores: int


Value = str | int | float | Estimate | Answered | Spent | tuple[PaperFigure, ...] | None
"""What stands in a cell. Each rendering knows how to write each of these."""


@dataclass(frozen=True)
class ResultsColumn(Generic[Row]):
    """A column: `value` reads its cell of a row, `better` says which end of it is the good one.

    `key` is its name for programs, `title` in print, `short` where there is little room, `words`
    the key of its title on pages, in which `of` is the metric that it is about. `means` says what
    its numbers are; the title of one without `words` is the metric's own.
    """

    key: str
    title: str
    better: Better | None
    value: Callable[[Row], Value]
    group: Group = "file"
    words: str = ""
    short: str = ""
    means: MetricInfo | None = None
    of: str = ""


class Line(NamedTuple):
    """A row of a table of an evaluation: a system, or a control, of which there are only measures.

    `measures` says how well it detects.
    """

    system: str
    row: ResultsRow | None
    measures: Mapping[str, Estimate]


def lines(table: ResultsTable) -> list[Line]:
    """Return the rows of a table: its systems, then what is ranked beside them as a control."""

    def measures(name: str) -> Mapping[str, Estimate]:
        return table.detection.estimates(name) if table.detection else {}

    systems = [Line(row.system, row, measures(row.system)) for row in table.rows]
    return [*systems, *(Line(name, None, measures(name)) for name in table.controls)]


def results_columns(table: ResultsTable) -> list[ResultsColumn[Line]]:
    """Return every column of the table of an evaluation, whose rows are `lines`."""
    found: list[ResultsColumn[Line]] = [
        ResultsColumn("system", "system", None, lambda line: line.system),
        ResultsColumn("name", "System", None, _name, "name"),
        ResultsColumn("method", "method", None, _method),
        _own("models", lambda row: "; ".join(map(": ".join, row.description.models.items()))),
    ]
    for info in table.metrics:
        found += [_metric(info), _papers(info)]
    for column in measure_columns(table.detection):
        found += [column, _papers(MetricInfo.of(column.key))]
    for name in dict.fromkeys(name for row in table.rows for name in row.corrections):
        found += _corrections(name)
    found += [
        _own("n", lambda row: Answered(row.values, row.repeats), "count", "evaluate.count"),
        _own("errors", lambda row: row.errors, "count", "evaluate.errors", "lower"),
        _own("abstained", lambda row: row.abstained, "count", "evaluate.abstained"),
        *map(_cost, COSTS),
        _own("paper_figures", lambda row: row.papers),
        *origin_columns(table.data_set, table.data_hash, table.sampling),
    ]
    if any(row.description.prompts for row in table.rows):
        found.append(_own("own_prompts", lambda row: "; ".join(row.description.prompts)))
    if part := part_of(table):
        found += constant_columns(only="; ".join(part), items=table.items)
    return found


def measure_columns(detection: DetectorRankings | None) -> list[ResultsColumn[Line]]:
    """Return a column for each measure of detectors."""

    def column(name: str) -> ResultsColumn[Line]:
        return measure_column(name, name, lambda line: line.measures.get(name))

    return [column(name) for name in (detection.measures if detection else ())]


def measure_column(
    name: str, title: str, read: Callable[[Row], Estimate | None]
) -> ResultsColumn[Row]:
    """Return the column of a measure that the table of metrics knows."""
    info = MetricInfo.of(name)
    return ResultsColumn(name, title, info.better, read, "measure", means=info)


def origin_columns(data_set: str, data_hash: str, sampling: Sampling) -> list[ResultsColumn[Any]]:
    """Return columns that say what a row was computed from, and how its intervals were drawn."""
    drawn = {"seed": sampling.seed, "resamples": sampling.resamples, "level": sampling.level}
    return constant_columns(data_set=data_set, data_hash=data_hash, **drawn)


def constant_columns(**values: str | float) -> list[ResultsColumn[Any]]:
    """Return a column for each of `values` that holds it in every row."""

    def column(key: str, value: Value) -> ResultsColumn[Any]:
        return ResultsColumn(key, key, None, lambda _: value)

    return [column(key, value) for key, value in values.items()]


def part_of(table: ResultsTable) -> list[str]:
    """Return the tags and the language of the items that the table is of; none where it
    is of all.
    """
    return [*table.tags, *([table.language] if table.language else [])]


def printed_columns(columns: Iterable[ResultsColumn[Row]]) -> list[ResultsColumn[Row]]:
    """Return the columns of a table for people, without those for programs alone."""
    return [one for one in columns if one.group != "file"]


def held(columns: Iterable[ResultsColumn[Row]], rows: Sequence[Row]) -> list[ResultsColumn[Row]]:
    """Return `columns` without metrics, measures, corrections, costs and papers that no row has.

    Names, counts and what is for files stay.
    """
    return [
        column
        for column in columns
        if column.group in ("name", "count", "file")
        or any(has_value(column.value(row)) for row in rows)
    ]


def has_value(value: Value) -> bool:
    """Return whether there is anything to write of a cell."""
    match value:
        case Estimate():
            return value.value is not None
        case Spent():
            return value.found.n > 0
        case tuple():
            return bool(value)
        case _:
            return value is not None


def estimates_in(columns: Iterable[ResultsColumn[Row]], rows: Sequence[Row]) -> list[Estimate]:
    """Return every estimate that stands in a table."""
    values = (column.value(row) for column in columns for row in rows)
    return [one for one in values if isinstance(one, Estimate)]


def typed_frame(columns: Iterable[ResultsColumn[Row]], rows: Sequence[Row]) -> pd.DataFrame:
    """Return a table for programs: nothing is rounded, and a column has one type.

    An estimate called k takes the columns k, k_low, k_high, k_n, k_interval (how the interval was
    computed, or why there is none) and k_remark; a cost k_mean and k_total.
    """
    import pandas as pd

    found: dict[str, pd.Series] = {}
    for column in columns:
        cells = [_cells(column.key, column.value(row)) for row in rows]
        for name in dict.fromkeys(name for one in cells for name in one):
            found[name] = _typed([one.get(name) for one in cells])
    return pd.DataFrame(found)


def _typed(cells: list[Any]) -> pd.Series:
    """Return a column of whole numbers, of numbers or of anything; an empty cell is missing."""
    import pandas as pd

    types = {type(cell) for cell in cells if cell is not None}
    # Numbers of numpy would make floats of whole numbers with an empty cell.
    whole, real = types == {int}, types in ({float}, {int, float})
    return pd.Series(cells, dtype="Int64" if whole else "Float64" if real else object)


def _cells(key: str, value: Value) -> dict[str, Any]:
    """Return the cells for programs that a value takes, each under its name."""
    match value:
        case Estimate():
            few = f"{value.groups} groups: too narrow" if has_few_groups(value) else ""
            return {
                key: value.value,
                f"{key}_low": value.low,
                f"{key}_high": value.high,
                f"{key}_n": value.n,
                f"{key}_interval": value.reason or value.method,
                f"{key}_remark": few,
            }
        case Answered():
            return {key: value.items, "repeats": value.repeats}
        case Spent():
            return {f"{key}_mean": value.found.mean, f"{key}_total": value.found.total}
        case tuple():
            return {key: "; ".join(map(paper_words, value))}
        case _:
            return {key: value}


def _name(line: Line) -> str:
    return line.system if line.row else f"{line.system} (control)"


def _method(line: Line) -> str:
    return line.row.description.method if line.row else "control"


def _own(
    key: str,
    read: Callable[[ResultsRow], Value],
    group: Group = "file",
    words: str = "",
    better: Better | None = None,
    **more: Any,
) -> ResultsColumn[Line]:
    """Return a column of what is known of systems; of a control there is nothing."""
    title = more.pop("title", key)
    return ResultsColumn(key, title, better, lambda x: x.row and read(x.row), group, words, **more)


def _metric(info: MetricInfo) -> ResultsColumn[Line]:
    name = info.name
    return _own(name, lambda row: row.metrics[name], "metric", better=info.better, means=info)


def _papers(info: MetricInfo) -> ResultsColumn[Line]:
    """Return a column of what papers print for a metric."""
    name, title = info.name, f"{info.name}, papers"

    def figures(row: ResultsRow) -> tuple[PaperFigure, ...]:
        return tuple(one for one in row.papers if one.metric == name)

    words = "evaluate.papers.column"
    return _own(f"{name}_papers", figures, "papers", words, info.better, title=title, of=name)


def _corrections(metric: str) -> list[ResultsColumn[Line]]:
    """Return what became of wrong and of right answers, and for files what that comes to."""

    def column(kind: str, better: Better, group: Group, words: str = "") -> ResultsColumn[Line]:
        def rate(row: ResultsRow) -> Estimate | None:
            return getattr(row.corrections.get(metric), kind, None)

        means = MetricInfo(name=kind, better=better)
        more = {"title": f"{kind} ({metric})", "short": kind, "means": means, "of": metric}
        return _own(f"{metric}_{kind}", rate, group, words, better, **more)

    return [
        column("corrected", "higher", "correction", "evaluate.corrected"),
        column("spoiled", "lower", "correction", "evaluate.spoiled"),
        column("change", "higher", "file"),
    ]


def _cost(name: Cost) -> ResultsColumn[Line]:
    def spent(row: ResultsRow) -> Spent:
        return Spent(name, row.costs[name], row.n * row.repeats)

    means = MetricInfo(name=name, low=None, high=None, better=None)
    more = {"title": f"{name} per item", "short": _SHORT[name], "means": means}
    return _own(name, spent, "cost", f"evaluate.cost.{name}", "lower", **more)
