"""The EVER page of a run: sentences in order, what was checked in each, and the text they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from components.base.elements import (
    VERDICT_SIGNS,
    EvidenceItem,
    answer_text,
    evidence,
    marked_text,
    notice,
    part,
    reserved,
    score_line,
    sign,
    verdict_badge,
    verdict_class,
)
from components.base.html import Child, Html, tag
from components.base.words import Catalogue, integer
from components.methods.panel import MethodPanel, nearest_section
from components.models import judge_quality
from components.page import section
from components.run.ask import nearest_in_words
from components.run.text import unsupported_help, with_unsupported
from pipelines.base import Answer, Passage
from pipelines.run.events import Judged
from pipelines.run.findings import ConceptsListed, ConceptVerified, SentenceVerified
from pipelines.run.view import MethodView, RunView, StepView, whole_setting
from pipelines.text import split_sentences, text_key, without_thinking

_WORK = ("extract", "statement", "verify", "rectify", "candidates")
"""Steps named in the card of the sentence they work on; the innermost one under way is shown."""


@dataclass(frozen=True)
class _ConceptCheck:
    """One check of a sentence: its concepts as listed, and by place those that have a verdict."""

    listed: ConceptsListed
    concepts: dict[tuple[int, int], Judged] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sentence:
    """A sentence, or an item of a short answer, so far; `end` is None until it is verified."""

    index: int
    checks: tuple[_ConceptCheck, ...]
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


_COUNTS = 2
"""How many are supported, and of how many."""


def ever_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Return everything EVER did in the run, as far as it has come.

    `diverges_at` is the draft at which a re-evaluated run leaves the recorded one.
    """
    page = _EverPanel.of("ever", view, t, diverges_at)
    parts = page.opening()
    if "ever" in view.methods:
        title = t("ever.items" if page.short else "ever.sentences")
        parts += [
            section("original", t("ever.original"), page.original()),
            section("sentences", title, *page.cards(), page.checked_by()),
            nearest_section(page),
            section("share", t("ever.share"), page.share()),
            section("final", t("ever.final"), *page.final()),
        ]
        ahead = [step for step in page.method.steps if step.name == "speculate"]
        if ahead or page.method.settings.get("speculative"):
            parts.append(section("ahead", t("ever.ahead"), page.ahead(ahead)))
    return tag("div.vs-run.vs-ever", parts, key="ever")


