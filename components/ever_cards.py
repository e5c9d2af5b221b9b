"""One sentence of an EVER run as a card: every check of it, its facts, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.elements import VERDICT_SIGNS, notice, score_line, verdict_badge
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.run_view import supporting
from pipelines.run.events import Judged, Verdict
from pipelines.run.findings import ConceptsListed, ConceptVerified, SentenceVerified
from pipelines.run.view import MethodView, StepView
from pipelines.types import Language, Passage

__all__ = ["CheckedSentence", "SentenceCards", "sentences_of"]

_WORK = ("extract", "statement", "verify", "rectify", "candidates")
"""Steps named in the card of the sentence they work on; the innermost one under way is shown."""


@dataclass(frozen=True)
class Check:
    """One check of a sentence: its concepts as listed, and by place those that have a verdict."""

    listed: ConceptsListed
    concepts: dict[tuple[int, int], Judged] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence, or an item of a short answer, so far; `end` is None until it is verified."""

    index: int
    checks: tuple[Check, ...]
    end: Judged | None = None

    @property
    def ended(self) -> SentenceVerified | None:
        """How it ended; None while it is being verified."""
        detail = self.end.detail if self.end is not None else None
        return detail if isinstance(detail, SentenceVerified) else None

    @property
    def partly(self) -> bool:
        """Whether nothing but the limit on facts leaves it unchecked."""
        last = self.checks[-1]
        verdicts = {event.verdict for event in last.concepts.values()}
        return last.listed.left_out > 0 and verdicts <= {"supported"}

    @property
    def kept_in_doubt(self) -> bool:
        """Whether it stays in the text although not all of it is supported."""
        nothing = self.checks[-1].listed.listed == "none"
        return self.end is not None and self.end.verdict != "supported" and not nothing


