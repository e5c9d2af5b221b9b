"""The part of a page for a method without a view of its own: verdict, text, every judged piece.

It shows what any detector or corrector records: a verdict on the answer with its scores, verdicts
on sentences, entities, questions and knowledge with theirs, the passages that were read for them,
the change, and the calls behind each number.
"""

from __future__ import annotations

from dataclasses import dataclass

from components.elements import (
    answer_text,
    divergence,
    fold,
    judged_text,
    part,
    verdict_badge,
)
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, tag
from components.messages import Catalogue, named
from components.method_panel import MethodPanel
from components.page import section
from components.unsupported import unsupported_help
from pipelines.run.events import Judged
from pipelines.run.findings import QuestionAnswered
from pipelines.run.view import RunView


def detector_view(
    view: RunView, t: Catalogue, *, method: str, diverges_at: int | None = None
) -> str:
    """Return what `method` found, as far as the run has come."""
    page = _DetectorPanel.of(method, view, t, diverges_at)
    return tag("div.vs-run", page.error(), page.parts(), key=method)


@dataclass(frozen=True)
class _DetectorPanel(MethodPanel):
    """One drawing of the part, from what is recorded so far."""

    def parts(self) -> list[Child]:
        """Return verdict, text, every judged piece and the change, or that there is no answer."""
        t, drafts = self.t, self.method.drafts
        if not drafts:
            words = t("status.waiting") if self.running else t("ask.no_answer")
            return [tag("p.vs-empty", words, key="none")]
        pieces = self.judged("sentence", "entity", "question", "knowledge")
        placed = self.judged("sentence", "entity")
        first = [event for event in placed if event.draft == 0]
        text = judged_text(drafts[0].after, ((e.start, e.end, e.verdict) for e in first), t)
        parts: list[Child] = [
            divergence(self.diverges_at, t),
            section("decision", t("detector.verdict"), *self._verdict()),
            section("answer", t("detector.text"), answer_text(text, "vs-card vs-padded")),
        ]
        if pieces:
            rows = tag("ol.vs-stack", map(self._piece, pieces))
            words = unsupported_help(t, "unsupported") if self.any_unsupported else None
            parts.append(section("pieces", t("detector.pieces"), rows, words))
        if len(drafts) > 1:
            change = tag("div.vs-card", self.sides(drafts[0].after, drafts[-1].after))
            parts.append(section("change", t("ask.corrected"), change))
        return parts

    def _verdict(self) -> list[Child]:
        t, name = self.t, self.method.name
        flags = self.flags(f"{name}-flags")
        if self.verdict is None:
            note = "status.running" if self.running else "verdict.none"
            return [tag("p.vs-note", t(note)), flags]
        badge = tag("p", verdict_badge(self.verdict.verdict, t), key=f"{name}-verdict")
        lines = (self.score_line(self.verdict, score) for score in self.verdict.scores)
        return [badge, *lines, flags]

    def _piece(self, event: Judged) -> Html:
        t, label = self.t, event.label
        name = tag(
            "p.vs-chips",
            tag("bdi", self.with_unsupported(event.text, event)),
            tag("span.vs-chip", named("entity.label", label, t)) if label else None,
            verdict_badge(event.verdict, t),
        )
        lines = (self.score_line(event, score) for score in event.scores)
        found = self._found(event)
        return tag("li.vs-card.vs-padded", name, found, lines, key=f"piece-{event.seq}")

    def _found(self, event: Judged) -> list[Child]:
        """Return what a question came to: the answer to it, and the passages that were read."""
        detail, t = event.detail, self.t
        if not isinstance(detail, QuestionAnswered):
            return []
        read = [self.passages[one] for one in detail.passages if one in self.passages]
        listed = evidence([EvidenceItem(one) for one in read], t, id=f"read-{event.seq}")
        return [
            detail.answer and part(t("detector.said"), answer_text(detail.answer)),
            bool(read) and fold(t("evidence.title"), listed),
        ]
