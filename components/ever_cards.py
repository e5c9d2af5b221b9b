"""One sentence of an EVER run as a card: every check of it, its facts, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.elements import (
    VERDICT_SIGNS,
    answer_text,
    marked_text,
    notice,
    reserved,
    score_line,
    sign,
    verdict_badge,
    verdict_class,
)
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, tag
from components.messages import Catalogue
from components.run_view import supporting
from pipelines.run.events import Judged
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
        end, befores = sentence.end, ["", *(check.listed.text for check in sentence.checks)]
        badge = verdict_badge(end.verdict, self.t, self._status(sentence)) if end else None
        parts: list[Child] = [tag("header.vs-ever-head", self._title(sentence.index), badge)]
        for check, before in zip(sentence.checks, befores, strict=False):
            parts.append(self._check(sentence, check, before))
        step = self._under_way(sentence.index)
        if step is not None and not self.over:
            parts.append(self._working(self.t(f"step.{step.name}")))
        return self._article(sentence.index, [*parts, *self._end(sentence)], busy=end is None)

    def opening(self, index: int, text: str, step: StepView) -> Html:
        """A sentence whose facts are not known yet: being written, or just written by `step`."""
        body = answer_text(text, key="text") if text else reserved(key="text")
        current = self._under_way(index) or step
        words = self.t("ever.not_reached" if self.over else f"step.{current.name}")
        return self._article(index, [self._title(index), body, self._working(words)], busy=True)

    def _title(self, index: int) -> Html:
        """What the card is called, counted from 1."""
        return tag("h3.vs-ever-title", self.t(f"ever.{self.kind}", number=index + 1))

    def _working(self, words: str) -> Html:
        return tag("p.vs-note.vs-ever-working", words, key="working")

    def _article(self, index: int, parts: Sequence[Child], *, busy: bool) -> Html:
        article = tag("article.vs-card.vs-padded.vs-ever-card", parts)
        busy = busy and not self.over
        return tag("li.vs-ever-item", article, aria_busy=busy, key=f"sentence-{index}")

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
        parts: list[Child] = [tag("h4.vs-label", label)]
        if before:
            parts.append(diff_html(before, listed.text, self.language, t))
        parts.append(self._text(check))
        if listed.listed != "read":
            parts.append(tag("p.vs-flag", t(f"ever.listed.{listed.listed}")))
        if listed.left_out:
            parts.append(tag("p.vs-flag", t("ever.left_out", count=listed.left_out)))
        chips = [self._concept(sentence.index, check, place) for place in listed.places]
        if chips:
            parts.append(tag("ul.vs-ever-concepts", chips, key=f"{key}-concepts"))
        return tag("div.vs-ever-look", parts, key=key)

    def _text(self, check: Check) -> Html:
        """The text with its concepts underlined, each with its verdict's sign.

        A concept that overlaps the one before it has its chip below all the same.
        """

        def concept(piece: str, event: Judged | None) -> Html:
            css = "span.vs-judged.vs-ever-concept"
            if event is None:
                return tag(css, piece)
            mark = sign(VERDICT_SIGNS[event.verdict])
            return tag(f"{css}.{verdict_class(event.verdict)}", piece, mark)

        marks = ((*place, check.concepts.get(place)) for place in check.listed.places)
        text = marked_text(check.listed.text, marks, concept)
        return answer_text(text, ".vs-ever-text", key="text")

    def _concept(self, sentence: int, check: Check, place: tuple[int, int]) -> Html:
        start, end = place
        key = f"concept-{sentence}-{check.listed.round}-{start}"
        name = tag("bdi.vs-strong", check.listed.text[start:end])
        event = check.concepts.get(place)
        if event is None or not isinstance(event.detail, ConceptVerified):
            words = self.t("ever.not_reached" if self.over else "ever.checking")
            waiting = tag("span.vs-note.vs-ever-working", words)
            return tag("li.vs-ever-chip", name, waiting, aria_busy=not self.over, key=key)
        summary = tag("summary", name, verdict_badge(event.verdict, self.t))
        reasons = self._reasons(event, event.detail, key)
        details = tag("details.vs-ever-details", summary, reasons, key=key)
        return tag(f"li.vs-ever-chip.{verdict_class(event.verdict)}", details, key=f"{key}-chip")

    def _reasons(self, event: Judged, found: ConceptVerified, key: str) -> Html:
        """What was asked about a concept, and what its verdict rests on."""
        t = self.t
        parts: list[Child] = [self._part("ever.question", answer_text(found.question))]
        if found.fallback:
            parts.append(tag("p.vs-note", t("ever.fallback")))
        if found.claim and found.claim != found.question:
            parts.append(self._part("ever.claim", answer_text(found.claim)))
        if found.reused:
            parts.append(tag("p.vs-note", t("ever.reused")))
        if found.reason:
            silent = found.by and found.reason == "unreadable"
            words = t("ever.no_verdict") if silent else t(f"ever.reason.{found.reason}")
            parts.append(tag("p.vs-flag", words))
        if found.incomplete:
            parts.append(tag("p.vs-flag", t("flag.search_incomplete")))
        if found.reasoning:
            name = "ever.reasoning" if found.evidence else "ever.recalled"
            parts.append(self._part(name, answer_text(found.reasoning)))
        passages = self._passages(event, found)
        if passages:
            near = f"{found.claim or found.question} {found.reasoning}"
            items = [EvidenceItem(one, marks=supporting(one.text, near)) for one in passages]
            parts.append(self._part("evidence.title", evidence(items, t, id=f"{key}-evidence")))
        parts += [score_line(score, t) for score in event.scores]
        if self.over:
            calls = calls_within(self.method, (event.span, found.reused))
            parts.append(call_list(calls, t, id=f"{key}-calls"))
        return tag("div.vs-ever-reasons", parts)

    def _passages(self, event: Judged, found: ConceptVerified) -> list[Passage]:
        searches = (s for s in self.method.searches if s.span == (found.reused or event.span))
        known = {passage.id: passage for search in searches for passage in search.passages}
        return [known[one] for one in found.evidence if one in known]

    def _part(self, key: str, content: Child) -> Html:
        return tag("div.vs-part", tag("p.vs-label", self.t(key)), content)

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
            rectified = (s for s in self.method.steps if s.name == "rectify")
            tries = [step.span for step in rectified if step.at.sentence == sentence.index]
            calls = calls_within(self.method, tries[-1:])
            parts.append(call_list(calls, self.t, id=f"unusable-{sentence.index}"))
        return parts
