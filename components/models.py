"""What a model is, what a check of it found, and how often a bundled judge is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from components.base.elements import Column, TableRow, status_badge, table
from components.base.html import Child, Html, tag, visible
from components.base.theme import Theme, plotly_template, tokens
from components.base.words import Catalogue, duration, integer, two_digits
from components.run.spending import price_words
from pipelines.base import calibration
from pipelines.error_words import phrase, phrase_in
from pipelines.models.base import Capabilities
from pipelines.models.catalogue import CatalogueEntry, Download
from pipelines.models.download import ACTIVE, DownloadState, in_gigabytes
from pipelines.models.probe import Finding, ProbeReport
from pipelines.models.providers import EMBEDDED_WEIGHTS, PROVIDERS, ModelSpec

_SECONDS = ("reachable", "streaming")
_REPLIES = ("english", "chinese", "format", "schema", "prefill", "instructions")
_LONGEST_REPLY = 120
_SHORT_COMMIT = 7


def kind_label(kind: str, t: Catalogue) -> str:
    """Return what a kind of model is called; the provider's own label where there is no
    translation.
    """
    if not t.has(f"models.kind.{kind}") and kind in PROVIDERS:
        return PROVIDERS[kind].label
    return t(f"models.kind.{kind}")


def model_address(spec: ModelSpec) -> str:
    """Return the id, file or folder of a model; "" for one that comes with the application, whose
    name says it all.
    """
    own = spec.kind == "judge" or spec.model == EMBEDDED_WEIGHTS
    return "" if own else spec.model


def model_facts(spec: ModelSpec, can: Capabilities, t: Catalogue) -> str:
    """Return name, kind, address and assumed abilities in a few lines."""
    languages = t("list.separator").join(
        t(f"language.{code}") for code in ("en", "zh") if code in can.languages
    )
    where = " · ".join(filter(None, (model_address(spec), spec.base_url, *_reading(spec, t))))
    probabilities = "models.probabilities.yes" if can.logprobs else "models.probabilities.no"
    abilities = probabilities if can.writes else "models.judges_only"
    unmeasured = spec.kind == "judge" and "zh" in (spec.languages or ())
    title = [tag("bdi.vs-strong", spec.name), tag("span.vs-chip", kind_label(spec.kind, t))]
    spoken = t("models.capability.languages") + t("label.separator") + (languages or "–")
    can_do = [spoken, " · ", t(abilities)]
    return tag(
        "div.vs-model",
        tag("p.vs-chips.vs-model-name", title),
        where and tag("p.vs-note", where),
        tag("p.vs-note", can_do),
        _concessions(can.concessions, t),
        _open_checks(spec, t),
        can.writes and not can.judges and tag("p.vs-note", t("models.weak_judge")),
        spec.price and tag("p.vs-note", price_words(spec.price, t)),
        unmeasured and tag("p.vs-note", t("models.quality.english")),
    )


def concession_words(concessions: Sequence[str], t: Catalogue) -> str:
    """Return what is done differently for a model, because its server takes it no other way."""
    said = (phrase_in(phrase(f"concession.{one}"), t.language) for one in concessions)
    return ("；" if t.language == "zh" else "; ").join(said)


def _concessions(concessions: Sequence[str], t: Catalogue) -> Html | None:
    if not concessions:
        return None
    words = t("models.concessions", list=concession_words(concessions, t))
    return tag("p.vs-note", words, key="concessions")


def _open_checks(spec: ModelSpec, t: Catalogue) -> Html | None:
    """Return what a check could not find out yet, so that the model is used as its kind
    usually is.
    """
    if not spec.unknown:
        return None
    named = t("list.separator").join(t(f"probe.{key}") for key in spec.unknown)
    return tag("p.vs-note", t("models.unknown", list=named), key="unknown")


def _reading(spec: ModelSpec, t: Catalogue) -> list[str]:
    """Return the commit of a judge of the hub, and how it is read."""
    words: list[str] = []
    if spec.revision:
        words.append(t("models.revision", commit=spec.revision[:_SHORT_COMMIT]))
    if spec.judge_format:
        words.append(t(f"models.judge.format.{spec.judge_format}"))
    return words


def probe_table(report: ProbeReport, t: Catalogue) -> str:
    """Return every finding as a row: what was tried, whether it works, and what that means."""
    rows = []
    for finding in report.findings:
        worked = t(
            "probe.unknown" if finding.ok is None else "probe.yes" if finding.ok else "probe.no"
        )
        status = "waiting" if finding.ok is None else "done" if finding.ok else "failed"
        badge = status_badge(status, t, worked)
        rows.append(TableRow(finding.key, (t(f"probe.{finding.key}"), badge, _meaning(finding, t))))
    names = [t(f"probe.column.{name}") for name in ("check", "result", "meaning")]
    return table(t("probe.caption"), names, rows, key="probe")


def _meaning(finding: Finding, t: Catalogue) -> Html:
    if finding.ok is None:
        return tag("div", tag("p", t("probe.not_found_out")), tag("p.vs-note", finding.note))
    outcome = "ok" if finding.ok else "fail"
    if finding.key == "logprobs" and finding.ok:
        outcome = "full" if finding.value is None else "top"
    value = finding.value
    if finding.key == "concessions":
        value = concession_words(str(value).split(), t)
    if finding.key in _SECONDS and isinstance(value, int | float):
        worded = duration(float(value), t)
    else:
        worded = str(value)
    parts: list[Child] = [tag("p", t(f"probe.{finding.key}.{outcome}", value=worded))]
    if finding.key in _REPLIES and isinstance(value, str) and value:
        reply = visible(value if len(value) <= _LONGEST_REPLY else value[:_LONGEST_REPLY] + "…")
        parts.append(tag("p.vs-note", t("probe.reply", text=reply), dir="auto"))
    elif not finding.ok and finding.note:
        parts.append(tag("p.vs-note", finding.note))
    return tag("div", parts)


_SHOWN = ("biographies", "stances", "answers")
"""Suites whose reliability is drawn."""

_SYMBOLS = ("circle", "diamond", "square")


def _measured(name: str) -> dict[str, Any]:
    return calibration("judges").get("quality", {}).get(name, {})


def judge_quality(name: str, t: Catalogue) -> Html | None:
    """Return what was measured of the judge called `name`; None for one that was never measured."""
    measured = _measured(name)
    if not measured:
        return None
    sentences, answers = measured["biographies"], measured["answers_same_kind"]
    base = max(sentences["supported"], 1 - sentences["supported"])
    words = t(
        "models.quality",
        right=integer(sentences["right"]),
        count=integer(sentences["examples"]),
        base=integer(round(base * sentences["examples"])),
        sentences=two_digits(sentences["auroc"]),
        answers=two_digits(answers["auroc"]),
    )
    return tag("p.vs-note", words, key="quality")


def judge_report(name: str, t: Catalogue) -> str:
    """Return every suite the judge was measured on as a row; empty for one that was never
    measured.
    """
    measured = _measured(name)
    if not measured:
        return ""
    numbers = ("examples", "auroc", "ece", "macro_f1")
    columns = [t("judged.column.suite")]
    columns += [Column(t(f"judged.column.{name}"), "vs-num") for name in numbers]
    rows: list[TableRow] = []
    for suite, found in measured.items():
        shares = (found.get(name) for name in numbers[1:])
        cells = ["–" if share is None else two_digits(share) for share in shares]
        rows.append(
            TableRow(suite, [t(f"judged.suite.{suite}"), integer(found["examples"]), *cells])
        )
    suites = table(t("judged.caption", name=name), columns, rows)
    return tag("div.vs-stack", suites, tag("p.vs-note", t("judged.note")))


def reliability_figure(name: str, t: Catalogue, theme: Theme = "light") -> go.Figure:
    """Return what share of statements holds, against the probability that the judge gave them.

    A calibrated judge lies on the diagonal. A point is a tenth of the scale;
    the larger, the more statements.
    """
    colour = tokens(theme)
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": colour["ink-3"], "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    measured = _measured(name)
    shades = (colour["accent"], colour["ink-2"], colour["undecided"])
    for suite, symbol, shade in zip(_SHOWN, _SYMBOLS, shades, strict=True):
        points = measured.get(suite, {}).get("reliability", [])
        total = sum(count for *_, count in points)
        figure.add_scatter(
            x=[said for said, _, _ in points],
            y=[true for _, true, _ in points],
            mode="lines+markers",
            name=t(f"judged.suite.{suite}"),
            customdata=[integer(count) for *_, count in points],
            hovertemplate="P %{x:.2f} · %{y:.2f} · n = %{customdata}<extra></extra>",
            line={"color": shade, "width": 1},
            marker={
                "symbol": symbol,
                "color": shade,
                "size": [7 + 15 * (count / total) ** 0.5 for *_, count in points],
            },
        )
    figure.update_layout(template=plotly_template(theme), height=380)
    figure.update_xaxes(title_text=t("judged.said"), range=[-0.03, 1.03])
    figure.update_yaxes(title_text=t("judged.true"), range=[-0.03, 1.03])
    return figure


# Models that can be downloaded: what each one is, how far its download is, and all as a list.


def gigabytes(size: float) -> str:
    """Return a number of bytes to two digits, such as "0.64 GB" or "12 GB"."""
    return f"{two_digits(size / 1e9)} GB"


def entry_facts(entry: CatalogueEntry, speed: str, t: Catalogue) -> str:
    """Return what a model is, what it takes, and how fast it will be, as `speed_words` words it."""
    size = "catalogue.size.approximate" if entry.approximate else "catalogue.size"
    takes = (
        t(size, size=gigabytes(entry.size)),
        t("catalogue.memory", size=gigabytes(entry.memory * 1e9)),
        t("catalogue.parameters", count=f"{entry.parameters:g}"),
    )
    terms = (_languages(entry, t), t("catalogue.licence", name=entry.licence))
    name = (tag("bdi.vs-strong", entry.name), tag("span.vs-chip", entry.family))
    return tag(
        "div.vs-model",
        tag("p.vs-chips.vs-entry-name", name),
        tag("p", t(f"catalogue.note.{entry.note}")),
        tag("p.vs-note", " · ".join(takes)),
        tag("p.vs-note", " · ".join(terms)),
        tag("p.vs-note", speed, key="speed") if speed else None,
    )


def missing_words(left: Sequence[Download], t: Catalogue) -> str:
    """Return which weights of the default are not on this machine, and how large they are."""
    names = t("list.separator").join(one.name for one in left)
    return t("catalogue.missing", list=names, size=gigabytes(sum(one.size for one in left)))


def speed_words(tokens: float | None, t: Catalogue, *, measuring: bool) -> str:
    """Return how many tokens a second a model will probably write, None where that is not known."""
    if tokens is None:
        return t("catalogue.speed.measuring" if measuring else "catalogue.speed.unknown")
    # No more digits than are known.
    return t("catalogue.speed", value=two_digits(tokens, 2 if tokens >= 9.5 else 1))


def download_progress(state: DownloadState, t: Catalogue) -> Html:
    """Return how far a download is. What changes has its own place, so that nothing moves."""
    shown = {"paused": "waiting", "failed": "failed", "done": "done"}.get(state.stage, "running")
    badge = status_badge(shown, t, t(f"catalogue.stage.{state.stage}"))  # type: ignore[arg-type]
    if state.stage == "done":
        return tag("div.vs-download", badge, key="download")
    known = state.total > 0 and state.stage != "asking"
    bar = tag(
        "progress",
        max="1",
        value=f"{state.fraction:.4f}" if known else None,
        aria_label=t(f"catalogue.stage.{state.stage}"),
    )
    numbers: list[Child] = []
    if known:
        sizes = {"done": in_gigabytes(state.done), "total": in_gigabytes(state.total)}
        numbers.append(tag("span", t("catalogue.progress", **sizes), key="sizes"))
    if state.stage == "running":
        # They have their place from the beginning.
        rate = left = "…"
        if state.speed:
            rate = t("catalogue.rate", size=_megabytes(state.speed))
            left = t("catalogue.left", value=duration(max(1.0, state.seconds_left or 0.0), t))
        numbers += [tag("span", rate, key="rate"), tag("span", left, key="left")]
    return tag(
        "div.vs-download",
        tag("p.vs-download-line", badge, tag("span.vs-download-numbers.vs-num", numbers)),
        bar,
        aria_busy=state.stage in ACTIVE,
        key="download",
    )


def catalogue_table(entries: Iterable[CatalogueEntry], t: Catalogue) -> Html:
    """Return the models as a list, for a page on which they cannot be downloaded."""
    names = ("model", "size", "memory", "languages", "licence")
    numbers = {"size", "memory"}
    columns = [
        Column(t(f"catalogue.column.{name}"), "vs-num" if name in numbers else None)
        for name in names
    ]
    rows = (
        TableRow(
            entry.name,
            (
                tag("bdi.vs-strong", entry.name),
                gigabytes(entry.size),
                gigabytes(entry.memory * 1e9),
                _languages(entry, t),
                entry.licence,
            ),
        )
        for entry in entries
    )
    return table(t("catalogue.caption"), columns, rows, key="catalogue")


def _languages(entry: CatalogueEntry, t: Catalogue) -> str:
    return t("list.separator").join(t(f"language.{code}") for code in entry.languages)


def _megabytes(size: float) -> str:
    return f"{two_digits(size / 1e6)} MB"
