"""One sentence of an EVER run as a card: its looks, its concepts, what was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.run_view import supporting
from components.scores import score_line
from components.sections import notice
from components.verdict import VERDICT_SIGNS, verdict_badge
from pipelines.methods.ever.record import Check, ConceptCheck, SentenceRecord
from pipelines.run.events import Judged, Verdict
from pipelines.run.view import MethodView, StepView
from pipelines.types import Language, Passage

__all__ = ["SentenceCards"]

_WORK = ("extract", "statement", "verify", "rectify", "candidates")
"""Steps named in the card of the sentence they work on; the innermost one under way is shown."""


@dataclass(frozen=True)
class SentenceCards:
    """Draws the sentences of a run, or its short answers (`kind` "item"). `over`: all is done.

    The calls behind a verdict are listed once the run is over.
    """

    method: MethodView
    language: Language
    t: Catalogue
    over: bool
    kind: Literal["sentence", "item"] = "sentence"

    def card(self, record: SentenceRecord) -> Html:
        """A sentence from its draft to how it was settled."""
        number = record.index
        parts: list[Child] = [self._head(record)]
        before: Check | None = None
        for look in record.checks:
            parts.append(self._look(record, look, before))
            before = look
        parts.append(self._working(number))
        parts.append(self._end(record))
        return self._article(number, parts, busy=record.verdict is None)

    def opening(self, index: int, text: str, step: StepView) -> Html:
        """A sentence whose concepts are not known yet: being written, or just written by `step`."""
        title = tag("h3", self.title(index), class_="vs-ever-title")
        body = (
            tag("p", shown(text), class_="vs-answer", dir="auto", data_key="text")
            if text
            else tag("span", class_="vs-reserved", aria_hidden="true", data_key="text")
        )
        current = self._under_way(index) or step
        words = self.t("ever.not_reached" if self.over else f"step.{current.step}")
        note = tag("p", words, class_="vs-note vs-ever-working", data_key="working")
        return self._article(index, [title, body, note], busy=True)

    def title(self, index: int) -> str:
        """What the card is called, counted from 1."""
        return self.t(f"ever.{self.kind}", number=index + 1)

    def _article(self, index: int, parts: Sequence[Child], *, busy: bool) -> Html:
        return tag(
            "li",
            tag("article", parts, class_="vs-card vs-padded vs-ever-card"),
            aria_busy="true" if busy and not self.over else None,
            class_="vs-ever-item",
            data_key=f"sentence-{index}",
        )

    def _head(self, record: SentenceRecord) -> Html:
        t = self.t
        badge = None
        if record.verdict is not None:
            badge = verdict_badge(record.verdict, t, self._status(record))
        return tag(
            "header",
            tag("h3", self.title(record.index), class_="vs-ever-title"),
            badge,
            class_="vs-ever-head",
        )

    def _status(self, record: SentenceRecord) -> str:
        """How the sentence was settled, in words."""
        if record.dropped:
            return self.t("ever.status.dropped")
        look = record.checks[-1]
        if look.listed == "none":
            return self.t("ever.status.nothing")
        if look.verdict == "supported" and look.attempt != "draft":
            return self.t(f"ever.status.{look.attempt}")
        return self.t(f"ever.status.{look.verdict}")

    def _look(self, record: SentenceRecord, look: Check, before: Check | None) -> Html:
        t = self.t
        key = f"look-{record.index}-{look.round}"
        label = t(f"ever.look.{look.attempt}", round=self._rounds(record, look))
        parts: list[Child] = [tag("h4", label, class_="vs-label")]
        if before is not None:
            parts.append(diff_html(before.text, look.text, self.language, t))
        parts.append(self._text(look))
        if look.listed != "read":
            parts.append(tag("p", t(f"ever.listed.{look.listed}"), class_="vs-flag"))
        if look.left_out:
            parts.append(tag("p", t("ever.left_out", count=look.left_out), class_="vs-flag"))
        found = {(concept.start, concept.end): concept for concept in look.concepts}
        chips = [
            self._concept(record.index, look, place, found.get(place)) for place in look.places
        ]
        if chips:
            parts.append(tag("ul", chips, class_="vs-ever-concepts", data_key=f"{key}-concepts"))
        return tag("div", parts, class_="vs-ever-look", data_key=key)

    def _rounds(self, record: SentenceRecord, look: Check) -> int:
        """The number of this rectification, or of this other answer."""
        alike = [one for one in record.checks if one.attempt == look.attempt]
        return alike.index(look) + 1

    def _text(self, look: Check) -> Html:
        """The text with its concepts underlined, each with its verdict's sign."""
        verdicts: dict[tuple[int, int], Verdict] = {
            (concept.start, concept.end): concept.verdict for concept in look.concepts
        }
        parts: list[Child] = []
        position = 0
        for start, end in look.places:
            if start < position:
                # A concept that overlaps the one before it has its chip below all the same.
                continue
            parts.append(shown(look.text[position:start]))
            verdict = verdicts.get((start, end))
            name = "" if verdict is None else f" vs-verdict-{verdict.replace('_', '-')}"
            sign = None
            if verdict is not None:
                sign = tag("span", VERDICT_SIGNS[verdict], class_="vs-sign", aria_hidden="true")
            parts.append(
                tag(
                    "span",
                    shown(look.text[start:end]),
                    sign,
                    class_=f"vs-judged vs-ever-concept{name}",
                )
            )
            position = end
        parts.append(shown(look.text[position:]))
        return tag("p", parts, class_="vs-answer vs-ever-text", dir="auto", data_key="text")

    def _concept(
        self, sentence: int, look: Check, place: tuple[int, int], found: ConceptCheck | None
    ) -> Html:
        start, end = place
        key = f"concept-{sentence}-{look.round}-{start}"
        name = tag("bdi", shown(look.text[start:end]), class_="vs-strong")
        if found is None:
            words = self.t("ever.not_reached" if self.over else "ever.checking")
            waiting = tag("span", words, class_="vs-note vs-ever-working")
            busy = None if self.over else "true"
            return tag("li", name, waiting, class_="vs-ever-chip", aria_busy=busy, data_key=key)
        return tag(
            "li",
            tag(
                "details",
                tag("summary", name, verdict_badge(found.verdict, self.t)),
                self._reasons(found, key),
                class_="vs-ever-details",
                data_key=key,
            ),
            class_=f"vs-ever-chip vs-verdict-{found.verdict.replace('_', '-')}",
            data_key=f"{key}-chip",
        )

    def _reasons(self, found: ConceptCheck, key: str) -> Html:
        t = self.t
        parts: list[Child] = [
            self._part("ever.question", shown(found.question)),
            tag("p", t("ever.fallback"), class_="vs-note") if found.fallback else None,
            tag("p", t("ever.reused"), class_="vs-note") if found.reused else None,
        ]
        if found.reason:
            parts.append(tag("p", t(f"ever.reason.{found.reason}"), class_="vs-flag"))
        passages = self._passages(found)
        if found.reasoning:
            name = "ever.reasoning" if found.evidence else "ever.recalled"
            parts.append(self._part(name, shown(found.reasoning)))
        if passages:
            items = [
                EvidenceItem(one, marks=supporting(one.text, f"{found.question} {found.reasoning}"))
                for one in passages
            ]
            title = tag("p", t("evidence.title"), class_="vs-label")
            parts.append(
                tag("div", title, evidence(items, t, id=f"{key}-evidence"), class_="vs-part")
            )
        parts += self._numbers(found, key)
        return tag("div", parts, class_="vs-ever-reasons")

    def _passages(self, found: ConceptCheck) -> list[Passage]:
        searches = (s for s in self.method.searches if s.span == (found.reused or found.span))
        known = {passage.id: passage for search in searches for passage in search.passages}
        return [known[one] for one in found.evidence if one in known]

    def _numbers(self, found: ConceptCheck, key: str) -> list[Child]:
        judged = self._judged(found)
        if judged is None:
            return []
        parts: list[Child] = [score_line(score, self.t) for score in judged.scores]
        if self.over:
            calls = calls_within(self.method, (found.span, found.reused))
            parts.append(call_list(calls, self.t, id=f"{key}-calls"))
        return parts

    def _judged(self, found: ConceptCheck) -> Judged | None:
        return next(
            (e for e in self.method.judged if e.span == found.span and e.what == "concept"), None
        )

    def _part(self, key: str, content: Child) -> Html:
        return tag(
            "div",
            tag("p", self.t(key), class_="vs-label"),
            tag("p", content, class_="vs-answer", dir="auto"),
            class_="vs-part",
        )

    def _working(self, index: int) -> Html | None:
        step = self._under_way(index)
        if step is None or self.over:
            return None
        words = self.t(f"step.{step.step}")
        return tag("p", words, class_="vs-note vs-ever-working", data_key="working")

    def _under_way(self, index: int) -> StepView | None:
        steps = (
            step
            for step in reversed(self.method.steps)
            if step.outcome is None and step.step in _WORK and step.detail.get("sentence") == index
        )
        return next(steps, None)

    def _end(self, record: SentenceRecord) -> Html | None:
        """What is left of doubt when the sentence is settled."""
        if record.verdict is None:
            return None
        key = ""
        if record.dropped:
            key = "ever.end.dropped"
        elif record.verdict in ("contradicted", "not_enough"):
            key = f"ever.end.{record.verdict}.{record.stopped}"
            key = key if self.t.has(key) else f"ever.end.{record.verdict}"
        elif record.verdict == "unchecked" and record.checks[-1].listed != "none":
            key = "ever.end.unchecked"
        return notice(self.t(key), "end") if key else None
