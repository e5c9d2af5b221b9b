"""The table of an evaluation as a page shows it: a row a system, every number with its meaning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from components.elements import Column, TableRow, fold, table
from components.evaluation_numbers import (
    estimate_cell,
    metric_head,
    metric_title,
    money_text,
    number,
    sampling_text,
)
from components.glossary import means_link, means_list
from components.markup import Child, Content, Html, tag, visible
from components.messages import Catalogue, duration, integer, named, two_digits
from components.page import section
from pipelines.evaluation.results.papers import PaperFigure
from pipelines.evaluation.results.scores import COSTS, MONEY, Cost, JudgeInfo, MetricInfo
from pipelines.evaluation.results.table import CostSummary, ResultsRow, ResultsTable
from pipelines.evaluation.statistics.detection import DetectorRankings
from pipelines.evaluation.statistics.resampling import Estimate

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class _Part(NamedTuple):
    """A column of the table: its head, and what stands in it for a row."""

    head: Column
    cell: Callable[[ResultsRow], Content]


def results_view(results: ResultsTable, t: Catalogue) -> str:
    """Return the table, what papers print, and how it was computed; detectors have a view of
    their own.
    """
    return tag(
        "div.vs-run.vs-evaluation",
        section(
            "evaluation",
            t("evaluate.table"),
            _about(results, t),
            _table(results, t),
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


def _table(results: ResultsTable, t: Catalogue) -> Html:
    parts = [_Part(Column(t("evaluate.system")), lambda row: _system(row, t))]
    for info in results.metrics:
        parts.append(_metric(info, results, t))
        parts += _printed(info.name, results, t)
    parts += _corrections(results, t)
    parts += _counts(results, t)
    parts += [part for cost in COSTS for part in _cost(cost, results, t)]
    rows = (
        TableRow(f"system-{row.system}", [part.cell(row) for part in parts]) for row in results.rows
    )
    caption = t("evaluate.table")
    body = table(caption, [part.head for part in parts], rows, row_names=True)
    region = tag(
        "div.vs-evaluation-scroll", body, role="region", aria_label=caption, tabindex=0, key="table"
    )
    return tag("div.vs-stack", region, _bands(results, t))


def _system(row: ResultsRow, t: Catalogue) -> list[Child]:
    title = named("method", row.description.method, t)
    models = t("list.separator").join(dict.fromkeys(row.description.models.values()))
    own = row.description.prompts
    worded = t("prompts.own", count=len(own), list=t("list.separator").join(own)) if own else ""
    about = " · ".join(filter(None, [title if title != row.system else "", models, worded]))
    note = tag("span.vs-note", about) if about else None
    return [tag("span.vs-estimate-cell", tag("bdi.vs-strong", row.system), note)]


def _metric(info: MetricInfo, results: ResultsTable, t: Catalogue) -> _Part:
    head, label = metric_head(info, t)
    letters = _letters(results, info.name)

    def cell(row: ResultsRow) -> list[Child]:
        band = letters.get(row.system, "")
        mark = tag("sup.vs-band", band, title=t("evaluate.band.help")) if band else None
        return [estimate_cell(row.metrics[info.name], t, items=results.items, mark=mark)]

    return _Part(Column(head, "vs-num", label), cell)


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
    """Return, in words, which systems cannot be told apart, and on which metrics."""
    metrics: dict[str, list[str]] = {}
    for metric, found in results.bands.items():
        several = [band for band in found if len(band) > 1]
        if several:
            groups = "; ".join(t("list.separator").join(band) for band in several)
            metrics.setdefault(groups, []).append(metric_title(metric, t))
    lines = [
        tag("li", visible(t("evaluate.band", metric=t("list.separator").join(names), list=groups)))
        for groups, names in metrics.items()
    ]
    return tag("ul.vs-source-notes", lines, key="bands") if lines else None


def _printed(metric: str, results: ResultsTable, t: Catalogue) -> list[_Part]:
    """Return what papers print for the metric, in a column of its own beside ours."""
    if not any(figure.metric == metric for row in results.rows for figure in row.papers):
        return []
    title = t("evaluate.papers.column", metric=metric_title(metric, t))

    def cell(row: ResultsRow) -> list[Child]:
        found = [figure for figure in row.papers if figure.metric == metric]
        return [_figure(figure, t) for figure in found] or ["–"]

    return [_Part(Column(title, "vs-num vs-printed"), cell)]


def _figure(figure: PaperFigure, t: Catalogue) -> Html:
    """Return one printed number with the model, the data and the date that it is of."""
    unit = t(f"papers.unit.{figure.unit}")
    where = " · ".join(
        filter(None, [figure.model.text(t.language), figure.data.text(t.language), figure.date])
    )
    value = tag("span", f"{figure.value:f} ", tag("span.vs-paper-unit", unit))
    row = figure.row.text(t.language)
    return tag("span.vs-estimate-cell", value, tag("span.vs-note", row), tag("span.vs-note", where))


def _corrections(results: ResultsTable, t: Catalogue) -> list[_Part]:
    parts: list[_Part] = []
    for metric in dict.fromkeys(name for row in results.rows for name in row.corrections):
        kinds = (("corrected", "higher"), ("spoiled", "lower"))
        for kind, better in kinds:
            title = t(f"evaluate.{kind}", metric=metric_title(metric, t))
            arrow = {"higher": "↑", "lower": "↓"}[better]
            unit = tag("span.vs-paper-unit", f"0–1 {arrow}")
            spoken = tag("span.vs-sr", t(f"papers.better.{better}"))

            def cell(row: ResultsRow, metric: str = metric, kind: str = kind) -> Content:
                found = row.corrections.get(metric)
                return "–" if found is None else estimate_cell(getattr(found, kind), t)

            head = tag("span", title, " ", unit, spoken, means_link(kind, t))
            parts.append(_Part(Column(head, "vs-num", f"{title} 0–1 {arrow}"), cell))
    return parts


def _counts(results: ResultsTable, t: Catalogue) -> list[_Part]:
    def answered(row: ResultsRow) -> Content:
        return integer(row.n) if row.repeats < 2 else f"{integer(row.n)} × {row.repeats}"

    return [
        _Part(Column(t("evaluate.count"), "vs-num"), answered),
        _Part(Column(t("evaluate.errors"), "vs-num"), lambda row: integer(row.errors)),
        _Part(
            Column(t("evaluate.abstained"), "vs-num"),
            lambda row: estimate_cell(row.abstained, t, items=results.items),
        ),
    ]


def _cost(cost: Cost, results: ResultsTable, t: Catalogue) -> list[_Part]:
    """Return the mean per item with the total below it; no column for a cost that nothing
    recorded.
    """
    if not any(row.costs[cost].n for row in results.rows):
        return []
    title = t("evaluate.per_item", name=t(f"evaluate.cost.{cost}"))

    def cell(row: ResultsRow) -> list[Child]:
        found = row.costs[cost]
        if found.mean is None or found.total is None:
            return ["–"]
        total = t("evaluate.total", value=cost_text(cost, found.total, t))
        return [
            tag(
                "span.vs-estimate-cell",
                tag("span", cost_text(cost, found.mean, t)),
                tag("span.vs-note", total),
                _partly(found, row, t),
            )
        ]

    head = tag("span", title, means_link(cost, t))
    return [_Part(Column(head, "vs-num", title), cell)]


def _partly(found: CostSummary, row: ResultsRow, t: Catalogue) -> Html | None:
    """Return a note that some scores do not have this cost, so that the total is too small."""
    expected = row.n * row.repeats
    return tag("span.vs-note", t("evaluate.n", n=integer(found.n))) if found.n < expected else None


def cost_text(cost: Cost, value: float, t: Catalogue) -> str:
    """Return a cost with its unit: "4.1 s", "$0.0012", "CN¥3.20", "43"."""
    if cost == "seconds":
        return duration(value, t)
    if cost in MONEY:
        return money_text(value, MONEY[cost], t)
    return number(value, 1).removesuffix(".0") if value < 10 else f"{value:,.0f}"


def ranking_view(found: DetectorRankings, results: ResultsTable, t: Catalogue) -> str:
    """Return the detectors' measures; answer length and word overlap stand among them as controls.

    `results` is the table of the same items, whose systems the detectors are.
    """
    infos = [MetricInfo.of(name) for name in found.measures]
    heads = [Column(head, "vs-num", label) for head, label in (metric_head(i, t) for i in infos)]
    own = {row.system for row in results.rows}
    rows = (
        TableRow(
            f"detector-{name}",
            [
                tag("bdi.vs-strong", name)
                if name in own
                else t("evaluate.control", name=metric_title(name, t)),
                *(_measure(found.estimates(name).get(info.name), found.n, t) for info in infos),
            ],
        )
        for name in found.detectors
    )
    title = t("evaluate.detectors")
    columns = [Column(t("evaluate.detector")), *heads]
    base = "–" if found.base_rate is None else number(found.base_rate, 2)
    return tag(
        "div.vs-run.vs-evaluation",
        section(
            "detectors",
            title,
            tag("p.vs-note", t("evaluate.base_rate", value=base, n=integer(found.n))),
            table(title, columns, rows, row_names=True),
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


def _measure(found: Estimate | None, items: int, t: Catalogue) -> Content:
    return "–" if found is None else estimate_cell(found, t, items=items)


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
