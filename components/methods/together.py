"""The one verdict of several detectors: a badge, its probability, why, and what it rests on.

Pure functions, for Check, for the head of Ask, for the Space and for reports.
"""

from __future__ import annotations

from components.base.elements import fold, verdict_badge
from components.base.html import Child, Html, tag
from components.base.words import Catalogue, integer, method_names
from pipelines.methods.limits import Limit
from pipelines.methods.together.verdict import TogetherFound


def together_head(found: TogetherFound, t: Catalogue, key: str = "together") -> Html:
    """Return the verdict on a whole text, with everything that it rests on."""
    return tag(
        "div.vs-together.vs-card.vs-padded",
        tag("p.vs-together-verdict", _badge(found, t), " ", tag("span", found.line(t.language))),
        _evidence(found, t),
        fold(t("together.how_good"), tag("p.vs-note", _basis(found, t)))
        if found.judges or found.measured
        else None,
        key=key,
    )


def together_cell(found: TogetherFound, t: Catalogue) -> Html:
    """Return the verdict on a sentence, for a cell of a table: with why, without the evidence."""
    return tag(
        "span.vs-check-found",
        _badge(found, t),
        tag("span.vs-note", found.line(t.language)) if found.why else None,
    )


def limit_note(limit: Limit, t: Catalogue) -> str:
    """Return what a detector's threshold was fitted for, and how good it is on other statements."""
    measured = limit.reported
    return t(
        "together.limit",
        use=t(f"together.use.{limit.use}"),
        count=integer(measured.statements),
        false=_percent(measured.false_supported),
        doubted=_percent(measured.true_doubted),
    )


def _badge(found: TogetherFound, t: Catalogue) -> Html:
    words = t(f"verdict.{found.verdict}")
    if found.probability is not None:
        words = t("together.probability", verdict=words, value=_percent(found.probability))
    return verdict_badge(found.verdict, t, words)


def evidence_label(found: TogetherFound, t: Catalogue) -> str:
    """Return what the evidence shown is called: only what was decided rests on it."""
    decided = found.evidence and found.verdict in ("supported", "contradicted")
    return t("together.rests" if decided else "check.nearest")


def _evidence(found: TogetherFound, t: Catalogue) -> Child:
    if not found.evidence:
        return None
    return tag(
        "p.vs-check-evidence",
        tag("span.vs-label", evidence_label(found, t)),
        " ",
        tag("q", found.evidence, dir="auto"),
        tag("span.vs-note", f" {found.title}") if found.title else None,
    )


def _basis(found: TogetherFound, t: Catalogue) -> str:
    """Return who spoke, and how good the combination is."""
    said = [t("together.judges", list=method_names(found.judges, t))] if found.judges else []
    if found.measured is not None:
        use = "library" if found.nearest else found.use
        key = "together.nearest" if found.nearest else "together.measured"
        figures = {
            "count": integer(found.measured.statements),
            "right": _percent(found.measured.accuracy),
            "false": _percent(found.measured.false_supported),
        }
        said.append(t(key, use=t(f"together.use.{use}"), **figures))
    return t("sentence.separator").join(said)


def _percent(value: float) -> str:
    return f"{value:.0%}"
