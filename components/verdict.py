"""Verdicts and states as badges: a colour, and a sign and words that say the same without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from components.markup import Child, Html, tag
from components.messages import Catalogue
from pipelines.run.events import Verdict

__all__ = [
    "SEVERITY",
    "STATUS_SIGNS",
    "VERDICT_SIGNS",
    "Status",
    "distinct",
    "status_badge",
    "verdict_badge",
]

Status = Literal["waiting", "running", "done", "failed", "cancelled", "unsupported"]

VERDICT_SIGNS: dict[Verdict, str] = {
    "supported": "✓",
    "contradicted": "✗",
    "not_enough": "?",
    "doubtful": "!",
    "confident": "•",
    "unchecked": "–",
}
"""The second cue of each verdict. "Confident" has no verdict's colour: a model that is sure of
itself has not been checked against anything."""

SEVERITY: tuple[Verdict, ...] = (
    "unchecked",
    "confident",
    "supported",
    "not_enough",
    "doubtful",
    "contradicted",
)
"""The verdicts, the worst last."""

STATUS_SIGNS: dict[Status, str] = {
    "waiting": "·",
    "running": "",
    "done": "✓",
    "failed": "✗",
    "cancelled": "■",
    "unsupported": "–",
}


def verdict_badge(verdict: Verdict, t: Catalogue, label: str | None = None) -> Html:
    """The verdict as a badge; `label` replaces its usual wording."""
    return _badge("verdict", verdict, VERDICT_SIGNS[verdict], label or t(f"verdict.{verdict}"))


def status_badge(status: Status, t: Catalogue, label: str | None = None) -> Html:
    """How far something is, as a badge; what runs carries a quiet pulse instead of a sign."""
    return _badge("status", status, STATUS_SIGNS[status], label or t(f"status.{status}"))


def distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The different verdicts among `verdicts`, always in the same order."""
    present = set(verdicts)
    return [verdict for verdict in VERDICT_SIGNS if verdict in present]


def _badge(kind: str, value: str, sign: str, label: Child) -> Html:
    return tag(
        "span",
        tag("span", sign, class_="vs-sign", aria_hidden="true"),
        tag("span", label),
        class_=f"vs-badge vs-{kind}-{value.replace('_', '-')}",
    )
