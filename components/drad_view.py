"""The DRAD page of a run: what was doubtful, what was searched for, what was written instead."""

from __future__ import annotations

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.entities import entity_table
from components.evidence import EvidenceItem, evidence
from components.heatmap import heatmap
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import probability
from components.run_view import marks_of, supporting
from components.scores import score_line
from components.sections import notice, section
from components.units import Measure
from components.verdict import verdict_badge
from pipelines.methods.drad.path import DradDecision
from pipelines.methods.drad.settings import DradSettings
from pipelines.run.events import Judged, Retrieved, Revised
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language

__all__ = ["confidence_note", "decision_view", "steps_view"]


def decision_view(
    view: RunView,
    decision: DradDecision,
    settings: DradSettings,
    t: Catalogue,
    *,
    draft: int = 0,
    measure: Measure = "probability",
) -> str:
    """A draft with the verdicts that `settings` lead to, and what would follow from them."""
    drafts = view.methods["drad"].drafts
    marks = marks_of(decision.readings[draft], decision.verdicts[draft])
    generation = drafts[draft].generation
    thresholds = {"theta_1": settings.theta_1, "theta_2": settings.theta_2}
    return tag(
        "div",
        tag(
            "div",
            heatmap(
                generation.text,
                generation.tokens or (),
                marks,
                measure=measure,
                t=t,
                id="drad-heat",
            ),
            section("decision", t("drad.decision"), *_decision(view.methods["drad"], decision, t)),
            class_="vs-drad-main",
            data_key="text",
        ),
        entity_table(
            generation.text, generation.tokens or (), marks, t, id="drad-entities", **thresholds
        ),
        class_="vs-run",
        data_key="drad",
    )


def steps_view(view: RunView, t: Catalogue) -> str:
    """Every correction of the recorded run: entity, query, passages, what was written instead."""
    method = view.methods["drad"]
    language: Language = view.header.language if view.header else "en"
    steps = [step for step in method.steps if step.step in ("correct", "resume")]
    shown_steps = [
        _step(method, step, number, language, t) for number, step in enumerate(steps, start=1)
    ]
    if not shown_steps:
        words = t("drad.clean") if method.judged else t("drad.no_entities")
        shown_steps = [tag("p", words, class_="vs-empty", data_key="none")]
    return tag(
        "div",
        section("steps", t("drad.steps"), tag("div", shown_steps, class_="vs-stack")),
        section("change", t("drad.change"), _change(method, language, t)),
        class_="vs-run",
        data_key="steps",
    )


def confidence_note(view: RunView, t: Catalogue, *, recognizer: str = "") -> str:
    """Where the numbers come from, and what they leave out. `recognizer` found the entities."""
    method = view.methods["drad"]
    source = next(
        (str(s.detail.get("confidence", "logprobs")) for s in method.steps if s.step == "draft"),
        "logprobs",
    )
    notes: list[Child] = [tag("li", t(f"drad.source.{source}"))]
    generation = method.drafts[0].generation if method.drafts else None
    tokens = generation.tokens or () if generation else ()
    cut = [token for token in tokens if token.top_k is not None]
    if cut:
        tail = sum(token.tail_mass for token in cut) / len(cut)
        k = max(token.top_k or 0 for token in cut)
        notes.append(tag("li", t("drad.entropy.bound", k=k, tail=probability(tail))))
    elif any(token.entropy is not None for token in tokens):
        notes.append(tag("li", t("drad.entropy.full")))
    if recognizer:
        name = t("drad.rules") if recognizer == "rules" else visible(recognizer)
        notes.append(tag("li", t("drad.ner", name=name)))
    return tag("ul", notes, class_="vs-source-notes", data_key="source")


def _decision(method: MethodView, decision: DradDecision, t: Catalogue) -> list[Child]:
    parts: list[Child] = []
    drafts = method.drafts
    readings, verdicts = decision.readings[0], decision.verdicts[0]
    doubtful = [r.text for r, v in zip(readings, verdicts, strict=True) if v.doubtful]
    if not readings:
        parts.append(tag("p", t("drad.no_entities")))
    elif doubtful:
        names = visible(t("list.separator").join(doubtful))
        words = t("drad.doubtful", count=len(doubtful), total=len(readings), list=names)
        parts.append(tag("p", words, class_="vs-strong"))
    else:
        parts.append(tag("p", t("drad.clean"), class_="vs-strong"))
    if decision.score is not None:
        parts.append(score_line(decision.score, t, behind=_behind(method, 0, 0, "decision", t)))
    if decision.diverges_at is not None:
        parts.append(notice(t("drad.new_run", number=decision.diverges_at), "diverges"))
    elif decision.answer is not None:
        kept = t("drad.holds", count=len(decision.targets))
        parts.append(tag("p", kept, class_="vs-note"))
        if decision.answer.text == drafts[0].after:
            parts.append(tag("p", t("drad.stays"), class_="vs-note"))
    return parts


