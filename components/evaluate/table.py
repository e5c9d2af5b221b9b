"""The table of an evaluation as a page shows it: a row a system, every number with its meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Literal, TypeVar

from components.base.elements import Column, TableRow, fold, sign, table
from components.base.html import Child, Content, Html, join, tag, visible
from components.base.words import (
    Catalogue,
    duration,
    integer,
    means_link,
    means_list,
    named,
    system_title,
    system_titles,
    two_digits,
)
from components.page import section
from pipelines.evaluation.results.columns import (
    Answered,
    Line,
    ResultsColumn,
    Spent,
    Value,
    held,
    lines,
    measure_columns,
    results_columns,
)
from pipelines.evaluation.results.papers import PaperFigure
from pipelines.evaluation.results.scores import (
    COSTS,
    JUDGED,
    MONEY,
    WEAK,
    Cost,
    JudgeInfo,
    MetricInfo,
    has_few_groups,
)
from pipelines.evaluation.results.table import ResultsRow, ResultsTable
from pipelines.evaluation.statistics.detection import DetectorRankings
from pipelines.evaluation.statistics.estimates import Estimate, PairedDifference, Sampling

# Numbers of evaluations in words: estimates with intervals, p values, what a metric means.

Row = TypeVar("Row")

_ARROWS = {"higher": "↑", "lower": "↓"}
_NARROW = 0.02
_STEPS = 6
"""Tints of a confusion matrix."""

_DECIDING = ("accuracy", "truthful")
"""Metrics that say whether an answer is right; `JUDGED` does, too."""

_MOST_DECIDING = 3
_FIRST_COUNTS = ("n", "calls", "seconds", *MONEY)
"""What stands beside the deciding metrics: of how many items they are, and what they cost."""


def digits_of(estimate: Estimate) -> int:
    """Return decimals that an estimate of a share deserves: three where its interval is
    very narrow.
    """
    if estimate.low is None or estimate.high is None:
        return 2
    return 3 if estimate.high - estimate.low < _NARROW else 2


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a value up to 10 with its decimals, a larger one with two significant digits."""
    # What rounds to zero has no sign.
    near = f"{round(value, decimals) + 0.0:.{decimals}f}"
    text = (near if abs(value) < 10 else two_digits(value)).replace("-", "−")
    return f"+{text}" if signed and value > 0 and text.strip("0.") else text


def estimate_text(estimate: Estimate, t: Catalogue, *, signed: bool = False) -> str:
    """Return a text such as "0.53 [0.46, 0.60]", the number alone without an interval, a dash
    without a number.
    """
    if estimate.value is None:
        return "–"
    decimals = digits_of(estimate)
    value = number(estimate.value, decimals, signed=signed)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = (number(end, decimals, signed=signed) for end in (estimate.low, estimate.high))
    return t("evaluate.interval", value=value, low=low, high=high)


def estimate_cell(
    estimate: Estimate,
    t: Catalogue,
    *,
    items: int | None = None,
    signed: bool = False,
    mark: Child = None,
) -> Html:
    """Return the estimate for a cell, with why something is missing, and n where it is not `items`.

    `mark` stands behind the number.
    """
    text = estimate_text(estimate, t, signed=signed)
    parts: list[Child] = [tag("span.vs-estimate", text, mark)]
    if has_few_groups(estimate):
        parts.append(tag("span.vs-note", few_words(estimate, t)))
    if estimate.reason is not None:
        parts.append(tag("span.vs-note", t(f"evaluate.reason.{estimate.reason}")))
    if items is not None and estimate.n not in (0, items):
        parts.append(tag("span.vs-note", t("evaluate.n", n=integer(estimate.n))))
    return tag("span.vs-estimate-cell", parts)


def money_text(value: float, currency: str, t: Catalogue) -> str:
    """Return an amount with the sign of its currency: "$0.0012", "CN¥3.20", "$1,234.50"."""
    amount = two_digits(value) if value < 1 else f"{value:,.2f}"
    key = f"currency.{currency}"
    return t(key, value=amount) if t.has(key) else f"{amount} {currency}"


