"""The EVER page of a run: sentences in order, what was checked in each, and the settled text."""

from __future__ import annotations

from typing import Literal

from components.calls import call_list, calls_behind
from components.diff import diff_html
from components.ever_cards import SentenceCards
from components.judge_quality import judge_quality
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.names import named
from components.notices import run_notices
from components.numbers import integer
from components.scores import score_line
from components.sections import section
from components.verdict import VERDICT_SIGNS, verdict_badge
from pipelines.methods.ever.record import EverDecision, SentenceRecord, read_records
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.text import next_sentence, up_to
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.text import split_sentences
from pipelines.types import Answer, Language

__all__ = ["ever_view"]


def ever_view(
    view: RunView, decision: EverDecision | None, settings: EverSettings, t: Catalogue
) -> str:
    """Everything EVER did in the run; `decision` None while it goes on."""
    method = view.methods.get("ever")
    error = (method.error if method else None) or view.error
    diverges = decision.reason if decision else ""
    parts: list[Child] = [run_notices(view, error, t, diverges=diverges)]
    if method is not None:
        language: Language = view.header.language if view.header else "en"
        records = list(decision.sentences) if decision else read_records(method.judged)
        kind = "item" if settings.task == "short" else "sentence"
        checked = (*_sentences(view, method, records, kind, t), _checked_by(view, records, t))
        parts += [
            section("original", t("ever.original"), _original(view, method, settings, t)),
            section("sentences", t("ever.sentences"), *checked),
            section("share", t("ever.share"), _share(method, t)),
            section(
                "final",
                t("ever.final"),
                *_final(view, method, decision, records, language, t),
            ),
        ]
        ahead = [step for step in method.steps if step.step == "speculate"]
        if settings.speculative or ahead:
            parts.append(section("ahead", t("ever.ahead"), _ahead(method, ahead, records, t)))
    return tag("div", parts, class_="vs-run vs-ever", data_key="ever")


def _original(view: RunView, method: MethodView, settings: EverSettings, t: Catalogue) -> Html:
    draft = next((step for step in method.steps if step.step == "draft"), None)
    text = method.drafts[0].after if method.drafts else draft.text if draft else ""
    if not method.drafts and settings.task != "short":
        text = up_to(text, settings.max_sentences)
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
        tag("p", t("ever.original.note"), class_="vs-note"),
        class_="vs-card vs-padded vs-ever-original",
        aria_busy="true" if writing else None,
        data_key="original",
    )


def _checked_by(view: RunView, records: list[SentenceRecord], t: Catalogue) -> Html | None:
    """Whose verdicts these are; None while there are none."""
    concepts = [one for record in records for look in record.checks for one in look.concepts]
    judge = next((one.by for one in concepts if one.by), "")
    if judge:
        words = tag("p", t("ever.by.judge", name=judge), class_="vs-note")
        return tag("div", words, judge_quality(judge, t), data_key="by")
    if view.header is None or not any(one.verdict != "unchecked" for one in concepts):
        return None
    name = view.header.spec.models["main"].name
    return tag("p", t("ever.by.main", name=name), class_="vs-note", data_key="by")


def _sentences(
    view: RunView,
    method: MethodView,
    records: list[SentenceRecord],
    kind: Literal["sentence", "item"],
    t: Catalogue,
) -> list[Child]:
    language: Language = view.header.language if view.header else "en"
    over = view.over or method.outcome is not None
    cards = SentenceCards(method, language, t, over, kind)
    items = {record.index: cards.card(record) for record in records}
    for step in method.steps:
        index = step.detail.get("sentence")
        if isinstance(index, int) and index not in items and _opens(step, index, records):
            items[index] = cards.opening(index, _begun(method, step, index), step)
    if not items:
        key = "ever.no_sentences" if view.over or method.outcome else "ever.waiting"
        return [tag("p", t(key), class_="vs-empty", data_key="list")]
    ordered = [items[index] for index in sorted(items)]
    return [tag("ol", ordered, class_="vs-ever-list", data_key="list")]


def _opens(step: StepView, index: int, records: list[SentenceRecord]) -> bool:
    """Whether a step shows a sentence that has no record yet."""
    if step.step == "speculate":
        # Written ahead: to be seen until it is known whether it was of use.
        settled = {record.index for record in records if record.verdict is not None}
        return step.outcome in (None, "ok") and index - 1 not in settled
    return step.step == "sentence" or (step.step == "next_sentence" and step.outcome is None)