def _step(
    method: MethodView, step: StepView, number: int, language: Language, t: Catalogue
) -> Html:
    search = next((s for s in method.searches if s.span == step.span), None)
    revised = next((r for r in method.drafts if r.span == step.span), None)
    judged = _target(method, step)
    title = t("drad.step", number=number) if step.step == "correct" else t("step.resume")
    parts: list[Child] = []
    if judged is not None:
        parts.append(_entity(method, judged, t))
    if search is not None:
        parts.append(_query(search, t))
    if revised is not None:
        parts.append(_part(t("drad.continuation"), _continuation(revised, language, t)))
    elif step.outcome == "ok":
        key = "flag.search_failed" if search is not None and search.error else "flag.no_evidence"
        parts.append(tag("p", t(key), class_="vs-flag"))
    if search is not None and search.passages:
        parts.append(_part(t("drad.passages"), _passages(search, revised, t, number)))
    return tag(
        "article",
        tag("h3", title, class_="vs-step-title"),
        parts,
        class_="vs-card vs-padded vs-step",
        data_key=f"step-{number}",
    )


def _target(method: MethodView, step: StepView) -> Judged | None:
    detail = step.detail
    return next(
        (
            event
            for event in method.judged
            if event.draft == detail.get("draft") and event.start == detail.get("start")
        ),
        None,
    )


def _entity(method: MethodView, judged: Judged, t: Catalogue) -> Html:
    behind = _behind(method, judged.draft, judged.start, str(judged.seq), t)
    return tag(
        "div",
        tag(
            "p",
            tag("bdi", shown(judged.text), class_="vs-step-entity"),
            tag("span", named("entity.label", judged.label, t), class_="vs-chip"),
            verdict_badge(judged.verdict, t),
            class_="vs-chips",
        ),
        (score_line(score, t, behind=behind) for score in judged.scores if score.flagged),
        class_="vs-stack",
    )


def _behind(method: MethodView, draft: int, start: int, name: str, t: Catalogue) -> Html:
    """The calls that wrote or measured what stands at `start` of a draft.

    A kept beginning keeps the probabilities it was written with, unless drafts are measured anew:
    by samples while detecting, or by a proxy with every draft.
    """
    detected = [s.span for s in method.steps if s.step == "detect" and s.detail["draft"] == draft]
    proxy = any(s.detail.get("confidence") == "proxy" for s in method.steps)
    writing = next(
        (r for r in reversed(method.drafts[: draft + 1]) if r.start <= start or proxy),
        method.drafts[draft],
    )
    return call_list(calls_within(method, {writing.span, *detected}), t, id=f"behind-{name}")


def _query(search: Retrieved, t: Catalogue) -> Html:
    return _part(
        t("drad.query"), tag("p", shown(search.query), class_="vs-answer vs-query", dir="auto")
    )


def _continuation(revised: Revised, language: Language, t: Catalogue) -> str:
    return diff_html(revised.before, revised.after, language, t)


def _passages(search: Retrieved, revised: Revised | None, t: Catalogue, number: int) -> str:
    written = revised.after[revised.start :] if revised is not None else ""
    items = [
        EvidenceItem(passage, marks=supporting(passage.text, written))
        for passage in search.passages
    ]
    return evidence(items, t, id=f"step-{number}-evidence")


def _part(title: str, content: Child) -> Html:
    return tag("div", tag("h4", title, class_="vs-label"), content, class_="vs-part")


def _change(method: MethodView, language: Language, t: Catalogue) -> str:
    if not method.drafts:
        return tag("p", t("ask.no_answer"), class_="vs-note")
    before, after = method.drafts[0].after, method.drafts[-1].after
    return tag(
        "div",
        diff_html(before, after, language, t, form="side"),
        class_="vs-card vs-padded",
    )
