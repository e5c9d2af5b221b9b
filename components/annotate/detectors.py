"""Labels against detectors and judges: rankings, fitted thresholds, corrected scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from components.annotate.results import detector_name, missing, scale
from components.base.elements import Column, TableRow, fold, notice, table
from components.base.html import Child, Html, join, tag, visible
from components.base.words import Catalogue, integer, means_list, named, two_digits
from components.evaluate.study import setting_title
from components.evaluate.table import (
    columns_table,
    confusion_table,
    estimate_cell,
    estimate_text,
    number,
)
from pipelines.annotation.detectors import (
    LEAST,
    DetectorReport,
    FitQuality,
    FittedDetector,
    LabelledScores,
)
from pipelines.annotation.items import LocatedSpans
from pipelines.annotation.judges import (
    DetectorAgreement,
    LabelledJudge,
    LabelledRate,
    SessionJudges,
)
from pipelines.annotation.results import DETECTOR_COLUMNS, DetectorRow, detector_rows
from pipelines.evaluation.results.columns import held
from pipelines.evaluation.statistics.agreement import Share
from pipelines.evaluation.statistics.detection import ProbabilityErrors
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.statistics.judges import JudgeAgreement

_FITS = ("raw", "platt", "isotonic")
_FITTED = ("fit.accuracy", "fit.found", "fit.spared")


def detectors_view(
    scores: LabelledScores,
    report: DetectorReport,
    errors: Mapping[str, ProbabilityErrors],
    unresolved: int,
    t: Catalogue,
) -> str:
    """Return every detector's rankings and errors as probabilities, with intervals."""
    found = report.detection
    rows = detector_rows(found, errors)
    named_scores = dict(zip(scores.methods, scores.names, strict=True))

    def name(row: DetectorRow) -> Html:
        return tag(
            "span.vs-estimate-cell",
            tag("span", detector_name(row.method, t)),
            tag("span.vs-note", _scores_of(named_scores[row.method], t)),
        )

    body = columns_table(
        t("annotate.results.detectors"),
        t("annotate.results.detector"),
        held(DETECTOR_COLUMNS[1:], rows),
        rows,
        t,
        name=name,
        key=lambda row: f"detector-{row.method}",
        css="vs-detector-table",
    )
    rate = found.base_rate
    said = t(
        "annotate.results.detectors.help",
        count=integer(found.n),
        rate="–" if rate is None else number(rate, 2),
    )
    left = t("annotate.results.unresolved", count=unresolved)
    return tag(
        "div.vs-run.vs-stack.vs-evaluation",
        tag("p.vs-note", said),
        notice(left, "unresolved") if unresolved else None,
        body,
        tag("p.vs-note", t("annotate.results.detectors.columns")),
        means_list(
            [*(one.key for one in DETECTOR_COLUMNS), "base_rate", *_each(scores.names)],
            t,
            anchors=True,
        ),
        key="detectors",
    )


def verdicts_view(found: Sequence[DetectorAgreement], t: Catalogue) -> str:
    """Return each detector's verdicts against people's labels: kappa, accuracy, a matrix
    to unfold.
    """
    if not found:
        return tag("p.vs-run.vs-note", t("annotate.results.verdicts.none"), key="verdicts")
    items = (
        tag(
            "li",
            fold(
                _kappa_summary(detector_name(one.method, t), one.agreement, t),
                _confusion(one.agreement, t),
                key=f"verdicts-{one.method}",
            ),
        )
        for one in found
    )
    return tag(
        "div.vs-run.vs-stack",
        tag("p.vs-note", t("annotate.results.verdicts.help")),
        tag("ul.vs-pairs", items),
        means_list(["kappa", "fit.accuracy"], t),
        key="verdicts",
    )


