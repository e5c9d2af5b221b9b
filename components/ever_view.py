"""The EVER page of a run: sentences in order, what was checked in each, and the text they make."""

from __future__ import annotations

from collections.abc import Iterable

from components.calls import call_list, calls_behind
from components.diff import diff_html
from components.elements import VERDICT_SIGNS, divergence, score_line, verdict_badge
from components.ever_cards import CheckedSentence, SentenceCards, sentences_of
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, integer, named
from components.models import judge_quality
from components.page import run_notices, section
from pipelines.run.findings import ConceptVerified
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.text import split_sentences, text_key, without_thinking
from pipelines.types import Answer, Language

__all__ = ["ever_view"]


def ever_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Everything EVER did in the run, as far as it has come.

    `diverges_at` is the draft at which a re-evaluated run leaves the recorded one.
    """
    method = view.methods.get("ever")
    error = (method.error if method else None) or view.error
    parts: list[Child] = [run_notices(view, error, t)]
    parts.append(divergence(diverges_at, t))
    if method is not None:
        sentences = sentences_of(method.judged)
        short = method.settings.get("task") == "short"
        listed = _sentences(view, method, sentences, t)
        title = t("ever.items" if short else "ever.sentences")
        final = _final(view, method, sentences, t, elsewhere=diverges_at is not None)
        parts += [
            section("original", t("ever.original"), _original(view, method, t)),
            section("sentences", title, *listed, _checked_by(view, sentences, t)),
            section("share", t("ever.share"), _share(method, t)),
            section("final", t("ever.final"), *final),
        ]
        ahead = [step for step in method.steps if step.name == "speculate"]
        if ahead or method.settings.get("speculative"):
            parts.append(section("ahead", t("ever.ahead"), _ahead(method, ahead, sentences, t)))
    return tag("div", parts, class_="vs-run vs-ever", data_key="ever")


def _original(view: RunView, method: MethodView, t: Catalogue) -> Html:
    draft = next((step for step in method.steps if step.name == "draft"), None)
    text = method.drafts[0].after if method.drafts else draft.text if draft else ""
    limit = method.settings.get("max_sentences")
    short = method.settings.get("task") == "short"
    if not method.drafts and isinstance(limit, int) and not short:
        # To see that its last sentence is complete, the writer reads on into the next one.
        spans = split_sentences(text)
        text = text[: spans[limit - 1].end] if len(spans) > limit else text
    writing = not method.drafts and not view.over
    if text:
        body = tag("p", shown(text), class_="vs-answer", dir="auto", data_key="text")
    elif view.over or method.drafts:
        body = tag("p", t("ask.no_answer"), class_="vs-note", data_key="text")
    else:
        body = tag("span", class_="vs-reserved", aria_hidden="true", data_key="text")
    return tag(
        "div",
        body,
        tag("p", t("ever.original.short" if short else "ever.original.note"), class_="vs-note"),
        class_="vs-card vs-padded vs-ever-original",
        aria_busy="true" if writing else None,
        data_key="original",
    )


def _checked_by(view: RunView, sentences: list[CheckedSentence], t: Catalogue) -> Html | None:
    """Whose verdicts these are; None while there are none."""
    checks = [check for sentence in sentences for check in sentence.checks]
    events = [event for check in checks for event in check.concepts.values()]
    details = [event.detail for event in events]
    by = (detail.by for detail in details if isinstance(detail, ConceptVerified))
    judge = next(filter(None, by), "")
    if judge:
        words = tag("p", t("ever.by.judge", name=judge), class_="vs-note")
        return tag("div", words, judge_quality(judge, t), data_key="by")
    if view.header is None or not any(event.verdict != "unchecked" for event in events):
        return None
    name = view.header.spec.models["main"].name
    return tag("p", t("ever.by.main", name=name), class_="vs-note", data_key="by")


def _sentences(
    view: RunView, method: MethodView, sentences: list[CheckedSentence], t: Catalogue
) -> list[Child]:
    short = method.settings.get("task") == "short"
    over = view.over or method.outcome is not None
    cards = SentenceCards(method, _language(view), t, over, "item" if short else "sentence")
    items = {sentence.index: cards.card(sentence) for sentence in sentences}
    for step in method.steps:
        index = step.at.sentence
        if index is not None and index not in items and _opens(step, index, sentences):
            items[index] = cards.opening(index, _begun(method, step, index), step)
    if not items:
        declined = method.answer is not None and method.answer.abstained
        key = "ever.declined" if declined else "ever.no_sentences" if over else "ever.waiting"
        return [tag("p", t(key), class_="vs-empty", data_key="list")]
    ordered = [items[index] for index in sorted(items)]
    note = tag("p", t("ever.items.note"), class_="vs-note", data_key="note") if short else None
    return [note, tag("ol", ordered, class_="vs-ever-list", data_key="list")]


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
    return _next_sentence(
        step.text, {text_key(_written(method, number)) for number in range(index)}
    )


def _written(method: MethodView, index: int) -> str:
    """A sentence as the drafts have it, when it was last written or corrected."""
    written = [draft for draft in method.drafts if draft.at.sentence == index]
    if written:
        return written[-1].after[written[-1].start :].strip()
    spans = split_sentences(method.drafts[0].after) if method.drafts else []
    return spans[0].text if spans and index == 0 else ""


def _next_sentence(text: str, before: Iterable[str]) -> str:
    """The sentence that is being written, as far as it has come; "" for none.

    A writer may repeat the sentences it was given, and goes on until the one after has begun.
    """
    known = {text_key(sentence) for sentence in before}
    spans = split_sentences(without_thinking(text).strip())
    return next((span.text for span in spans if text_key(span.text) not in known), "")


def _share(method: MethodView, t: Catalogue) -> Html:
    judged = next((event for event in method.judged if event.what == "answer"), None)
    if judged is None or not judged.scores:
        key = "ever.share.none" if method.outcome is not None else "ever.share.open"
        return tag("p", t(key), class_="vs-empty", data_key="share")
    score = judged.scores[0]
    calls = call_list(calls_behind(method, judged, score), t, id="ever-share-calls")
    supported, total = (int(value) for value in score.inputs)
    words = t("ever.share.counts", supported=supported, count=total)
    return tag(
        "div",
        tag("p", verdict_badge(judged.verdict, t), " ", words if total else t("ever.share.none")),
        score_line(score, t, behind=calls),
        class_="vs-stack",
        data_key="share",
    )


def _final(
    view: RunView,
    method: MethodView,
    sentences: list[CheckedSentence],
    t: Catalogue,
    *,
    elsewhere: bool,
) -> list[Child]:
    answer = method.answer
    if answer is None:
        over = view.over or method.outcome is not None
        key = "elsewhere" if elsewhere else "none" if over else "open"
        return [tag("p", t(f"ever.final.{key}"), class_="vs-empty", data_key="final")]
    parts: list[Child] = []
    if answer.abstained:
        parts.append(tag("p", t("ask.abstained"), class_="vs-strong", data_key="text"))
    else:
        parts.append(_text(answer, sentences))
    if answer.short and answer.short != answer.text:
        label = tag("span", t("ever.short"), class_="vs-label")
        parts.append(tag("p", label, " ", tag("bdi", shown(answer.short)), class_="vs-answer"))
    if answer.flags:
        flags = (tag("li", named("flag", flag, t), class_="vs-flag") for flag in answer.flags)
        parts.append(tag("ul", flags, class_="vs-flags", data_key="flags"))
    if not answer.abstained and answer.text != answer.original:
        changed = diff_html(answer.original, answer.text, _language(view), t, form="side")
        parts.append(tag("div", changed, class_="vs-card vs-padded", data_key="change"))
    elif not answer.abstained and answer.text:
        parts.append(tag("p", t("ever.unchanged"), class_="vs-note", data_key="change"))
    return parts


def _text(answer: Answer, sentences: list[CheckedSentence]) -> Html:
    """The text at the end; a sentence that is not supported as a whole has its sign."""
    text, position = answer.text, 0
    parts: list[Child] = []
    for sentence in sentences:
        end = sentence.end
        start = text.find(end.text, position) if end is not None and end.text else -1
        if end is None or start < 0:
            continue
        parts.append(shown(text[position:start]))
        if sentence.kept_in_doubt:
            name = end.verdict.replace("_", "-")
            sign = tag("span", VERDICT_SIGNS[end.verdict], class_="vs-sign", aria_hidden="true")
            words = tag("span", shown(end.text), class_="vs-judged")
            parts.append(tag("span", words, sign, class_=f"vs-ever-kept vs-verdict-{name}"))
        else:
            parts.append(shown(end.text))
        position = start + len(end.text)
    parts.append(shown(text[position:]))
    return tag("p", parts, class_="vs-answer vs-ever-final", dir="auto", data_key="text")


def _ahead(
    method: MethodView, steps: list[StepView], sentences: list[CheckedSentence], t: Catalogue
) -> Html:
    """What was written ahead, whether it was kept, and what it cost."""
    if not steps:
        return tag("p", t("ever.ahead.none"), class_="vs-empty", data_key="ahead")
    fates = {one.index + 1: one.ended.speculation for one in sentences if one.ended is not None}
    rows: list[Html] = []
    wasted = 0
    for step in steps:
        number = step.at.sentence or 0
        fate = fates.get(number) or "open"
        calls = [call for call in method.made if call.span == step.span]
        tokens = sum(g.usage.completion_tokens for call in calls for g in call.generations)
        wasted += tokens if fate == "discarded" else 0
        made = t("counter.calls", count=integer(len(calls)))
        cost = f"{made} · {t('timeline.completion_tokens', count=integer(tokens))}"
        stopped = step.outcome == "cancelled"
        rows.append(
            tag(
                "li",
                tag("span", t("ever.sentence", number=number + 1), class_="vs-strong"),
                tag("span", t(f"ever.ahead.{fate}")),
                tag("span", cost, class_="vs-note vs-num"),
                tag("span", t("ever.ahead.stopped"), class_="vs-note") if stopped else None,
                data_key=f"ahead-{number}",
            )
        )
    total = t("ever.ahead.wasted", count=integer(wasted))
    return tag(
        "div",
        tag("ul", rows, class_="vs-ever-ahead"),
        tag("p", total, class_="vs-note vs-num"),
        class_="vs-stack",
        data_key="ahead",
    )


def _language(view: RunView) -> Language:
    return view.header.language if view.header else "en"
