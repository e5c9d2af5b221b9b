"""The table of an evaluation as a page shows it: a row a system, every number with its meaning."""

from __future__ import annotations

from datetime import UTC, datetime

from components.elements import Column, TableRow, fold, table
from components.evaluation_numbers import columns_table, metric_title, number, sampling_text
from components.glossary import means_list
from components.markup import Child, Content, Html, tag, visible
from components.messages import Catalogue, integer, named, two_digits
from components.page import section
from pipelines.evaluation.results.columns import (
    Line,
    ResultsColumn,
    held,
    lines,
    measure_columns,
    results_columns,
)
from pipelines.evaluation.results.scores import COSTS, JudgeInfo
from pipelines.evaluation.results.table import ResultsRow, ResultsTable
from pipelines.evaluation.statistics.detection import DetectorRankings

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


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

    body = columns_table(
        t("evaluate.table"),
        t("evaluate.system"),
        columns,
        systems,
        t,
        name=lambda line: _system(line.row, t) if line.row else [],
        key=lambda line: f"system-{line.system}",
        items=results.items,
        mark=mark,
    )
    return tag("div.vs-stack", body, _bands(results, t))


def _system(row: ResultsRow, t: Catalogue) -> list[Child]:
    title = named("method", row.description.method, t)
    models = t("list.separator").join(dict.fromkeys(row.description.models.values()))
    own = row.description.prompts
    worded = t("prompts.own", count=len(own), list=t("list.separator").join(own)) if own else ""
    about = " · ".join(filter(None, [title if title != row.system else "", models, worded]))
    note = tag("span.vs-note", about) if about else None
    return [tag("span.vs-estimate-cell", tag("bdi.vs-strong", row.system), note)]


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


def ranking_view(found: DetectorRankings, results: ResultsTable, t: Catalogue) -> str:
    """Return the detectors' measures; answer length and word overlap stand among them as controls.

    `results` is the table of the same items, whose systems the detectors are.
    """
    own = {row.system for row in results.rows}
    title = t("evaluate.detectors")

    def name(line: Line) -> Content:
        if line.system in own:
            return tag("bdi.vs-strong", line.system)
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