def located_view(found: Sequence[LocatedSpans], t: Catalogue) -> str:
    """Return the pieces that each detector doubts against those that people marked."""
    heads = ("located.characters", "located.precision", "located.recall")
    columns = [
        Column(t("annotate.results.detector")),
        *(
            Column(_head(name, "↑", t), "vs-num", t(f"annotate.results.{name}"))
            for name in (*heads, "located.iou", "located.exact")
        ),
        Column(t("annotate.results.items"), "vs-num"),
    ]
    rows = (
        TableRow(
            f"located-{one.method}",
            [
                detector_name(one.method, t),
                estimate_cell(one.f1["characters"], t),
                estimate_cell(one.precision, t),
                estimate_cell(one.recall, t),
                estimate_cell(one.f1["iou"], t),
                estimate_cell(one.f1["exact"], t),
                integer(one.texts),
            ],
        )
        for one in found
    )
    name = t("annotate.results.located")
    body = table(name, columns, rows, row_names=True, css="vs-detector-table")
    return tag(
        "div.vs-run.vs-stack.vs-evaluation",
        tag("p.vs-note", t("annotate.results.located.help")),
        tag("div.vs-evaluation-scroll", body, role="region", aria_label=name, tabindex=0),
        means_list(["located.characters"], t),
        key="located",
    )


def fitted_view(
    fitted: Sequence[FittedDetector],
    mixed: Collection[str],
    settings: Mapping[str, tuple[str, str]],
    share: float,
    t: Catalogue,
) -> str:
    """Return what was fitted on one part of the items, and how good it is on the rest.

    `settings` are, by detector, the method and the setting of it that holds the threshold; doubts
    of detectors in `mixed` come from several scores.
    """
    columns = [
        Column(t("annotate.results.detector")),
        Column(t("annotate.results.threshold"), "vs-num"),
        Column(t("annotate.results.accuracy"), "vs-num"),
        Column(t("annotate.results.found"), "vs-num"),
        Column(t("annotate.results.spared"), "vs-num"),
        Column(_head("brier", "↓", t), "vs-num", t("annotate.results.brier")),
        Column(_head("ece", "↓", t), "vs-num", t("annotate.results.ece")),
    ]
    rows = [TableRow(f"fitted-{one.method}", _fitted(one, mixed, settings, t)) for one in fitted]
    scored = [one.score for one in fitted]
    name = t("annotate.results.fitted")
    body = table(name, columns, rows, row_names=True, css="vs-detector-table")
    return tag(
        "div.vs-run.vs-stack.vs-evaluation",
        tag("div.vs-evaluation-scroll", body, role="region", aria_label=name, tabindex=0),
        tag("p.vs-note", t("annotate.results.fitted.help", share=f"{100 * share:.0f}")),
        means_list(["threshold", *_FITTED, "brier", "ece", "platt", *_each(scored)], t),
        key="fitted",
    )


def _fitted(
    one: FittedDetector,
    mixed: Collection[str],
    settings: Mapping[str, tuple[str, str]],
    t: Catalogue,
) -> list[Child]:
    sizes = t("annotate.results.sizes", trained=integer(one.trained), tested=integer(one.tested))
    why = ""
    if one.method in mixed:
        why = t("annotate.results.fit.mixed", scores=_scores_of(one.score, t))
    elif one.platt is None:
        why = t("annotate.results.fit.few", least=LEAST)
    elif one.threshold is None:
        why = t("annotate.results.fit.no_cut")
    elif one.indirect:
        why = t("annotate.results.fit.indirect")
    name = tag(
        "span.vs-estimate-cell",
        tag("span", detector_name(one.method, t)),
        tag("span.vs-note", sizes),
        tag("span.vs-note", why) if why else None,
    )
    threshold: Child = missing(t)
    if one.threshold is not None:
        held = settings.get(one.method)
        setting = setting_title(*held, t) if held else ""
        threshold = tag(
            "span.vs-estimate-cell",
            tag("span.vs-strong", two_digits(one.threshold, 3)),
            tag("span.vs-note", _scores_of(one.score, t)),
            tag("span.vs-note", t("annotate.results.setting", name=setting)) if setting else None,
        )
    return [
        name,
        threshold,
        *(_share(found, t) for found in (one.accuracy, one.found, one.spared)),
        _qualities(one.quality, "brier", t),
        _qualities(one.quality, "calibration_error", t),
    ]


