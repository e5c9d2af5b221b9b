"""A model as the judge of an evaluation: how far it is, and what people's labels say of it."""

from __future__ import annotations

from components.elements import notice
from components.evaluation_numbers import columns_table, confusion_table, estimate_text
from components.evaluation_state import spent_words
from components.failures import happened
from components.glossary import means_list
from components.markup import Html, tag, visible
from components.messages import Catalogue, integer
from pipelines.evaluation.judging.calibration import JudgeCalibration, rate_columns, rate_rows
from pipelines.evaluation.judging.runner import JudgingProgress


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
        tag("p.vs-note", t("evaluate.judge.confusion")),
        confusion_table(
            t("evaluate.judge.confusion"),
            t("evaluate.judge.people"),
            [t(f"evaluate.grade.{grade}") for grade in seen.grades],
            seen.confusion,
        ),
        _rates(found, t),
        means_list(("kappa", "corrected_rate", "confidence_interval"), t),
        key=f"calibration-{title}",
    )


def _rates(found: JudgeCalibration, t: Catalogue) -> Html | None:
    rows = rate_rows(found)
    if not rows:
        return None
    why = [(name, rate.why) for name, rate in found.rates.items() if rate.why]
    said = (tag("li", f"{visible(name)}: {words}") for name, words in why)
    title = t("evaluate.judge.rates")
    return tag(
        "div.vs-stack",
        tag("p.vs-label", title),
        columns_table(
            title,
            t("evaluate.system"),
            rate_columns(found)[1:],
            rows,
            t,
            name=lambda row: visible(row.system),
            key=lambda row: f"rate-{row.system}",
        ),
        tag("p.vs-note", t("evaluate.judge.rates.help")) if found.rates else None,
        tag("ul.vs-note", said, lang="en") if why else None,
    )
