"""HAARAG's page of a run: how good the retrieval was, and how well each answer aligns with it."""

from __future__ import annotations

from components.calls import call_list, calls_behind
from components.diff import diff_html
from components.evidence import EvidenceItem, evidence
from components.haarag_rounds import rounds_view
from components.judge_quality import judge_quality
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.method_card import error_note
from components.scores import gauge, score_line, score_value
from components.sections import notice, section
from components.verdict import verdict_badge
from pipelines.calibration import calibration
from pipelines.methods.haarag.path import DraftReading, HaaragDecision, walk
from pipelines.methods.haarag.record import Record
from pipelines.methods.haarag.rules import (
    alignment_score,
    sentence_scores,
    sentence_verdict,
    verdict_of,
)
from pipelines.methods.haarag.scores import SentenceAlignment
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.run.events import Judged, Score, Verdict
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language

__all__ = ["haarag_view"]


def haarag_view(
    view: RunView, decision: HaaragDecision | None, settings: HaaragSettings, t: Catalogue
) -> str:
    """The whole page; without a `decision` the recorded part of the run is decided as it ran."""
    method = view.methods.get("haarag") or MethodView(name="haarag", span="", started=0.0)
    language: Language = view.header.language if view.header else "en"
    if decision is None:
        decision = walk(Record.of_view(method), settings, settings, language)
    return tag(
        "div",
        _origin(decision, settings, language, t),
        _fault(view, method, t),
        section("retrieval", t("haarag.retrieval"), rounds_view(view, method, decision, t)),
        section("alignment", t("haarag.alignment"), *_drafts(view, method, decision, language, t)),
        section("outcome", t("haarag.outcome"), *_outcome(view, method, decision, language, t)),
        class_="vs-run vs-grounding",
        data_key="haarag",
    )


def _origin(
    decision: HaaragDecision, settings: HaaragSettings, language: Language, t: Catalogue
) -> Html | None:
    """Whose cosines these are, and where the thresholds come from."""
    embedder = decision.embedder
    if embedder is None:
        return None
    notes: list[Child] = [tag("li", t("haarag.embedder", name=visible(embedder)))]
    if embedder == "words":
        notes.append(tag("li", t("haarag.embedder.words")))
    known = calibration("haarag").get(embedder, {}).get(language, {})
    for name, own in (("tau_r", settings.tau_r), ("tau_a", settings.tau_a)):
        if own is not None:
            key, values = f"haarag.{name}.own", {"value": f"{own:.2f}"}
        elif name in known:
            reported = known[name]["report"]["reported"]
            key = f"haarag.{name}.calibrated"
            values = {
                "value": f"{known[name]['value']:.2f}",
                "count": reported["questions"],
                "auroc": f"{reported['auroc']:.2f}",
            }
        else:
            key, values = f"haarag.{name}.unknown", {}
        notes.append(tag("li", t(key, **values)))
    return tag("ul", notes, class_="vs-source-notes", data_key="origin")


def _fault(view: RunView, method: MethodView, t: Catalogue) -> Html | None:
    if method.error is not None:
        return error_note(method.error, t, retry="haarag")
    if view.status == "cancelled":
        return notice(t(f"run.cancelled.{view.reason or 'stopped'}"), "cancelled")
    return None


def _drafts(
    view: RunView,
    method: MethodView,
    decision: HaaragDecision,
    language: Language,
    t: Catalogue,
) -> list[Child]:
    parts: list[Child] = []
    if len(decision.drafts) > 1:
        parts.append(_course(decision, t))
    parts += [
        _draft(view, method, decision, number, language, t) for number in range(len(method.drafts))
    ]
    writing = next(
        (s for s in method.steps if s.step == "draft" and s.outcome is None and not view.over), None
    )
    if writing is not None and writing.detail.get("draft") == len(method.drafts):
        parts.append(_being_written(writing, len(method.drafts), t))
    if not parts:
        empty = [tag("p", t("ask.no_answer"), class_="vs-note")] if view.over else [_reserved()]
        parts.append(tag("div", empty, class_="vs-card vs-padded", data_key="draft-0"))
    return parts