def _share(found: Share | None, t: Catalogue) -> Child:
    if found is None or found.value is None:
        return missing(t)
    estimate = Estimate(
        value=found.value, low=found.low, high=found.high, n=found.n, groups=found.n
    )
    hits = t("annotate.results.hits", hits=integer(found.hits), n=integer(found.n))
    return tag(
        "span.vs-estimate-cell",
        tag("span.vs-estimate", estimate_text(estimate, t)),
        tag("span.vs-note", hits),
    )


def _qualities(quality: Mapping[str, FitQuality], what: str, t: Catalogue) -> Child:
    """Return one error before and after each calibration, the smallest in bold."""
    known = {name: float(getattr(quality[name], what)) for name in _FITS if name in quality}
    if not known:
        return missing(t)
    best = min(known.values())
    parts = (
        tag(
            "span.vs-fit",
            tag("span.vs-note", t(f"annotate.results.fit.{name}")),
            " ",
            tag("span.vs-strong" if value == best else "span", number(value, 3)),
        )
        for name, value in known.items()
    )
    return tag("span.vs-estimate-cell", parts)


def judges_view(found: SessionJudges, t: Catalogue) -> str:
    """Return every judge's score over the whole evaluation, and the same corrected by
    the labels.
    """
    parts: list[Child] = [_judge(one, t) for one in found.judges]
    parts += [
        tag("p.vs-note", t("annotate.results.judge.unjudged", name=visible(name)))
        for name in found.unjudged
    ]
    if found.missing:
        gone = t("annotate.results.judge.missing", count=len(found.missing))
        parts.append(notice(gone, "missing"))
    return tag("div.vs-run.vs-stack", parts, key="judges")


def _judge(found: LabelledJudge, t: Catalogue) -> Html:
    weak = t("evaluate.judge.weak") if found.weak else ""
    left = t("annotate.results.judge.unresolved", count=found.unresolved)
    body: list[Child] = [
        tag("h3.vs-step-title", t("annotate.results.judge.of", title=visible(found.title))),
        tag("p.vs-note", t("annotate.results.judge.on", name=visible(found.name))),
        notice(weak, "weak") if weak else None,
        notice(left, "judge-unresolved") if found.unresolved else None,
    ]
    body += [_rate(one, t) for one in found.rates]
    if found.rates:
        body.append(tag("p.vs-note", t("annotate.results.judge.help")))
        body.append(means_list(["corrected_rate", "kappa", "fit.accuracy"], t))
    if found.agreement is None:
        body.append(tag("p.vs-note", t("annotate.results.judge.no_agreement")))
    else:
        body.append(
            fold(
                _kappa_summary(t("annotate.results.judge.kappa"), found.agreement, t),
                _confusion(found.agreement, t),
                key=f"kappa-{found.judge[:12]}",
            )
        )
    css = "article.vs-card.vs-padded.vs-step.vs-judge"
    return tag(css, body, key=f"judge-{found.evaluation}-{found.judge[:12]}")


def _rate(one: LabelledRate, t: Catalogue) -> Html:
    """Return a text such as "0.84, corrected 0.71 ± 0.03", or why it is not corrected, and both on
    one scale.
    """
    judge = number(one.judge, 2)
    why = t(f"annotate.results.judge.why.{one.why or 'few_labels'}")
    parts: list[Child] = [
        tag("span", t("annotate.results.judge.says")),
        " ",
        tag("span.vs-num.vs-strong", judge),
    ]
    if one.corrected is not None and one.corrected.value is not None:
        parts += [
            " ",
            tag("span", "→", aria_hidden=True),
            " ",
            tag("span", t("annotate.results.judge.corrected")),
            " ",
            tag("span.vs-num.vs-strong", _plus_minus(one.corrected, t)),
        ]
    return tag(
        "div.vs-judge-rate",
        tag("p.vs-judge-system", visible(one.system), dir="auto"),
        tag("p.vs-judge-line", parts),
        _both(one),
        tag("p", why) if one.corrected is None else None,
        tag("p.vs-note", _basis(one, t)),
        key=f"rate-{one.system}",
    )