def sentences_of(judged: Iterable[Judged]) -> list[CheckedSentence]:
    """The sentences in order, as far as a run has come."""
    found: dict[int, CheckedSentence] = {}
    for event in judged:
        if event.sentence is None:
            continue
        known = found.get(event.sentence, CheckedSentence(event.sentence, ()))
        match event.detail:
            case ConceptsListed() as listed:
                known = replace(known, checks=(*known.checks, Check(listed)))
            case ConceptVerified(round=number, at=place) if number < len(known.checks):
                # Verdicts come in the order in which they are known.
                known.checks[number].concepts[place] = event
            case SentenceVerified():
                known = replace(known, end=event)
            case _:
                continue
        found[event.sentence] = known
    return [found[index] for index in sorted(found) if found[index].checks]


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

    def card(self, sentence: CheckedSentence) -> Html:
        """A sentence from its draft to what it came to be."""
        number = sentence.index
        title = tag("h3", self.title(number), class_="vs-ever-title")
        badge = None
        if sentence.end is not None:
            badge = verdict_badge(sentence.end.verdict, self.t, self._status(sentence))
        parts: list[Child] = [tag("header", title, badge, class_="vs-ever-head")]
        before = ""
        for check in sentence.checks:
            parts.append(self._check(sentence, check, before))
            before = check.listed.text
        parts += [self._working(number), *self._end(sentence)]
        return self._article(number, parts, busy=sentence.end is None)

    def opening(self, index: int, text: str, step: StepView) -> Html:
        """A sentence whose facts are not known yet: being written, or just written by `step`."""
        title = tag("h3", self.title(index), class_="vs-ever-title")
        body = (
            tag("p", shown(text), class_="vs-answer", dir="auto", data_key="text")
            if text
            else tag("span", class_="vs-reserved", aria_hidden="true", data_key="text")
        )
        current = self._under_way(index) or step
        words = self.t("ever.not_reached" if self.over else f"step.{current.name}")
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

    def _status(self, sentence: CheckedSentence) -> str:
        """How the sentence ended, in words."""
        last = sentence.checks[-1].listed
        verdict = sentence.end.verdict if sentence.end is not None else "unchecked"
        if sentence.ended is not None and sentence.ended.dropped:
            return self.t("ever.status.dropped")
        if last.listed == "none":
            return self.t("ever.status.nothing")
        if sentence.partly:
            return self.t("ever.status.partly")
        if verdict == "supported" and last.attempt != "draft":
            return self.t(f"ever.status.{last.attempt}")
        return self.t(f"ever.status.{verdict}")

    def _check(self, sentence: CheckedSentence, check: Check, before: str) -> Html:
        t, listed = self.t, check.listed
        key = f"look-{sentence.index}-{listed.round}"
        # The number of this correction, or of this other answer.
        alike = [one for one in sentence.checks if one.listed.attempt == listed.attempt]
        label = t(f"ever.look.{listed.attempt}", round=alike.index(check) + 1)
        parts: list[Child] = [tag("h4", label, class_="vs-label")]
        if before:
            parts.append(diff_html(before, listed.text, self.language, t))
        parts.append(self._text(check))
        if listed.listed != "read":
            parts.append(tag("p", t(f"ever.listed.{listed.listed}"), class_="vs-flag"))
        if listed.left_out:
            parts.append(tag("p", t("ever.left_out", count=listed.left_out), class_="vs-flag"))
        chips = [self._concept(sentence.index, check, place) for place in listed.places]
        if chips:
            parts.append(tag("ul", chips, class_="vs-ever-concepts", data_key=f"{key}-concepts"))
        return tag("div", parts, class_="vs-ever-look", data_key=key)

    def _text(self, check: Check) -> Html:
        """The text with its concepts underlined, each with its verdict's sign."""
        text = check.listed.text
        parts: list[Child] = []
        position = 0
        for start, end in check.listed.places:
            if start < position:
                # A concept that overlaps the one before it has its chip below all the same.
                continue
            parts.append(shown(text[position:start]))
            event = check.concepts.get((start, end))
            name = f" {_class_of(event.verdict)}" if event else ""
            sign = VERDICT_SIGNS[event.verdict] if event else ""
            parts.append(
                tag(
                    "span",
                    shown(text[start:end]),
                    tag("span", sign, class_="vs-sign", aria_hidden="true") if sign else None,
                    class_=f"vs-judged vs-ever-concept{name}",
                )
            )
            position = end
        parts.append(shown(text[position:]))
        return tag("p", parts, class_="vs-answer vs-ever-text", dir="auto", data_key="text")

    def _concept(self, sentence: int, check: Check, place: tuple[int, int]) -> Html:
        start, end = place
        key = f"concept-{sentence}-{check.listed.round}-{start}"
        name = tag("bdi", shown(check.listed.text[start:end]), class_="vs-strong")
        event = check.concepts.get(place)
        if event is None or not isinstance(event.detail, ConceptVerified):
            words = self.t("ever.not_reached" if self.over else "ever.checking")
            waiting = tag("span", words, class_="vs-note vs-ever-working")
            busy = None if self.over else "true"
            return tag("li", name, waiting, class_="vs-ever-chip", aria_busy=busy, data_key=key)
        return tag(
            "li",
            tag(
                "details",
                tag("summary", name, verdict_badge(event.verdict, self.t)),
                self._reasons(event, event.detail, key),
                class_="vs-ever-details",
                data_key=key,
            ),
            class_=f"vs-ever-chip {_class_of(event.verdict)}",
            data_key=f"{key}-chip",
        )

    def _reasons(self, event: Judged, found: ConceptVerified, key: str) -> Html:
        """What was asked about a concept, and what its verdict rests on."""
        t = self.t
        parts: list[Child] = [self._part("ever.question", shown(found.question))]
        if found.fallback:
            parts.append(tag("p", t("ever.fallback"), class_="vs-note"))
        if found.claim and found.claim != found.question:
            parts.append(self._part("ever.claim", shown(found.claim)))
        if found.reused:
            parts.append(tag("p", t("ever.reused"), class_="vs-note"))
        if found.reason:
            silent = found.by and found.reason == "unreadable"
            words = t("ever.no_verdict") if silent else t(f"ever.reason.{found.reason}")
            parts.append(tag("p", words, class_="vs-flag"))
        if found.incomplete:
            parts.append(tag("p", t("flag.search_incomplete"), class_="vs-flag"))
        if found.reasoning:
            name = "ever.reasoning" if found.evidence else "ever.recalled"
            parts.append(self._part(name, shown(found.reasoning)))
        passages = self._passages(event, found)
        if passages:
            near = f"{found.claim or found.question} {found.reasoning}"
            items = [EvidenceItem(one, marks=supporting(one.text, near)) for one in passages]
            title = tag("p", t("evidence.title"), class_="vs-label")
            listed = evidence(items, t, id=f"{key}-evidence")
            parts.append(tag("div", title, listed, class_="vs-part"))
        parts += [score_line(score, t) for score in event.scores]
        if self.over:
            calls = calls_within(self.method, (event.span, found.reused))
            parts.append(call_list(calls, t, id=f"{key}-calls"))
        return tag("div", parts, class_="vs-ever-reasons")

    def _passages(self, event: Judged, found: ConceptVerified) -> list[Passage]:
        searches = (s for s in self.method.searches if s.span == (found.reused or event.span))
        known = {passage.id: passage for search in searches for passage in search.passages}
        return [known[one] for one in found.evidence if one in known]

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
        words = self.t(f"step.{step.name}")
        return tag("p", words, class_="vs-note vs-ever-working", data_key="working")

    def _under_way(self, index: int) -> StepView | None:
        steps = (
            step
            for step in reversed(self.method.steps)
            if step.outcome is None and step.name in _WORK and step.at.sentence == index
        )
        return next(steps, None)

    def _end(self, sentence: CheckedSentence) -> list[Child]:
        """What is left of doubt when the sentence has been verified."""
        ended, end = sentence.ended, sentence.end
        if ended is None or end is None:
            return []
        key = ""
        if ended.dropped:
            key = "ever.end.dropped"
        elif end.verdict in ("contradicted", "not_enough"):
            key = f"ever.end.{end.verdict}.{ended.stopped}"
            key = key if self.t.has(key) else f"ever.end.{end.verdict}"
        elif end.verdict == "unchecked" and sentence.checks[-1].listed.listed != "none":
            key = "ever.end.partly" if sentence.partly else "ever.end.unchecked"
        parts: list[Child] = [notice(self.t(key), "end")] if key else []
        if ended.stopped == "unusable" and self.over:
            # What could not be used is to be seen with the call that it came from.
            tries = [s.span for s in self.method.steps if _rectifies(s, sentence.index)]
            calls = calls_within(self.method, tries[-1:])
            parts.append(call_list(calls, self.t, id=f"unusable-{sentence.index}"))
        return parts


def _rectifies(step: StepView, sentence: int) -> bool:
    return step.name == "rectify" and step.at.sentence == sentence


def _class_of(verdict: Verdict) -> str:
    return f"vs-verdict-{verdict.replace('_', '-')}"
