"""A model as the judge of an evaluation: how far it is, and what people's labels say of it."""

from __future__ import annotations

from collections.abc import Sequence

from components.elements import Column, TableRow, notice, table
from components.evaluation_numbers import estimate_text
from components.evaluation_state import spent_words
from components.failures import happened
from components.glossary import means_list
from components.markup import Child, Html, join, tag, visible
from components.messages import Catalogue, integer, two_digits
from pipelines.evaluation.judging.calibration import JudgeCalibration
from pipelines.evaluation.judging.runner import JudgingProgress
from pipelines.evaluation.statistics.judges import CorrectedRate
from pipelines.evaluation.statistics.resampling import Estimate


def judging_view(progress: JudgingProgress | None, t: Catalogue, *, going_on: bool) -> str:
    """Return how many answers are judged, what that took, and why it ended."""
    if progress is None:
        return tag("div.vs-run", tag("p.vs-note", t("evaluate.judge.loading")), key="judging")
    share = progress.judged / progress.total if progress.total else 0.0
    words = [
        t(
            "evaluate.judge.progress",
            judged=integer(progress.judged),
            total=integer(progress.total),
            undecided=integer(progress.undecided),
        ),
        spent_words(progress.spent, t),
    ]
    bar = tag(
        "progress",
        max=1,
        value=f"{share:.4f}",
        aria_label=t("evaluate.judge.title"),
    )
    ended: Html | None = None
    if not going_on:
        reason = progress.reason or ("failed" if progress.failed else "stopped")
        said = t(f"evaluate.judge.ended.{reason}", error=visible(happened(progress.last_error, t)))
        ended = notice(said, f"judging-{reason}", role="status")
    return tag(
        "div.vs-run.vs-evaluation-progress",
        bar,
        tag("p.vs-note", " · ".join(words)),
        ended,
        key="judging",
    )


def calibration_view(title: str, found: JudgeCalibration, t: Catalogue) -> str:
    """Return a judge against people's labels: agreement, confusion matrix, corrected rates."""
    seen = found.agreement
    agrees = t(
        "evaluate.judge.agreement",
        title=visible(title),
        source=visible(found.source),
        accuracy=estimate_text(seen.accuracy, t),
        kappa=estimate_text(seen.kappa, t),
        count=integer(seen.accuracy.n),
        undecided=integer(seen.undecided),
    )
    return tag(
        "div.vs-run.vs-stack",
        tag("p", agrees),
        _confusion(seen.grades, seen.confusion, t),
        _rates(found.rates, t),
        _transferred(found, t),
        means_list(("kappa", "corrected_rate", "confidence_interval"), t),
        key=f"calibration-{title}",
    )


def _confusion(grades: Sequence[str], counts: Sequence[Sequence[int]], t: Catalogue) -> Html:
    names = [t(f"evaluate.grade.{grade}") for grade in grades]
    columns = [Column(t("evaluate.judge.people")), *(Column(name, "vs-num") for name in names)]
    rows = (
        TableRow(f"grade-{grade}", [name, *map(integer, row)])
        for grade, name, row in zip(grades, names, counts, strict=True)
    )
    caption = t("evaluate.judge.confusion")
    return table(caption, columns, rows, caption_css=None, row_names=True)


def _rates(rates: dict[str, CorrectedRate], t: Catalogue) -> Html | None:
    if not rates:
        return None
    columns = [
        Column(t("evaluate.system")),
        Column(t("evaluate.judge.rate"), "vs-num"),
        Column(t("evaluate.judge.rate.people"), "vs-num"),
        Column(t("evaluate.judge.rate.powered"), "vs-num"),
        Column(t("evaluate.judge.rate.rogan_gladen"), "vs-num"),
    ]
    rows = (TableRow(f"rate-{name}", _rate(name, rate, t)) for name, rate in rates.items())
    said = (tag("li", f"{visible(name)}: {rate.why}") for name, rate in rates.items() if rate.why)
    return tag(
        "div.vs-stack",
        table(t("evaluate.judge.rates"), columns, rows, caption_css=None, row_names=True),
        tag("p.vs-note", t("evaluate.judge.rates.help")),
        tag("ul.vs-note", said, lang="en") if any(rate.why for rate in rates.values()) else None,
    )


def _rate(name: str, rate: CorrectedRate, t: Catalogue) -> list[Child]:
    known = (rate.people, rate.prediction_powered, rate.rogan_gladen)
    judged = t("evaluate.judge.rate.of", rate=two_digits(rate.judge), count=integer(rate.n))
    return [visible(name), judged, *(_estimate(one, t) for one in known)]


def _estimate(estimate: Estimate | None, t: Catalogue) -> Child:
    if estimate is None:
        return join([tag("span", "–", aria_hidden=True), tag("span.vs-sr", t("papers.not_given"))])
    return estimate_text(estimate, t)


def _transferred(found: JudgeCalibration, t: Catalogue) -> Html | None:
    if not found.transferred:
        return None
    columns = [Column(t("evaluate.system")), Column(t("evaluate.judge.rate.there"), "vs-num")]
    rows = (
        TableRow(f"there-{name}", [visible(name), _estimate(one, t)])
        for name, one in found.transferred.items()
    )
    return table(t("evaluate.judge.rates"), columns, rows, caption_css=None, row_names=True)