def _begun(method: MethodView, step: StepView, index: int) -> str:
    """As much as there is of a sentence whose concepts are not known yet."""
    if step.step != "sentence":
        return next_sentence(step.text, [_written(method, number) for number in range(index)])
    return _written(method, index)


def _written(method: MethodView, index: int) -> str:
    """A sentence as the drafts have it, when it was last written or mended."""
    written = [d for d in method.drafts if d.detail.get("sentence") == index]
    if written:
        return written[-1].after[written[-1].start :].strip()
    spans = split_sentences(method.drafts[0].after) if method.drafts else []
    return spans[0].text if spans and index == 0 else ""


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
    decision: EverDecision | None,
    records: list[SentenceRecord],
    language: Language,
    t: Catalogue,
) -> list[Child]:
    answer = decision.answer if decision is not None else method.answer
    if answer is None:
        over = view.over or method.outcome is not None
        known = decision is not None and decision.reason
        key = "ever.final.elsewhere" if known else "ever.final.none" if over else "ever.final.open"
        return [tag("p", t(key), class_="vs-empty", data_key="final")]
    parts: list[Child] = []
    if answer.abstained:
        parts.append(tag("p", t("ask.abstained"), class_="vs-strong", data_key="text"))
    else:
        parts.append(_text(answer, records))
    if answer.short and answer.short != answer.text:
        label = tag("span", t("ever.short"), class_="vs-label")
        parts.append(tag("p", label, " ", tag("bdi", shown(answer.short)), class_="vs-answer"))
    if answer.flags:
        flags = (tag("li", named("flag", flag, t), class_="vs-flag") for flag in answer.flags)
        parts.append(tag("ul", flags, class_="vs-flags", data_key="flags"))
    if not answer.abstained and answer.text != answer.original:
        changed = diff_html(answer.original, answer.text, language, t, form="side")
        parts.append(tag("div", changed, class_="vs-card vs-padded", data_key="change"))
    elif not answer.abstained and answer.text:
        parts.append(tag("p", t("ever.unchanged"), class_="vs-note", data_key="change"))
    return parts


def _text(answer: Answer, records: list[SentenceRecord]) -> Html:
    """The settled text; a sentence that is not borne out keeps its sign."""
    text, position = answer.text, 0
    parts: list[Child] = []
    for record in records:
        start = text.find(record.text, position) if record.text else -1
        if start < 0 or record.verdict is None:
            continue
        end = start + len(record.text)
        doubtful = record.verdict != "supported" and record.checks[-1].listed != "none"
        parts.append(shown(text[position:start]))
        if doubtful:
            name = record.verdict.replace("_", "-")
            sign = tag("span", VERDICT_SIGNS[record.verdict], class_="vs-sign", aria_hidden="true")
            words = tag("span", shown(record.text), class_="vs-judged")
            parts.append(tag("span", words, sign, class_=f"vs-ever-kept vs-verdict-{name}"))
        else:
            parts.append(shown(record.text))
        position = end
    parts.append(shown(text[position:]))
    return tag("p", parts, class_="vs-answer vs-ever-final", dir="auto", data_key="text")


def _ahead(
    method: MethodView, steps: list[StepView], records: list[SentenceRecord], t: Catalogue
) -> Html:
    """What was written ahead, whether it was of use, and what it cost."""
    if not steps:
        return tag("p", t("ever.ahead.none"), class_="vs-empty", data_key="ahead")
    fates = {record.index + 1: record.speculation for record in records}
    rows: list[Html] = []
    wasted = 0
    for step in steps:
        index = step.detail.get("sentence")
        number = index if isinstance(index, int) else 0
        fate = fates.get(number) or "open"
        calls = [call for call in method.made if call.span == step.span]
        tokens = sum(g.usage.completion_tokens for call in calls for g in call.generations)
        wasted += tokens if fate == "thrown" else 0
        stopped = step.outcome == "cancelled"
        rows.append(
            tag(
                "li",
                tag("span", t("ever.sentence", number=number + 1), class_="vs-strong"),
                tag("span", t(f"ever.ahead.{fate}")),
                tag("span", _cost(len(calls), tokens, t), class_="vs-note vs-num"),
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


def _cost(calls: int, tokens: int, t: Catalogue) -> str:
    made = t("counter.calls", count=integer(calls))
    return f"{made} · {t('timeline.completion_tokens', count=integer(tokens))}"