def few_words(estimate: Estimate, t: Catalogue) -> str:
    """Return the remark that an interval comes from few groups, or from few items where each is
    a group.
    """
    key = "evaluate.few.items" if estimate.groups == estimate.n else "evaluate.few.groups"
    return t(key, n=integer(estimate.groups))


def p_text(p: float | None) -> str:
    """Return a p value: "= 0.034", "< 0.001" below that, a dash where there is none."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.0995 else f"= {p:.2f}"


def p_words(pair: PairedDifference, pairs: int, t: Catalogue) -> str:
    """Return the p value with its test, and after Holm's correction where there are
    several pairs.
    """
    if pair.p is None:
        return t("evaluate.p.none")
    test = t(f"evaluate.test.{pair.test}")
    words = t("evaluate.p", p=p_text(pair.p), test=test)
    if pairs < 2 or pair.adjusted is None:
        return words
    return words + t("evaluate.p.holm", p=p_text(pair.adjusted), count=pairs)


def right_badge(right: bool, t: Catalogue) -> Html:
    """Return right or wrong, with its sign."""
    words = t("evaluate.value.right" if right else "evaluate.value.wrong")
    css = "vs-verdict-supported" if right else "vs-verdict-contradicted"
    return tag(f"span.vs-badge.{css}", sign("✓" if right else "✗"), tag("span", words))


Outcome = Literal["first", "second", "alike", "unknown"]


def outcome(pair: PairedDifference, info: MetricInfo, alpha: float = 0.05) -> Outcome:
    """Return which of the two is better at `alpha` after Holm; "alike" cannot be told apart.

    "unknown" is a difference that was not tested, or a metric without a better direction.
    """
    if pair.adjusted is None or pair.difference.value is None or info.better is None:
        return "unknown"
    if pair.adjusted >= alpha:
        return "alike"
    return "first" if (pair.difference.value > 0) == (info.better == "higher") else "second"


def metric_title(name: str, t: Catalogue) -> str:
    """Return what a metric is called; one without words keeps its name."""
    if name.startswith(f"{JUDGED} "):
        # Another judge, or a weak one, which has to be seen wherever its figure is.
        rest = name.removeprefix(JUDGED).replace(WEAK, f" {t('evaluate.judge.mark')}")
        return f"{t('metric.judged.title')}{rest}"
    return named("metric", name, t)


def range_text(info: MetricInfo) -> str:
    """Return a text such as "0–1", "≥ 0", or nothing for a metric whose range is not known."""
    if info.low is not None and info.high is not None:
        return f"{info.low:g}–{info.high:g}"
    if info.low is not None:
        return f"≥ {info.low:g}"
    return f"≤ {info.high:g}" if info.high is not None else ""


def metric_head(info: MetricInfo, t: Catalogue, title: str = "") -> tuple[Html, str]:
    """Return the head of a metric's column, and what a narrow screen calls it: name, range,
    direction. `title` stands for the name.

    The head leads to what the metric means: the view needs a `means_list` with anchors for it.
    """
    title, span = title or metric_title(info.name, t), range_text(info)
    arrow = _ARROWS.get(info.better or "", "")
    unit: list[Child] = [span]
    if info.better is not None:
        better = tag("span.vs-sr", t(f"papers.better.{info.better}"))
        unit += [" ", tag("span", arrow, aria_hidden=True), better]
    told = tag("span.vs-paper-unit", unit) if any(unit) else None
    head = join([title, " ", told, means_link(info.name, t)])
    return head, " ".join(filter(None, [title, span, arrow]))


def columns_table(
    caption: str,
    first: str,
    columns: Sequence[ResultsColumn[Row]],
    rows: Sequence[Row],
    t: Catalogue,
    *,
    name: Callable[[Row], Content],
    key: Callable[[Row], str],
    items: int | None = None,
    mark: Callable[[ResultsColumn[Row], Row], Child] = lambda column, row: None,
    css: str | None = None,
) -> Html:
    """Return a table of results: every column under its title, a row under each `name`.

    `first` is the title of the names, `key` tells rows apart. Numbers say of how many items they
    are where it is not `items`. `mark` stands behind an estimate.
    """

    def cell(column: ResultsColumn[Row], row: Row) -> Content:
        # A rate of correction is of the answers that were wrong, or right, before.
        among = None if column.group == "correction" else items
        return [value_cell(column.value(row), t, items=among, mark=mark(column, row))]

    lines = (TableRow(key(row), [name(row), *(cell(one, row) for one in columns)]) for row in rows)
    heads = [Column(first), *(_column_head(one, t) for one in columns)]
    return tag(
        "div.vs-evaluation-scroll",
        table(caption, heads, lines, row_names=True, css=css),
        role="region",
        aria_label=caption,
        tabindex=0,
        key="table",
    )


def _column_head(column: ResultsColumn[Row], t: Catalogue) -> Column:
    """Return the head of a column of results, and what a narrow screen calls it."""
    title = t(column.words, metric=metric_title(column.of, t)) if column.words else ""
    if column.group == "cost":
        title = t("evaluate.per_item", name=title)
    if column.means is None:
        return Column(title, "vs-num vs-printed" if column.group == "papers" else "vs-num")
    head, label = metric_head(column.means, t, title)
    return Column(head, "vs-num", label)


def value_cell(
    value: Value, t: Catalogue, *, items: int | None = None, mark: Child = None
) -> Child:
    """Return what stands in a cell of a table of results; a dash where there is nothing."""
    match value:
        case Estimate():
            return estimate_cell(value, t, items=items, mark=mark)
        case Answered():
            count = integer(value.items)
            return count if value.repeats < 2 else f"{count} × {value.repeats}"
        case Spent():
            return _spent(value, t)
        case tuple() if value:
            return join([_figure(figure, t) for figure in value])
        case int():
            return integer(value)
        case str():
            return value
        case _:
            return "–"


def _spent(value: Spent, t: Catalogue) -> Child:
    """Return the mean per item with the total below it, and of how many scores where some
    lack it: then the total is too small.
    """
    found, cost = value.found, value.cost
    if found.mean is None or found.total is None:
        return "–"
    partly = found.n < value.scores
    return tag(
        "span.vs-estimate-cell",
        tag("span", cost_text(cost, found.mean, t)),
        tag("span.vs-note", t("evaluate.total", value=cost_text(cost, found.total, t))),
        tag("span.vs-note", t("evaluate.n", n=integer(found.n))) if partly else None,
    )


def cost_text(cost: Cost, value: float, t: Catalogue) -> str:
    """Return a cost with its unit: "4.1 s", "$0.0012", "CN¥3.20", "43"."""
    if cost == "seconds":
        return duration(value, t)
    if cost in MONEY:
        return money_text(value, MONEY[cost], t)
    return number(value, 1).removesuffix(".0") if value < 10 else f"{value:,.0f}"


def _figure(figure: PaperFigure, t: Catalogue) -> Html:
    """Return one printed number with what it is of, and its model, data and date."""
    unit = t(f"papers.unit.{figure.unit}")
    row, column, model, data = (
        one.text(t.language) for one in (figure.row, figure.column, figure.model, figure.data)
    )
    value = tag("span", f"{figure.value:f} ", tag("span.vs-paper-unit", unit))
    notes = [" · ".join([row, column]), " · ".join(filter(None, [model, data, figure.date]))]
    return tag("span.vs-estimate-cell", value, *(tag("span.vs-note", note) for note in notes))


def confusion_table(
    caption: str, corner: str, names: Sequence[str], counts: Sequence[Sequence[int]]
) -> Html:
    """Return how often two people gave each pair of labels: darker is more often; equal
    is framed.
    """
    largest = max((count for row in counts for count in row), default=0)
    columns = [Column(corner), *(Column(name, "vs-confusion") for name in names)]

    def cell(count: int, *, same: bool) -> Html:
        tint = ceil(_STEPS * count / largest) if count else 0
        look = f"span.vs-confusion-cell.vs-num.vs-tint-{tint}"
        return tag(look + (".vs-confusion-same" if same else ""), integer(count))

    rows = (
        TableRow(
            None,
            [name, *(cell(count, same=at == place) for place, count in enumerate(row))],
        )
        for at, (name, row) in enumerate(zip(names, counts, strict=True))
    )
    return table(caption, columns, rows, css="vs-confusion-table", row_names=True)


def sampling_text(sampling: Sampling, t: Catalogue) -> str:
    """Return how intervals and tests were computed, with the seed and the versions."""
    versions = t("list.separator").join(f"{name} {one}" for name, one in sampling.versions.items())
    return t(
        "evaluate.sampling",
        level=f"{100 * sampling.level:g}",
        resamples=integer(sampling.resamples),
        permutations=integer(sampling.permutations),
        seed=sampling.seed,
        versions=versions,
    )


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def results_view(results: ResultsTable, t: Catalogue, *, whole: bool = False) -> str:
    """Return the table, what papers print, and how it was computed; detectors have a view of
    their own.

    The metrics that decide and the costs are in view, the other columns unfold; with `whole` all
    are in view, as where a reader chose the metrics.
    """
    return tag(
        "div.vs-run.vs-evaluation",
        section(
            "evaluation",
            t("evaluate.table"),
            _about(results, t),
            _table(results, t, whole=whole),
            *_judges(results, t),
        ),
        _papers(results, t),
        _meaning(results, t),
        key="evaluation",
    )


def _about(results: ResultsTable, t: Catalogue) -> Html:
    words = [
        t("evaluate.data", name=results.data_set, hash=results.data_hash[:12]),
        t("evaluate.items", count=integer(results.items)),
    ]
    if results.groups < results.items:
        words.append(t("evaluate.groups", n=integer(results.groups)))
    if results.tags:
        words.append(t("evaluate.tags", list=t("list.separator").join(results.tags)))
    if results.language:
        words.append(named("language", results.language, t))
    models = dict.fromkeys(name for row in results.rows for name in row.description.models.values())
    words.append(t("evaluate.models.of", list=t("list.separator").join(models)))
    words.append(t("evaluate.seed.of", seed=results.sampling.seed))
    words += (f"{name} {one}" for name, one in results.versions.items())
    if results.created:
        words.append(f"{datetime.fromtimestamp(results.created, UTC):%Y-%m-%d}")
    return tag("p.vs-note", " · ".join(map(visible, words)))


def _judges(results: ResultsTable, t: Catalogue) -> list[Html]:
    """Return who judged the answers, and how far people agree; where nobody did, how that
    is done.
    """
    answers = any(info.name == "accuracy" for info in results.metrics)
    if answers and not results.judges:
        return [tag("p.vs-note", t("evaluate.judge.none"))]
    return [tag("p.vs-note", _judge(name, one, t)) for name, one in results.judges.items()]


def _judge(name: str, judge: JudgeInfo, t: Catalogue) -> str:
    words = [
        t(
            "evaluate.judge.by",
            column=metric_title(name, t),
            title=visible(judge.title),
            count=integer(judge.judged),
            undecided=integer(judge.undecided),
        )
    ]
    if judge.weak:
        words.append(t("evaluate.judge.weak"))
    if judge.accuracy is None:
        words.append(t("evaluate.judge.unchecked"))
    else:
        words.append(
            t(
                "evaluate.judge.checked",
                source=visible(judge.source),
                count=integer(judge.labels),
                accuracy=two_digits(judge.accuracy),
                kappa="–" if judge.kappa is None else two_digits(judge.kappa),
            )
        )
    return ("" if t.language == "zh" else " ").join(words)


def _table(results: ResultsTable, t: Catalogue, *, whole: bool) -> Html:
    systems = [line for line in lines(results) if line.row is not None]
    # Detectors have a table of their own. A metric without any value says why there is none.
    names = {info.name for info in results.metrics}
    every = [
        one for one in results_columns(results) if one.group not in ("name", "file", "measure")
    ]
    known = held(every, systems)
    columns = [
        one for one in every if one.group == "metric" or (one in known and one.of in ("", *names))
    ]
    letters = {info.name: _letters(results, info.name) for info in results.metrics}

    def mark(column: ResultsColumn[Line], line: Line) -> Html | None:
        band = letters[column.key].get(line.system, "") if column.group == "metric" else ""
        return tag("sup.vs-band", band, title=t("evaluate.band.help")) if band else None

    def part(shown: Sequence[ResultsColumn[Line]], title: str, key: str) -> Html:
        return columns_table(
            title,
            t("evaluate.system"),
            shown,
            systems,
            t,
            name=lambda line: _system(line.row, t) if line.row else [],
            key=lambda line: f"{key}-{line.system}",
            items=results.items,
            mark=mark,
        )

    first = set(_deciding(results))

    def decides(one: ResultsColumn[Line]) -> bool:
        about = one.key if one.group == "metric" else one.of
        return about in first or one.key in _FIRST_COUNTS

    shown = [one for one in columns if whole or decides(one)]
    rest = [one for one in columns if one not in shown]
    more = t("evaluate.more_columns", count=len(rest))
    return tag(
        "div.vs-stack",
        part(shown, t("evaluate.table"), "system"),
        _bands(results, t),
        fold(more, part(rest, more, "more"), key="more-columns") if rest else None,
    )


def _deciding(results: ResultsTable) -> list[str]:
    """Return the metrics that say which system is better: whether answers are right, by rule and
    by judges; of a table without these, the first that have a better direction.
    """
    named_first = [
        name for name in results.held if name in _DECIDING or name.split(" ")[0] == JUDGED
    ]
    directed = [name for name in results.held if results.metric(name).better is not None]
    return named_first or directed[:_MOST_DECIDING] or list(results.held[:_MOST_DECIDING])


def _system(row: ResultsRow, t: Catalogue) -> list[Child]:
    title = named("method", row.description.method, t)
    shown = system_title(row.system, t)
    models = t("list.separator").join(dict.fromkeys(row.description.models.values()))
    own = row.description.prompts
    worded = t("prompts.own", count=len(own), list=t("list.separator").join(own)) if own else ""
    about = " · ".join(filter(None, [title if title != shown else "", models, worded]))
    note = tag("span.vs-note", about) if about else None
    return [tag("span.vs-estimate-cell", tag("bdi.vs-strong", shown), note)]


def _letters(results: ResultsTable, metric: str) -> dict[str, str]:
    """Return the letters of the bands that a system stands in; none where no band has two
    systems.
    """
    found = results.bands.get(metric, ())
    if not any(len(band) > 1 for band in found):
        return {}
    letters: dict[str, str] = {}
    for place, band in enumerate(found):
        for system in band:
            letter = _LETTERS[place] if place < len(_LETTERS) else f"({place + 1})"
            letters[system] = letters.get(system, "") + letter
    return letters


def _bands(results: ResultsTable, t: Catalogue) -> Html | None:
    """Return, in words, which systems cannot be told apart, on which metrics, and for the deciding
    metrics why: items, difference with its interval, and p of the pair that differs most.
    """
    metrics: dict[str, list[str]] = {}
    why: dict[str, str] = {}
    deciding = _deciding(results)
    for metric, found in results.bands.items():
        several = [band for band in found if len(band) > 1]
        if several:
            groups = "; ".join(system_titles(band, t) for band in several)
            metrics.setdefault(groups, []).append(metric_title(metric, t))
            if metric in deciding and groups not in why:
                reasons = (
                    _why_alike(band, results.differences.get(metric, ()), t) for band in several
                )
                why[groups] = t("sentence.separator").join(filter(None, reasons))
    lines = [
        tag(
            "li",
            visible(t("evaluate.band", metric=t("list.separator").join(names), list=groups)),
            tag("span.vs-note", " ", visible(why[groups])) if why.get(groups) else None,
        )
        for groups, names in metrics.items()
    ]
    return tag("ul.vs-source-notes", lines, key="bands") if lines else None


def _why_alike(band: Sequence[str], pairs: Sequence[PairedDifference], t: Catalogue) -> str:
    """Return why systems of a band are not told apart; empty where no pair of it was tested."""
    tested = [
        (abs(one.difference.value), one)
        for one in pairs
        if {one.first, one.second} <= set(band)
        and one.difference.value is not None
        and one.adjusted is not None
    ]
    if not tested:
        return ""
    _, widest = max(tested, key=lambda one: one[0])
    return alike_words(widest, t)


def alike_words(pair: PairedDifference, t: Catalogue) -> str:
    """Return, in a sentence, why the two of a pair cannot be told apart: items, difference with
    its interval, p.
    """
    return t(
        "evaluate.alike.why",
        first=system_title(pair.first, t),
        second=system_title(pair.second, t),
        n=integer(pair.difference.n),
        value=estimate_text(pair.difference, t, signed=True),
        p=p_text(pair.adjusted),
    )


def ranking_view(found: DetectorRankings, results: ResultsTable, t: Catalogue) -> str:
    """Return the detectors' measures; answer length and word overlap stand among them as controls.

    `results` is the table of the same items, whose systems the detectors are.
    """
    own = {row.system for row in results.rows}
    title = t("evaluate.detectors")

    def name(line: Line) -> Content:
        if line.system in own:
            return tag("bdi.vs-strong", system_title(line.system, t))
        return t("evaluate.control", name=metric_title(line.system, t))

    body = columns_table(
        title,
        t("evaluate.detector"),
        measure_columns(found),
        [Line(detector, None, found.estimates(detector)) for detector in found.detectors],
        t,
        name=name,
        key=lambda line: f"detector-{line.system}",
        items=found.n,
    )
    base = "–" if found.base_rate is None else number(found.base_rate, 2)
    return tag(
        "div.vs-run.vs-evaluation",
        section(
            "detectors",
            title,
            tag("p.vs-note", t("evaluate.base_rate", value=base, n=integer(found.n))),
            body,
        ),
        means_list(
            [*found.measures, "base_rate"],
            t,
            title=t("evaluate.meaning"),
            anchors=True,
            notes=(sampling_text(results.sampling, t),),
            key="meaning",
        ),
        key="detection",
    )


def _papers(results: ResultsTable, t: Catalogue) -> Html | None:
    """Return figures that papers print on this data set and that no metric here is the same as."""
    shown = {info.name for info in results.metrics}
    figures = dict.fromkeys(
        figure for row in results.rows for figure in row.papers if figure.metric not in shown
    )
    if not figures:
        return None
    columns = [
        t("evaluate.system"),
        t("evaluate.metric"),
        Column(t("evaluate.papers.value"), "vs-num"),
        t("evaluate.papers.model"),
        t("evaluate.papers.data"),
        t("evaluate.papers.date"),
    ]
    rows = (
        TableRow(
            None,
            [
                figure.row.text(t.language),
                figure.column.text(t.language),
                f"{figure.value:f} {t(f'papers.unit.{figure.unit}')}",
                figure.model.text(t.language),
                figure.data.text(t.language),
                figure.date or "–",
            ],
        )
        for figure in figures
    )
    title = t("evaluate.papers")
    note = tag("p.vs-note", t("papers.not_comparable"))
    return fold(title, note, table(title, columns, rows), key="papers")


def _meaning(results: ResultsTable, t: Catalogue) -> Html | None:
    """Return what each metric is, and how intervals and tests were computed."""
    names = [info.name for info in results.metrics]
    versions = t("list.separator").join(f"{name} {one}" for name, one in results.versions.items())
    return means_list(
        [*names, "corrected", "spoiled", *COSTS, "confidence_interval"],
        t,
        title=t("evaluate.meaning"),
        anchors=True,
        notes=(t("evaluate.band.help"), sampling_text(results.sampling, t), visible(versions)),
        key="meaning",
    )
