"""The DRAD page of a run: what was doubtful, what was searched for, what was written instead."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.elements import divergence, flag_list, notice, score_line, verdict_badge
from components.evidence import EvidenceItem, evidence
from components.figures import entities_figure, profile_figure
from components.heatmap import MEASURES, EntityMark, entity_table, heatmaps
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue, named, probability
from components.page import run_notices, section
from components.run_view import entity_marks, language_unsupported, supporting
from components.theme import Theme
from pipelines.run.events import Judged, Revised, Score
from pipelines.run.findings import DetectorThresholds, DraftMeasured, EntityReading
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language, Token

__all__ = ["drad_figures", "drad_view"]


def drad_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Everything DRAD did in the run, as far as it has come."""
    method = view.methods.get("drad")
    error = (method.error if method else None) or view.error
    parts: list[Child] = [run_notices(view, error, t)]
    parts.append(divergence(diverges_at, t))
    if not language_unsupported(view):
        parts += _parts(view, method, t, running=not view.over)
    return tag("div", parts, class_="vs-run vs-drad", data_key="drad")


def _parts(view: RunView, method: MethodView | None, t: Catalogue, *, running: bool) -> list[Child]:
    if method is None or not (method.drafts or method.writing):
        if not running:
            return [notice(t("drad.no_draft"), "no-draft")]
        waiting = tag("span", class_="vs-reserved", aria_hidden="true")
        return [tag("div", waiting, class_="vs-answer-panel", aria_busy="true", data_key="waiting")]
    running = running and method.outcome is None
    language: Language = view.header.language if view.header else "en"
    parts: list[Child] = [
        section("drad-decision", t("drad.decision"), *_decision(method, t, running=running)),
        section("drad-text", t("drad.text"), _texts(method, t), _source(method, t)),
    ]
    steps = _steps(method, language, t, running=running)
    if steps:
        stack = tag("div", steps, class_="vs-stack")
        parts.append(section("drad-steps", t("drad.steps"), stack))
    if len(method.drafts) > 1:
        sides = diff_html(method.drafts[0].after, method.drafts[-1].after, language, t, form="side")
        change = tag("div", sides, class_="vs-card vs-padded")
        parts.append(section("drad-change", t("drad.change"), change))
    return parts


def drad_figures(view: RunView, t: Catalogue, theme: Theme) -> list[tuple[str, go.Figure]]:
    """Two titled figures of the original answer: its tokens along the text, and its entities."""
    method = view.methods.get("drad")
    if method is None or not method.drafts or language_unsupported(view):
        return []
    generation = method.drafts[0].generation
    if not any(token.logprob is not None for token in generation.tokens or ()):
        return []
    lines = _lines(method, 0)
    marks = entity_marks(method.judged, 0)
    return [
        (t("drad.profile"), profile_figure(generation.tokens or (), t, theme, **lines)),
        (t("drad.scatter"), entities_figure(generation.text, marks, t, theme, **lines)),
    ]


# --- Where the numbers come from ------------------------------------------------------------------


def _source(method: MethodView, t: Catalogue) -> Html:
    """Whose probabilities these are, what they leave out, and which thresholds are in force."""
    details = [step.detail for step in method.steps]
    measured = next((one for one in details if isinstance(one, DraftMeasured)), DraftMeasured())
    notes = [t(f"drad.source.{measured.confidence}")]
    tokens = (method.drafts[0].generation.tokens or ()) if method.drafts else ()
    cut = [token for token in tokens if token.top_k is not None]
    if cut:
        tail = sum(token.tail_mass for token in cut) / len(cut)
        k = max(token.top_k or 0 for token in cut)
        notes.append(t("drad.entropy.bound", k=k, tail=probability(tail)))
    elif any(token.entropy is not None for token in tokens):
        notes.append(t("drad.entropy.full"))
    limits = next((one for one in details if isinstance(one, DetectorThresholds)), None)
    if limits is not None and (limits.entropies or limits.theta_2_source == "off"):
        key = f"drad.theta_2.{limits.theta_2_source}"
        value = "–" if limits.theta_2 is None else f"{limits.theta_2:.2f}"
        notes.append(t(key, value=value, model=visible(limits.model)))
    if method.recognizer:
        rules = method.recognizer == "rules"
        name = t("drad.rules") if rules else visible(method.recognizer)
        notes.append(t("drad.ner", name=name))
    items = (tag("li", note) for note in notes)
    return tag("ul", items, class_="vs-source-notes", data_key="source")


# --- What was decided about the original ----------------------------------------------------------


