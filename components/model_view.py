"""What a model is and what a check of it found, as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from components.judge_quality import judge_quality
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.numbers import duration
from pipelines.models.base import Capabilities
from pipelines.models.probe import Finding, ProbeReport
from pipelines.run.spec import BUILT_IN, ModelSpec

__all__ = ["model_facts", "probe_table"]

_SECONDS = ("reachable", "streaming")
_REPLIES = ("english", "chinese", "format", "schema", "prefill")
_LONGEST_REPLY = 120


def model_facts(spec: ModelSpec, can: Capabilities, t: Catalogue) -> str:
    """Name, kind, address and assumed abilities in a few lines."""
    languages = t("list.separator").join(
        t(f"language.{code}") for code in ("en", "zh") if code in can.languages
    )
    where = " · ".join(filter(None, (spec.model, spec.base_url)))
    return tag(
        "div",
        tag(
            "p",
            tag("bdi", shown(spec.name), class_="vs-strong"),
            tag("span", t(f"models.kind.{spec.kind}"), class_="vs-chip"),
            class_="vs-chips vs-model-name",
        ),
        tag("p", shown(where), class_="vs-note") if where else None,
        tag(
            "p",
            t("models.capability.languages"),
            ": ",
            languages or "–",
            " · ",
            t(_abilities(can)),
            class_="vs-note",
        ),
        judge_quality(spec.name, t) if spec in BUILT_IN else None,
        _unmeasured(spec, t),
        class_="vs-model",
    )


def _unmeasured(spec: ModelSpec, t: Catalogue) -> Html | None:
    if spec.kind != "judge" or "zh" not in (spec.languages or ()):
        return None
    return tag("p", t("models.quality.english"), class_="vs-note")


def _abilities(can: Capabilities) -> str:
    if not can.writes:
        return "models.judges_only"
    return "models.probabilities.yes" if can.logprobs else "models.probabilities.no"


def probe_table(report: ProbeReport, t: Catalogue) -> str:
    """Every finding as a row: what was tried, whether it works, and what that means."""
    names = [t(f"probe.column.{name}") for name in ("check", "result", "meaning")]
    head = tag(
        "tr", (tag("th", name, scope="col", role="columnheader") for name in names), role="row"
    )
    rows = (_row(finding, names, t) for finding in report.findings)
    return tag(
        "table",
        tag("caption", t("probe.caption"), class_="vs-sr"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="vs-table",
        role="table",
        data_key="probe",
    )


def _row(finding: Finding, names: Sequence[str], t: Catalogue) -> Html:
    status = "done" if finding.ok else "failed"
    badge = tag(
        "span",
        tag("span", "✓" if finding.ok else "✗", class_="vs-sign", aria_hidden="true"),
        tag("span", t("probe.yes" if finding.ok else "probe.no")),
        class_=f"vs-badge vs-status-{status}",
    )
    cells: tuple[Child, ...] = (t(f"probe.{finding.key}"), badge, _meaning(finding, t))
    return tag(
        "tr",
        (
            tag("td", cell, role="cell", data_label=name)
            for cell, name in zip(cells, names, strict=True)
        ),
        role="row",
        data_key=finding.key,
    )


def _meaning(finding: Finding, t: Catalogue) -> Html:
    outcome = "ok" if finding.ok else "fail"
    if finding.key == "logprobs" and finding.ok:
        outcome = "full" if finding.value is None else "top"
    value = finding.value
    if finding.key in _SECONDS and isinstance(value, int | float):
        worded = duration(float(value), t)
    else:
        worded = str(value)
    parts: list[Child] = [tag("p", t(f"probe.{finding.key}.{outcome}", value=worded))]
    if finding.key in _REPLIES and isinstance(value, str) and value:
        reply = visible(value if len(value) <= _LONGEST_REPLY else value[:_LONGEST_REPLY] + "…")
        parts.append(tag("p", t("probe.reply", text=reply), class_="vs-note", dir="auto"))
    elif not finding.ok and finding.note:
        parts.append(tag("p", shown(finding.note), class_="vs-note"))
    return tag("div", parts)