def _course(decision: HaaragDecision, t: Catalogue) -> Html:
    """C_a from iteration to iteration."""
    rows = []
    for number, draft in enumerate(decision.drafts):
        score = alignment_score(draft.alignment, decision.thresholds.tau_a)
        rows.append(
            tag(
                "li",
                tag("span", t("haarag.iteration", number=number + 1), class_="vs-strong"),
                gauge(score, t),
                tag("span", score_value(score), class_="vs-num"),
                verdict_badge(verdict_of(draft.status), t),
                class_=None if draft.used else "vs-unused",
                data_key=f"course-{number}",
            )
        )
    return tag("ol", rows, class_="vs-course", aria_label=t("haarag.course"), data_key="course")


def _draft(
    view: RunView,
    method: MethodView,
    decision: HaaragDecision,
    number: int,
    language: Language,
    t: Catalogue,
) -> Html:
    revised = method.drafts[number]
    reading = decision.drafts[number] if number < len(decision.drafts) else None
    title = t("haarag.iteration", number=number + 1)
    parts: list[Child] = [tag("h3", title, class_="vs-step-title")]
    if number and number in decision.path:
        parts.append(diff_html(revised.before, revised.after, language, t))
    else:
        parts.append(tag("p", shown(revised.after), class_="vs-answer", dir="auto"))
    busy = reading is None and not view.over
    if reading is not None:
        parts += _checked(method, decision, reading, number, t)
    elif busy and method.answer is None:
        parts += [tag("p", t("haarag.checking"), class_="vs-note"), _reserved()]
    return tag(
        "article",
        parts,
        class_="vs-card vs-padded vs-step"
        + (" vs-unused" if reading is not None and not reading.used else ""),
        aria_busy="true" if busy and method.answer is None else None,
        data_key=f"draft-{number}",
    )


def _checked(
    method: MethodView,
    decision: HaaragDecision,
    reading: DraftReading,
    number: int,
    t: Catalogue,
) -> list[Child]:
    tau_a = decision.thresholds.tau_a
    parts: list[Child] = []
    if not reading.used:
        parts.append(tag("p", t("haarag.draft.unused"), class_="vs-note"))
    if reading.status == "insufficient":
        parts.append(tag("p", t("flag.insufficient_context"), class_="vs-flag"))
    score = alignment_score(reading.alignment, tau_a)
    judged = next((j for j in method.judged if j.what == "alignment" and j.draft == number), None)
    parts.append(score_line(score, t, behind=_behind(method, judged, score, f"c-a-{number}", t)))
    sentences = reading.alignment.sentences
    if not sentences or reading.status == "insufficient":
        return parts
    parts.append(tag("h4", t("haarag.sentences"), class_="vs-label"))
    columns = ["sentence", "evidence", "cosine", "verdict"]
    entailed = any(sentence.entailed is not None for sentence in sentences)
    columns[3:3] = ["entailment"] if entailed else []
    names = [t(f"haarag.column.{name}") for name in columns]
    head = (tag("th", name, scope="col", role="columnheader") for name in names)
    rows = (
        _sentence(sentence, tau_a, names, f"sentence-{number}-{place}", t)
        for place, sentence in enumerate(sentences)
    )
    table = tag(
        "table",
        tag("caption", t("haarag.sentences"), class_="vs-sr"),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="vs-table vs-aligned",
        role="table",
        data_key=f"sentences-{number}",
    )
    parts += [table, tag("p", t("haarag.sentences.note"), class_="vs-note")]
    if entailed:
        judges = _judges(method)
        by = t("haarag.by", names=t("list.separator").join(judges))
        parts.append(tag("p", by, class_="vs-note"))
        parts += [judge_quality(name, t) for name in judges]
    parts.append(tag("h4", t("haarag.context"), class_="vs-label"))
    parts.append(evidence(_context(decision, number, sentences), t, id=f"context-{number}"))
    return parts


def _judges(method: MethodView) -> list[str]:
    """The models that were asked about sentences."""
    asking = {step.span for step in method.steps if step.step == "entail"}
    return list(dict.fromkeys(call.model for call in method.calls if call.span in asking))