def _decision(method: MethodView, t: Catalogue, *, running: bool) -> list[Child]:
    answer = next((event for event in method.judged if event.what == "answer"), None)
    entities = [e for e in method.judged if e.what == "entity" and e.draft == 0]
    if answer is None and (running or not entities):
        # Version 0.1 recorded verdicts on entities alone.
        words = t("step.detect" if running else "drad.no_entities")
        return [tag("p", words, class_="vs-note", data_key="undecided")]
    parts: list[Child] = []
    if answer is not None:
        parts.append(tag("p", verdict_badge(answer.verdict, t), data_key="verdict"))
    parts.append(_found(method, entities, t))
    if answer is not None and answer.scores:
        score = answer.scores[0]
        parts.append(score_line(score, t, behind=_behind(method, answer, score, t)))
    if method.answer is not None:
        corrections = sum(draft.reason == "corrected" for draft in method.drafts)
        key = "drad.corrected" if corrections else "drad.stays"
        parts.append(tag("p", t(key, count=corrections), class_="vs-note"))
        parts.append(flag_list(method.answer.flags, t, "drad-flags"))
    return parts


def _found(method: MethodView, entities: Sequence[Judged], t: Catalogue) -> Html:
    skips = bool(method.settings.get("skip_repeats"))
    doubtful = [event for event in entities if event.verdict == "doubtful"]
    counted = [event for event in doubtful if not (skips and _repeats(event))]
    if not entities:
        words = t("drad.no_entities")
    elif not counted:
        words = t("drad.clean")
    else:
        names = visible(t("list.separator").join(event.text for event in counted))
        words = t("drad.doubtful", count=len(counted), total=len(entities), list=names)
    skipped = len(doubtful) - len(counted)
    more = tag("span", t("drad.skipped", count=skipped), class_="vs-note") if skipped else None
    return tag("p", tag("span", words, class_="vs-strong"), " " if more else None, more)


def _repeats(event: Judged) -> bool:
    return isinstance(event.detail, EntityReading) and event.detail.repeats


# --- The drafts as heat, with a choice of draft and measure that needs no script ------------------


def _texts(method: MethodView, t: Catalogue) -> Html:
    """Every draft with both measures; the visitor chooses which of them is seen."""
    drafts = [
        _draft(draft.generation.text, draft.generation.tokens or (), method, draft.draft, t)
        for draft in method.drafts
    ]
    writing = method.writing
    if writing is not None and not method.drafts:
        drafts = [_draft(writing.text, writing.tokens, method, 0, t, writing=True)]
    if len(drafts) > 1:
        corrected = 0
        choices: list[Html] = []
        for panel, revised in zip(drafts, method.drafts, strict=True):
            corrected += revised.reason == "corrected"
            name = _draft_name(revised, corrected, t)
            choices.append(_chosen("drad-draft", str(revised.draft), name, panel))
        drafts = choices
    measures = tag(
        "fieldset",
        tag("legend", t("drad.measure"), class_="vs-label"),
        (
            _radio("drad-measure", measure, t(f"drad.measure.{measure}"), checked=number == 0)
            for number, measure in enumerate(MEASURES)
        ),
        class_="vs-choices",
        data_key="measure",
    )
    texts = tag(
        "div",
        drafts,
        class_="vs-drafts",
        role="group",
        aria_label=t("drad.draft"),
        data_key="drafts",
    )
    return tag("div", measures, texts, class_="vs-heats", data_key="heats")


def _draft_name(revised: Revised, corrected: int, t: Catalogue) -> str:
    if revised.reason == "resumed":
        return t("drad.draft.resumed")
    return t("drad.draft.corrected", number=corrected) if corrected else t("ask.original")


def _draft(
    text: str,
    tokens: Sequence[Token],
    method: MethodView,
    number: int,
    t: Catalogue,
    *,
    writing: bool = False,
) -> Html:
    marks: list[EntityMark] = entity_marks(method.judged, number)
    heats = heatmaps(text, tokens, marks, t=t, id=f"drad-heat-{number}")
    known = any(token.logprob is not None for token in tokens)
    judged = any(
        step.name == "detect" and step.at.draft == number and step.outcome == "ok"
        for step in method.steps
    )
    lines = _lines(method, number)
    return tag(
        "div",
        tag("div", heats, class_="vs-writing") if writing else heats,
        None if known or writing else tag("p", t("ask.no_heat"), class_="vs-note"),
        entity_table(text, tokens, marks, t, id=f"drad-entities-{number}", **lines)
        if marks or judged
        else None,
        class_="vs-draft-panel",
        data_key=f"draft-{number}",
    )