def _plus_minus(found: Estimate, t: Catalogue) -> str:
    """Return a text such as "0.71 ± 0.03"; where 0 or 1 cuts the interval, the interval itself."""
    if found.value is None or found.low is None or found.high is None:
        return estimate_text(found, t)
    below, above = found.value - found.low, found.high - found.value
    if abs(below - above) > 0.005:
        return estimate_text(found, t)
    half = (found.high - found.low) / 2
    decimals = 3 if half < 0.01 else 2
    return t(
        "annotate.results.plus_minus",
        value=number(found.value, decimals),
        half=number(half, decimals),
    )


def _both(one: LabelledRate) -> Html | None:
    """Return the judge's score and the corrected one on a scale from 0 to 1."""
    if one.corrected is None or one.corrected.value is None:
        return None
    ruler = scale(one.corrected)
    at = f"left:{100 * one.judge:.2f}%"
    mark = tag("span.vs-scale-judge", style=at)
    return tag("span.vs-scale-pair", ruler, mark, aria_hidden=True)


def _basis(one: LabelledRate, t: Catalogue) -> str:
    """Return what the numbers rest on."""
    parts = [
        t("annotate.results.judge.basis", count=integer(one.answers), labels=integer(one.labels))
    ]
    if one.people is not None:
        people = estimate_text(one.people, t)
        parts.append(t("annotate.results.judge.people", value=people))
    if one.by:
        parts.append(t(f"annotate.results.judge.by.{one.by}"))
    if one.empty:
        parts.append(t("annotate.results.judge.empty", count=one.empty))
    if one.chosen:
        parts.append(t("annotate.results.judge.chosen", count=one.chosen))
    return " ".join(parts)


def _kappa_summary(name: str, found: JudgeAgreement, t: Catalogue) -> Html:
    words = t(
        "annotate.results.kappa",
        kappa=estimate_text(found.kappa, t),
        accuracy=estimate_text(found.accuracy, t),
    )
    left = t("annotate.results.undecided", count=found.undecided) if found.undecided else ""
    return tag(
        "span.vs-pair",
        tag("span.vs-strong", name),
        tag("span.vs-num", words),
        scale(found.kappa),
        tag("span.vs-num.vs-note", " · ".join(filter(None, [_n(found, t), left]))),
    )


def _n(found: JudgeAgreement, t: Catalogue) -> str:
    return t("evaluate.n", n=integer(found.accuracy.n))


def _confusion(found: JudgeAgreement, t: Catalogue) -> Html:
    names = [t(f"annotate.results.grade.{grade}") for grade in found.grades]
    corner = t("annotate.results.people")
    return confusion_table(t("annotate.results.matrix"), corner, names, found.confusion)


def _head(name: str, arrow: str, t: Catalogue) -> Html:
    better = "papers.better.higher" if arrow == "↑" else "papers.better.lower"
    unit = tag(
        "span.vs-paper-unit",
        "0–1 ",
        tag("span", arrow, aria_hidden=True),
        tag("span.vs-sr", t(better)),
    )
    return join([t(f"annotate.results.{name}"), " ", unit])


def _each(names: Iterable[str]) -> Iterable[str]:
    """Return the single scores of several detectors."""
    return (one for several in names for one in several.split(", "))


def _scores_of(names: str, t: Catalogue) -> str:
    """Return the scores that a doubt comes from; that of the verdict where there is none."""
    if not names:
        return t("annotate.results.score.verdict")
    return t("list.separator").join(named("score", one, t) for one in names.split(", "))