def _sentence(
    sentence: SentenceAlignment, tau_a: float | None, names: list[str], key: str, t: Catalogue
) -> Html:
    verdict = sentence_verdict(sentence, tau_a)
    scores = sentence_scores(sentence, tau_a)
    source = sentence.evidence_passage or sentence.passage
    cells: list[Child] = [
        tag("span", shown(sentence.span.text), class_="vs-answer", dir="auto"),
        tag(
            "span",
            tag("bdi", shown(source.title or source.id), class_="vs-chip"),
            _evidence_sentence(sentence, verdict),
            tag("span", score_value(scores[1]), class_="vs-note vs-num"),
            class_="vs-evidence-cell",
        ),
        *(_measured(score, t) for score in (scores[0], *scores[2:])),
        verdict_badge(verdict, t),
    ]
    row = (
        tag("td", cell, role="cell", data_label=name)
        for cell, name in zip(cells, names, strict=True)
    )
    return tag("tr", row, role="row", class_=f"vs-row-{verdict.replace('_', '-')}", data_key=key)


def _evidence_sentence(sentence: SentenceAlignment, verdict: Verdict) -> Html | None:
    """The nearest sentence; only one that is near enough is marked as bearing the other out."""
    if sentence.evidence is None:
        return None
    name, css = ("span", "vs-answer") if verdict == "doubtful" else ("mark", "vs-mark")
    return tag(name, shown(sentence.evidence.text), class_=css, dir="auto")


def _measured(score: Score, t: Catalogue) -> Html:
    return tag(
        "span",
        gauge(score, t),
        tag("span", score_value(score), class_="vs-num"),
        class_="vs-measured",
    )


def _context(
    decision: HaaragDecision, number: int, sentences: tuple[SentenceAlignment, ...]
) -> list[EvidenceItem]:
    """The chunks the draft was written from, with the sentences that bear it out marked."""
    tau_a = decision.thresholds.tau_a
    marks: dict[str, list[tuple[int, int]]] = {}
    for sentence in sentences:
        if sentence_verdict(sentence, tau_a) == "doubtful":
            continue
        if sentence.evidence is not None and sentence.evidence_passage is not None:
            spans = marks.setdefault(sentence.evidence_passage.text, [])
            spans.append((sentence.evidence.start, sentence.evidence.end))
    return [
        EvidenceItem(passage, marks=tuple(marks.get(passage.text, ())))
        for passage in decision.drafts[number].context
    ]


def _outcome(
    view: RunView,
    method: MethodView,
    decision: HaaragDecision,
    language: Language,
    t: Catalogue,
) -> list[Child]:
    parts: list[Child] = []
    if decision.diverges_at is not None:
        parts.append(notice(t(f"diverges.{decision.reason}"), "diverges"))
    elif decision.answer is None:
        parts.append(tag("p", t("ask.no_answer"), class_="vs-note") if view.over else _reserved())
    else:
        answer = decision.answer
        parts.append(tag("p", t(f"haarag.stopped.{decision.stopped}"), class_="vs-strong"))
        if answer.text != answer.original:
            parts.append(diff_html(answer.original, answer.text, language, t, form="side"))
        elif len(method.drafts) > 1:
            parts.append(tag("p", shown(answer.text), class_="vs-answer", dir="auto"))
        flags = (tag("li", t(f"flag.{flag}"), class_="vs-flag") for flag in answer.flags)
        parts.append(tag("ul", flags, class_="vs-flags") if answer.flags else None)
    parts.append(tag("p", t("haarag.limits"), class_="vs-note"))
    return [tag("div", parts, class_="vs-card vs-padded vs-stack", data_key="outcome")]


def _being_written(step: StepView, number: int, t: Catalogue) -> Html:
    text = tag("p", shown(step.text), class_="vs-answer", dir="auto") if step.text else _reserved()
    return tag(
        "article",
        tag("h3", t("haarag.iteration", number=number + 1), class_="vs-step-title"),
        text,
        class_="vs-card vs-padded vs-step",
        aria_busy="true",
        data_key=f"draft-{number}",
    )


def _behind(
    method: MethodView, judged: Judged | None, score: Score, id: str, t: Catalogue
) -> Html | None:
    if judged is None:
        return None
    return call_list(calls_behind(method, judged, score), t, id=id)


def _reserved() -> Html:
    return tag("span", class_="vs-reserved", aria_hidden="true")