def _chosen(group: str, value: str, label: str, panel: Html) -> Html:
    """A choice with what it shows."""
    return tag(
        "div",
        _radio(group, value, label, checked=value == "0"),
        panel,
        class_="vs-draft",
        data_key=f"choice-{value}",
    )


def _radio(group: str, value: str, label: str, *, checked: bool) -> Html:
    id = f"{group}-{value}"
    return tag(
        "span",
        tag(
            "input",
            type="radio",
            name=group,
            value=value,
            id=id,
            class_="vs-choice-input",
            checked=checked,
            data_key=id,
        ),
        tag("label", label, for_=id, class_="vs-choice", data_key=f"{id}-label"),
        class_="vs-choice-box",
        data_key=f"{id}-box",
    )


def _lines(method: MethodView, draft: int) -> dict[str, float | None]:
    """The thresholds that the entities of a draft were compared with."""
    scores = next((e.scores for e in method.judged if e.what == "entity" and e.draft == draft), ())
    known = {score.name: score.threshold for score in scores}
    return {"theta_1": known.get("entity_probability"), "theta_2": known.get("entity_entropy")}


# --- The corrections ------------------------------------------------------------------------------


def _steps(method: MethodView, language: Language, t: Catalogue, *, running: bool) -> list[Html]:
    """Every correction: entity, query, passages, what was written instead."""
    steps = [step for step in method.steps if step.name in ("correct", "resume")]
    cards: list[Html] = []
    corrections = 0
    for number, step in enumerate(steps, start=1):
        corrections += step.name == "correct"
        resumes = step.name == "resume"
        title = t("step.resume") if resumes else t("drad.step", number=corrections)
        parts = _step(method, step, number, language, t, running=running)
        cards.append(
            tag(
                "article",
                tag("h3", title, class_="vs-step-title"),
                parts,
                class_="vs-card vs-padded vs-step",
                data_key=f"step-{number}",
            )
        )
    return cards


def _step(
    method: MethodView,
    step: StepView,
    number: int,
    language: Language,
    t: Catalogue,
    *,
    running: bool,
) -> list[Child]:
    search = next((s for s in method.searches if s.span == step.span), None)
    revised = next((r for r in method.drafts if r.span == step.span), None)
    target = _target(method, step)
    parts: list[Child] = []
    if target is not None:
        parts.append(_entity(method, target, t))
    if search is not None:
        query = tag("p", shown(search.query), class_="vs-answer vs-query", dir="auto")
        parts.append(_part(t("drad.query"), query))
    if revised is not None:
        changed = diff_html(revised.before, revised.after, language, t)
        parts.append(_part(t("drad.continuation"), changed))
    elif step.outcome == "ok":
        key = "flag.search_failed" if search is not None and search.error else "flag.no_evidence"
        parts.append(tag("p", t(key), class_="vs-flag"))
    elif step.outcome is None and running:
        written = tag("p", shown(step.text or "…"), class_="vs-answer", dir="auto")
        parts.append(_part(t("drad.continuation"), written))
    if search is not None and search.passages:
        written = revised.after[revised.start :] if revised is not None else ""
        items = [EvidenceItem(p, marks=supporting(p.text, written)) for p in search.passages]
        parts.append(_part(t("drad.passages"), evidence(items, t, id=f"step-{number}-evidence")))
    return parts


def _target(method: MethodView, step: StepView) -> Judged | None:
    return next(
        (
            event
            for event in method.judged
            if event.what == "entity"
            and (event.draft, event.start) == (step.at.draft, step.at.start)
        ),
        None,
    )


def _entity(method: MethodView, judged: Judged, t: Catalogue) -> Html:
    lines = (
        score_line(score, t, behind=_behind(method, judged, score, t))
        for score in judged.scores
        if score.flagged
    )
    return tag(
        "div",
        tag(
            "p",
            tag("bdi", shown(judged.text), class_="vs-step-entity"),
            tag("span", named("entity.label", judged.label, t), class_="vs-chip"),
            verdict_badge(judged.verdict, t),
            class_="vs-chips",
        ),
        lines,
        class_="vs-stack",
    )


def _behind(method: MethodView, judged: Judged, score: Score, t: Catalogue) -> Html:
    """The calls that wrote and measured an entity; scores of version 0.1 do not name them."""
    wrote = [
        draft.span for draft in method.drafts[: judged.draft + 1] if draft.start <= judged.start
    ]
    calls = calls_within(method, score.behind or wrote[-1:])
    return call_list(calls, t, id=f"behind-{judged.seq}-{score.name}")


def _part(title: str, content: Child) -> Html:
    return tag("div", tag("h4", title, class_="vs-label"), content, class_="vs-part")
