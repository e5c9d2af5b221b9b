"""The EVER page of a run: sentences in order, what was checked in each, and the text they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from components.elements import (
    VERDICT_SIGNS,
    answer_text,
    reserved,
    score_line,
    sign,
    verdict_badge,
    verdict_class,
)
from components.ever_cards import CheckedSentence, SentenceCards, sentences_of
from components.markup import Child, Html, tag
from components.messages import Catalogue, integer
from components.method_panel import MethodPanel
from components.models import judge_quality
from components.page import section
from pipelines.run.findings import ConceptVerified
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.text import split_sentences, text_key, without_thinking
from pipelines.types import Answer

__all__ = ["ever_view"]


def ever_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Everything EVER did in the run, as far as it has come.

    `diverges_at` is the draft at which a re-evaluated run leaves the recorded one.
    """
    page = _Page.of("ever", view, t, diverges_at)
    parts = page.opening()
    if page.begun:
        title = t("ever.items" if page.short else "ever.sentences")
        parts += [
            section("original", t("ever.original"), page.original()),
            section("sentences", title, *page.cards(), page.checked_by()),
            section("share", t("ever.share"), page.share()),
            section("final", t("ever.final"), *page.final()),
        ]
        ahead = [step for step in page.method.steps if step.name == "speculate"]
        if ahead or page.method.settings.get("speculative"):
            parts.append(section("ahead", t("ever.ahead"), page.ahead(ahead)))
    return tag("div.vs-run.vs-ever", parts, key="ever")


@dataclass(frozen=True)
class _Page(MethodPanel):
    """One drawing of the page, from what is recorded so far."""

    @cached_property
    def sentences(self) -> list[CheckedSentence]:
        """The sentences in order, as far as the run has come."""
        return sentences_of(self.method.judged)

    @property
    def short(self) -> bool:
        """Whether the answer is a short one, or a list of items."""
        return self.method.settings.get("task") == "short"

    def original(self) -> Html:
        """The first draft, or what there is of it."""
        t, drafts, draft = self.t, self.method.drafts, self.step("draft")
        text = drafts[0].after if drafts else draft.text if draft else ""
        limit = self.method.settings.get("max_sentences")
        if not drafts and isinstance(limit, int) and not self.short:
            # To see that its last sentence is complete, the writer reads on into the next one.
            spans = split_sentences(text)
            text = text[: spans[limit - 1].end] if len(spans) > limit else text
        writing = not drafts and not self.over
        note = tag("p.vs-note", t("ever.original.short" if self.short else "ever.original.note"))
        return tag(
            "div.vs-card.vs-padded.vs-ever-original",
            reserved(key="text") if writing and not text else self.written(text, key="text"),
            note,
            aria_busy=writing,
            key="original",
        )

    def checked_by(self) -> Html | None:
        """Whose verdicts these are; None while there are none."""
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
        """A card for every sentence, also for one that nothing is known of yet."""
        t, method = self.t, self.method
        kind = "item" if self.short else "sentence"
        cards = SentenceCards(method, self.language, t, not self.running, kind)
        items = {sentence.index: cards.card(sentence) for sentence in self.sentences}
        for step in method.steps:
            index = step.at.sentence
            if index is not None and index not in items and _opens(step, index, self.sentences):
                items[index] = cards.opening(index, _begun(method, step, index), step)
        if not items:
            declined = method.answer is not None and method.answer.abstained
            ended = "ever.waiting" if self.running else "ever.no_sentences"
            return [tag("p.vs-empty", t("ever.declined" if declined else ended), key="list")]
        ordered = [items[index] for index in sorted(items)]
        note = tag("p.vs-note", t("ever.items.note"), key="note") if self.short else None
        return [note, tag("ol.vs-ever-list", ordered, key="list")]

    def share(self) -> Html:
        """What share of the facts is supported."""
        t, judged = self.t, next(iter(self.judged("answer")), None)
        if judged is None or not judged.scores:
            key = "ever.share.none" if self.method.outcome is not None else "ever.share.open"
            return tag("p.vs-empty", t(key), key="share")
        score = judged.scores[0]
        calls = self.calls(score.behind or (judged.span,), "ever-share-calls")
        supported, total = (int(value) for value in score.inputs)
        words = t("ever.share.counts", supported=supported, count=total)
        badge = verdict_badge(judged.verdict, t)
        line = tag("p", badge, " ", words if total else t("ever.share.none"))
        return tag("div.vs-stack", line, score_line(score, t, behind=calls), key="share")

    def final(self) -> list[Child]:
        """The text at the end with what is left of doubt, and what has changed."""
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
        parts.append(self.flags("flags"))
        if not answer.abstained and answer.text != answer.original:
            changed = self.sides(answer.original, answer.text)
            parts.append(tag("div.vs-card.vs-padded", changed, key="change"))
        elif not answer.abstained and answer.text:
            parts.append(tag("p.vs-note", t("ever.unchanged"), key="change"))
        return parts

    def ahead(self, steps: list[StepView]) -> Html:
        """What was written ahead, whether it was kept, and what it cost."""
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


def _opens(step: StepView, index: int, sentences: list[CheckedSentence]) -> bool:
    """Whether a step shows a sentence that nothing is known of yet."""
    if step.name == "speculate":
        # Written ahead: shown until it is known whether it is kept.
        ended = {sentence.index for sentence in sentences if sentence.end is not None}
        return step.outcome in (None, "ok") and index - 1 not in ended
    return step.name == "sentence" or (step.name == "next_sentence" and step.outcome is None)


def _begun(method: MethodView, step: StepView, index: int) -> str:
    """As much as there is of a sentence whose facts are not known yet."""
    if step.name == "sentence":
        return _written(method, index)
    known = {text_key(_written(method, number)) for number in range(index)}
    # A writer may repeat the sentences it was given, and goes on until the one after has begun.
    spans = split_sentences(without_thinking(step.text).strip())
    return next((span.text for span in spans if text_key(span.text) not in known), "")


def _written(method: MethodView, index: int) -> str:
    """A sentence as the drafts have it, when it was last written or corrected."""
    written = [draft for draft in method.drafts if draft.at.sentence == index]
    if written:
        return written[-1].after[written[-1].start :].strip()
    spans = split_sentences(method.drafts[0].after) if method.drafts else []
    return spans[0].text if spans and index == 0 else ""


def _text(answer: Answer, sentences: list[CheckedSentence]) -> Html:
    """The text at the end; a sentence that is not supported as a whole has its sign."""
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
    return answer_text([*parts, text[position:]], ".vs-ever-final", key="text")