@dataclass(frozen=True)
class _EverPanel(MethodPanel):
    """One drawing of the page, from what is recorded so far."""

    @cached_property
    def sentences(self) -> list[_Sentence]:
        """The sentences in order, as far as the run has come."""
        found: dict[int, _Sentence] = {}
        for event in self.method.judged:
            if event.sentence is None:
                continue
            known = found.get(event.sentence, _Sentence(event.sentence, ()))
            match event.detail:
                case ConceptsListed() as listed:
                    known = replace(known, checks=(*known.checks, _ConceptCheck(listed)))
                case ConceptVerified(round=number, at=place) if number < len(known.checks):
                    # Verdicts come in the order in which they are known.
                    known.checks[number].concepts[place] = event
                case SentenceVerified():
                    known = replace(known, end=event)
                case _:
                    continue
            found[event.sentence] = known
        return [found[index] for index in sorted(found) if found[index].checks]

    @property
    def short(self) -> bool:
        """Whether the answer is a short one, or a list of items."""
        return self.method.settings.get("task") == "short"

    def original(self) -> Html:
        """Return the first draft, or what there is of it."""
        t, drafts, draft = self.t, self.method.drafts, self.step("draft")
        text = drafts[0].after if drafts else draft.text if draft else ""
        limit = whole_setting(self.method, "max_sentences", 0)
        if not drafts and limit and not self.short:
            # To see that its last sentence is complete, the writer reads on into the next one.
            spans = split_sentences(text)
            text = text[: spans[limit - 1].end] if len(spans) > limit else text
        writing = not drafts and not self.over
        body = reserved(key="text") if writing else tag("p.vs-note", t("ask.no_answer"), key="text")
        body = answer_text(text, key="text") if text else body
        note = tag("p.vs-note", t("ever.original.short" if self.short else "ever.original.note"))
        return tag(
            "div.vs-card.vs-padded.vs-ever-original", body, note, aria_busy=writing, key="original"
        )

    def checked_by(self) -> Html | None:
        """Return whose verdicts these are; None while there are none."""
        checks = (check for sentence in self.sentences for check in sentence.checks)
        events = [event for check in checks for event in check.concepts.values()]
        by = (event.detail.by for event in events if isinstance(event.detail, ConceptVerified))
        if judge := next(filter(None, by), ""):
            words = tag("p.vs-note", self.t("ever.by.judge", name=judge))
            return tag("div", words, judge_quality(judge, self.t), key="by")
        header = self.view.header
        if header is None or all(event.verdict == "unchecked" for event in events):
            return None
        name = header.spec.models["main"].name
        return tag("p.vs-note", self.t("ever.by.main", name=name), key="by")

    def cards(self) -> list[Child]:
        """Return a card for every sentence, also for one that nothing is known of yet."""
        t, method = self.t, self.method
        items = {sentence.index: self._card(sentence) for sentence in self.sentences}
        for step in method.steps:
            index = step.at.sentence
            if index is not None and index not in items and _opens(step, index, self.sentences):
                items[index] = self._opening(index, _begun(method, step, index), step)
        if not items:
            declined = method.answer is not None and method.answer.abstained
            ended = "ever.waiting" if self.running else "ever.no_sentences"
            return [tag("p.vs-empty", t("ever.declined" if declined else ended), key="list")]
        ordered = [items[index] for index in sorted(items)]
        note = tag("p.vs-note", t("ever.items.note"), key="note") if self.short else None
        return [note, tag("ol.vs-ever-list", ordered, key="list")]

    def share(self) -> Html:
        t, judged = self.t, next(iter(self.judged("answer")), None)
        if judged is None or len(judged.deciding.inputs) != _COUNTS:
            key = "ever.share.none" if self.method.outcome is not None else "ever.share.open"
            return tag("p.vs-empty", t(key), key="share")
        score = judged.deciding
        supported, total = (int(value) for value in score.inputs)
        words = t("ever.share.counts", supported=supported, count=total)
        badge = verdict_badge(judged.verdict, t)
        line = tag("p", badge, " ", words if total else t("ever.share.none"))
        return tag("div.vs-stack", line, self.score_line(judged, score), key="share")

    def final(self) -> list[Child]:
        """Return the text at the end with what is left of doubt, and what has changed."""
        t, answer = self.t, self.method.answer
        if answer is None:
            ended = "ever.final.open" if self.running else "ever.final.none"
            key = ended if self.diverges_at is None else "ever.final.elsewhere"
            return [tag("p.vs-empty", t(key), key="final")]
        parts: list[Child] = []
        if answer.abstained:
            parts.append(tag("p.vs-strong", t("ask.abstained"), key="text"))
        else:
            parts.append(_text(answer, self.sentences))
        if answer.short and answer.short != answer.text:
            label = tag("span.vs-label", t("ever.short"))
            parts.append(tag("p.vs-answer", label, " ", tag("bdi", answer.short)))
        if self.method.outcome == "failed":
            parts.append(tag("p.vs-note", t("ever.final.none"), key="ended"))
        parts.append(self.flags("flags"))
        if not answer.abstained and answer.text != answer.original:
            changed = self.sides(answer.original, answer.text)
            parts.append(tag("div.vs-card.vs-padded", changed, key="change"))
        elif not answer.abstained and answer.text:
            parts.append(tag("p.vs-note", t("ever.unchanged"), key="change"))
        return parts

    def ahead(self, steps: list[StepView]) -> Html:
        """Return what was written ahead, whether it was kept, and what it cost."""
        t = self.t
        if not steps:
            return tag("p.vs-empty", t("ever.ahead.none"), key="ahead")
        ended = {one.index + 1: one.ended for one in self.sentences if one.ended is not None}
        rows: list[Html] = []
        wasted = 0
        for step in steps:
            number = step.at.sentence or 0
            fate = (ended[number].speculation if number in ended else "") or "open"
            calls = [call for call in self.method.made if call.span == step.span]
            tokens = sum(g.usage.completion_tokens for call in calls for g in call.generations)
            wasted += tokens if fate == "discarded" else 0
            made = t("counter.calls", count=integer(len(calls)))
            cost = f"{made} · {t('timeline.completion_tokens', count=integer(tokens))}"
            stopped = tag("span.vs-note", t("ever.ahead.stopped"))
            row = tag(
                "li",
                tag("span.vs-strong", t("ever.sentence", number=number + 1)),
                tag("span", t(f"ever.ahead.{fate}")),
                tag("span.vs-note.vs-num", cost),
                stopped if step.outcome == "cancelled" else None,
                key=f"ahead-{number}",
            )
            rows.append(row)
        total = tag("p.vs-note.vs-num", t("ever.ahead.wasted", count=integer(wasted)))
        return tag("div.vs-stack", tag("ul.vs-ever-ahead", rows), total, key="ahead")

    # --- One sentence: every check of it, its facts, and how it ended ---

    def _card(self, sentence: _Sentence) -> Html:
        """Return a sentence from its draft to what it came to be."""
        end, befores = sentence.end, ["", *(check.listed.text for check in sentence.checks)]
        badge = verdict_badge(end.verdict, self.t, self._status(sentence)) if end else None
        parts: list[Child] = [tag("header.vs-ever-head", self._title(sentence.index), badge)]
        for check, before in zip(sentence.checks, befores, strict=False):
            parts.append(self._check(sentence, check, before))
        step = self._under_way(sentence.index)
        if step is not None and self.running:
            parts.append(self._working(self.t(f"step.{step.name}")))
        return self._article(sentence.index, [*parts, *self._end(sentence)], busy=end is None)

    def _opening(self, index: int, text: str, step: StepView) -> Html:
        """Return a sentence whose facts are not known yet: being written, or just written
        by `step`.
        """
        body = answer_text(text, key="text") if text else reserved(key="text")
        current = self._under_way(index) or step
        words = self.t(f"step.{current.name}" if self.running else "ever.not_reached")
        return self._article(index, [self._title(index), body, self._working(words)], busy=True)

    def _title(self, index: int) -> Html:
        return tag(
            "h3.vs-ever-title",
            self.t("ever.item" if self.short else "ever.sentence", number=index + 1),
        )

    def _working(self, words: str) -> Html:
        return tag("p.vs-note.vs-ever-working", words, key="working")

    def _article(self, index: int, parts: Sequence[Child], *, busy: bool) -> Html:
        article = tag("article.vs-card.vs-padded.vs-ever-card", parts)
        busy = busy and self.running
        return tag("li.vs-ever-item", article, aria_busy=busy, key=f"sentence-{index}")

    def _status(self, sentence: _Sentence) -> str:
        """Return how the sentence ended, in words."""
        last = sentence.checks[-1].listed
        verdict = sentence.end.verdict if sentence.end is not None else "unchecked"
        if sentence.ended is not None and sentence.ended.dropped:
            return self.t("ever.status.dropped")
        if sentence.ended is not None and sentence.ended.stopped == "corrected":
            return self.t("ever.status.corrected")
        if last.listed == "none":
            return self.t("ever.status.nothing")
        if sentence.partly:
            return self.t("ever.status.partly")
        if verdict == "supported" and last.attempt != "draft":
            return self.t(f"ever.status.{last.attempt}")
        return self.t(f"ever.status.{verdict}")

    def _check(self, sentence: _Sentence, check: _ConceptCheck, before: str) -> Html:
        t, listed = self.t, check.listed
        key = f"look-{sentence.index}-{listed.round}"
        # The number of this correction, or of this other answer.
        alike = [one for one in sentence.checks if one.listed.attempt == listed.attempt]
        label = t(f"ever.look.{listed.attempt}", round=alike.index(check) + 1)
        chips = [self._concept(sentence.index, check, place) for place in listed.places]
        parts: list[Child] = [
            tag("h4.vs-label", label),
            before and self.diff(before, listed.text),
            self._text(check),
            listed.listed != "read" and tag("p.vs-flag", t(f"ever.listed.{listed.listed}")),
            listed.left_out > 0 and tag("p.vs-flag", t("ever.left_out", count=listed.left_out)),
            bool(chips) and tag("ul.vs-ever-concepts", chips, key=f"{key}-concepts"),
        ]
        return tag("div.vs-ever-look", parts, key=key)

    def _text(self, check: _ConceptCheck) -> Html:
        """Return the text with its concepts underlined, each with its verdict's sign.

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
        return answer_text(text, "vs-ever-text", key="text")

    def _concept(self, sentence: int, check: _ConceptCheck, place: tuple[int, int]) -> Html:
        start, end = place
        key = f"concept-{sentence}-{check.listed.round}-{start}"
        name = tag("bdi.vs-strong", check.listed.text[start:end])
        event = check.concepts.get(place)
        if event is None or not isinstance(event.detail, ConceptVerified):
            words = self.t("ever.checking" if self.running else "ever.not_reached")
            waiting = tag("span.vs-note.vs-ever-working", words)
            return tag("li.vs-ever-chip", name, waiting, aria_busy=self.running, key=key)
        summary = tag("summary", name, verdict_badge(event.verdict, self.t))
        reasons = self._reasons(event, event.detail, key)
        details = tag("details.vs-ever-details", summary, reasons, key=key)
        return tag(f"li.vs-ever-chip.{verdict_class(event.verdict)}", details, key=f"{key}-chip")

    def _reasons(self, event: Judged, found: ConceptVerified, key: str) -> Html:
        """Return what was asked about a concept, and what its verdict rests on."""
        t = self.t
        claimed = found.claim and found.claim != found.question
        silent = found.by and found.reason == "unreadable"
        reason = "ever.no_verdict" if silent else f"ever.reason.{found.reason}"
        reasoned = "ever.reasoning" if found.evidence else "ever.recalled"
        near = f"{found.claim or found.question} {found.reasoning}"
        passages = self._passages(event, found)
        items = [EvidenceItem(one, marks=nearest_in_words(one.text, near)) for one in passages]
        listed = evidence(items, t, id=f"{key}-evidence")
        parts: list[Child] = [
            part(t("ever.question"), answer_text(found.question)),
            found.fallback and tag("p.vs-note", t("ever.fallback")),
            claimed and part(t("ever.claim"), self._claim(event, found)),
            found.reused and tag("p.vs-note", t("ever.reused")),
            found.reason and tag("p.vs-flag", t(reason)),
            found.incomplete and tag("p.vs-flag", t("flag.search_incomplete")),
            found.reasoning and part(t(reasoned), answer_text(found.reasoning)),
            bool(items) and part(t("evidence.title"), listed),
        ]
        parts += [
            score_line(score, t, calibrated=self.calibrated(event, score)) for score in event.scores
        ]
        if not self.running:
            parts.append(self.calls((event.span, found.reused), f"{key}-calls"))
        return tag("div.vs-ever-reasons", parts)

    def _claim(self, event: Judged, found: ConceptVerified) -> Html:
        """Return what a judge was asked about; words that it does not find supported are
        underlined.
        """
        words = self.unsupported.of(event, found.claim)
        marked = with_unsupported(found.claim, words, self.t)
        key = f"unsupported-{event.seq}"
        about = unsupported_help(self.t, key) if words else None
        return tag("div", answer_text(marked), about)

    def _passages(self, event: Judged, found: ConceptVerified) -> list[Passage]:
        searches = self.searches(found.reused or event.span)
        known = {passage.id: passage for search in searches for passage in search.passages}
        return [known[one] for one in found.evidence if one in known]

    def _under_way(self, index: int) -> StepView | None:
        steps = (
            step
            for step in reversed(self.method.steps)
            if step.outcome is None and step.name in _WORK and step.at.sentence == index
        )
        return next(steps, None)

    def _end(self, sentence: _Sentence) -> list[Child]:
        """Return what is left of doubt when the sentence has been verified."""
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
        if ended.stopped == "corrected":
            changed = self.diff(sentence.checks[-1].listed.text, end.text)
            return [changed, tag("p.vs-note", self.t("ever.end.corrected"), key="end")]
        parts: list[Child] = [notice(self.t(key), "end")] if key else []
        if ended.stopped == "unusable" and not self.running:
            # What could not be used is to be seen with the call that it came from.
            rectified = (s for s in self.method.steps if s.name == "rectify")
            tries = [step.span for step in rectified if step.at.sentence == sentence.index]
            parts.append(self.calls(tries[-1:], f"unusable-{sentence.index}"))
        return parts


def _opens(step: StepView, index: int, sentences: list[_Sentence]) -> bool:
    """Return whether a step shows a sentence that nothing is known of yet."""
    if step.name == "speculate":
        # Written ahead: shown until it is known whether it is kept.
        ended = {sentence.index for sentence in sentences if sentence.end is not None}
        return step.outcome in (None, "ok") and index - 1 not in ended
    return step.name == "sentence" or (step.name == "next_sentence" and step.outcome is None)


def _begun(method: MethodView, step: StepView, index: int) -> str:
    """Return as much as there is of a sentence whose facts are not known yet."""
    if step.name == "sentence":
        return _written(method, index)
    known = {text_key(_written(method, number)) for number in range(index)}
    # A writer may repeat the sentences it was given, and goes on until the one after has begun.
    spans = split_sentences(without_thinking(step.text).strip())
    return next((span.text for span in spans if text_key(span.text) not in known), "")


def _written(method: MethodView, index: int) -> str:
    """Return a sentence as the drafts have it, when it was last written or corrected."""
    written = [draft for draft in method.drafts if draft.at.sentence == index]
    if written:
        return written[-1].after[written[-1].start :].strip()
    spans = split_sentences(method.drafts[0].after) if method.drafts else []
    return spans[0].text if spans and index == 0 else ""


def _text(answer: Answer, sentences: list[_Sentence]) -> Html:
    """Return the text at the end; a sentence that is not supported as a whole has its sign."""
    text, position = answer.text, 0
    parts: list[Child] = []
    for sentence in sentences:
        end = sentence.end
        start = text.find(end.text, position) if end is not None and end.text else -1
        if end is None or start < 0:
            continue
        parts.append(text[position:start])
        if sentence.kept_in_doubt:
            words = tag("span.vs-judged", end.text)
            mark = sign(VERDICT_SIGNS[end.verdict])
            parts.append(tag(f"span.vs-ever-kept.{verdict_class(end.verdict)}", words, mark))
        else:
            parts.append(end.text)
        position = start + len(end.text)
    return answer_text([*parts, text[position:]], "vs-ever-final", key="text")
