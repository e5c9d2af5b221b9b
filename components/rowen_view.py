"""The Rowen page of a run: agreement, the decision, every comparison, evidence and repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.calls import call_list, calls_within
from components.diff import diff_html
from components.evidence import EvidenceItem, evidence
from components.judge_quality import judge_quality
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.names import named
from components.notices import run_notices
from components.numbers import comparison
from components.rowen_table import PairTable, language_tag, reasoning_note
from components.run_view import supporting
from components.scores import score_line
from components.sections import notice, section
from pipelines.methods.replies.parsing import visible
from pipelines.methods.rowen.decision import RowenDecision, conclude
from pipelines.methods.rowen.path import read_pair
from pipelines.methods.rowen.repair import fused
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, Side, sides_of
from pipelines.run.events import Retrieved
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language

__all__ = ["rowen_view"]


def rowen_view(
    view: RunView, decision: RowenDecision | None, settings: RowenSettings, t: Catalogue
) -> str:
    """Everything Rowen did in the run; `decision` None while it goes on."""
    method = view.methods.get("rowen")
    error = (method.error if method else None) or view.error
    parts: list[Child] = [run_notices(view, error, t)]
    if method is not None:
        check = _check_of(view, method, decision, settings)
        if check is not None:
            parts += [
                section("decision", t("rowen.decision"), *_decision(check, t)),
                section("pairs", t("rowen.pairs"), _table(check, t)),
                section("evidence", t("rowen.evidence"), *_evidence(check, t)),
            ]
        parts.append(section("change", t("rowen.change"), _change(view, method, decision, t)))
    return tag("div", parts, class_="vs-run vs-rowen", data_key="rowen")


@dataclass(frozen=True)
class _Check:
    """The check of a run and what is made of it: `final` when it came to its end and was decided.

    `current` is the decision, or what the comparisons so far would lead to; `main` is what the main
    model is called.
    """

    method: MethodView
    plan: RowenPlan
    settings: RowenSettings
    current: RowenDecision
    over: bool
    final: bool
    main: str = ""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The comparisons to show: those the settings want, of those that were made."""
        wanted = sides_of(self.current.variant) if self.current.variant else ()
        return tuple(side for side in wanted if side in self.plan.sides) or self.plan.sides


def _check_of(
    view: RunView, method: MethodView, decision: RowenDecision | None, settings: RowenSettings
) -> _Check | None:
    step = next((step for step in method.steps if step.step == "check"), None)
    if step is None:
        return None
    plan = RowenPlan.model_validate(step.detail)
    if decision is not None and decision.variant is not None:
        current = decision
    else:
        pairs = [read_pair(event) for event in method.judged if event.what == "pair"]
        planned = sum(step.step == "pair" for step in method.steps)
        current = conclude(settings, plan, pairs, planned)
    ended = any(step.step == "decide" for step in method.steps)
    final = ended and current is decision and current.reason != "rowen_stopped"
    main = view.header.spec.models["main"].name if view.header else ""
    return _Check(method, plan, settings, current, view.over, final, main)


def _decision(check: _Check, t: Catalogue) -> list[Child]:
    current = check.current
    parts: list[Child] = [
        tag("p", _sentence(check, t), class_="vs-strong", data_key="sentence"),
        tag("div", _scores(check, t), class_="vs-rowen-scores", data_key="scores"),
    ]
    if current.diverges_at is not None:
        parts.append(notice(t(f"diverges.{current.reason}"), "diverges"))
    flags = _flags(check)
    if flags:
        items = (tag("li", named("flag", flag, t), class_="vs-flag") for flag in flags)
        parts.append(tag("ul", items, class_="vs-flags", data_key="flags"))
    notes = (tag("li", note) for note in _notes(check, t))
    parts.append(tag("ul", notes, class_="vs-source-notes", data_key="notes"))
    if check.plan.judge:
        parts.append(judge_quality(check.plan.judge, t))
    return parts


def _sentence(check: _Check, t: Catalogue) -> str:
    current = check.current
    totals = {f"{side}_total": decided for side, decided in current.decided.items()}
    if not check.final and not any(current.decided.values()):
        return t("rowen.uncompared" if check.over else "rowen.open")
    agreeing = t(f"rowen.agree.{current.variant}", **current.agree, **totals)
    if not check.final:
        return t("rowen.so_far", counts=agreeing)
    if current.z is None or current.threshold is None:
        return t("rowen.uncompared" if current.reason == "rowen_side" else "rowen.undecidable")
    value, _, threshold = comparison(current.z, current.threshold)
    key = "rowen.retrieves" if current.retrieve else "rowen.keeps"
    return t(key, counts=agreeing, value=value, threshold=threshold)


def _scores(check: _Check, t: Catalogue) -> list[Html]:
    """The gauges: the parts first, then what is compared with the threshold."""
    order = ("rowen_cl", "rowen_cm", "rowen_hybrid", "rowen_normalised")
    lines = []
    for score in sorted(check.current.scores, key=lambda one: order.index(one.name)):
        behind = follows = None
        if score.threshold is None and score.value is not None:
            follows = t("rowen.part")
        if not check.final:
            # What is not complete is not judged yet.
            score = score.model_copy(update={"flagged": False})
            follows = follows or t("rowen.open")
        elif score.behind:
            calls = calls_within(check.method, score.behind)
            behind = call_list(calls, t, id=f"behind-{score.name}")
        lines.append(tag("div", score_line(score, t, follows, behind), data_key=score.name))
    return lines


def _flags(check: _Check) -> Sequence[str]:
    answer, plan = check.current.answer, check.plan
    if answer is not None:
        return answer.flags
    stands_in = plan.verifier != "model" and "cm" in check.sides
    return [f"verifier_{plan.verifier}"] if stands_in else []


def _notes(check: _Check, t: Catalogue) -> list[str]:
    current, plan = check.current, check.plan
    notes: list[str] = []
    # From the beginning: what is read must not move when the first answers are compared.
    who = "judge" if plan.judge else "main"
    notes.append(t(f"rowen.by.{who}", name=plan.judge or check.main))
    if undecided := sum(current.undecided.values()):
        notes.append(t("rowen.undecided", count=undecided))
    if check.over and (unjudged := sum(current.unjudged.values())):
        notes.append(t("rowen.unjudged", count=unjudged))
    if check.settings.soft and current.pairs:
        notes.append(t("rowen.soft"))
    if "cl" in check.sides:
        source, target = (t(f"language.{code}") for code in (plan.source, plan.target))
        notes.append(t("rowen.languages", source=source, target=target))
    return notes


def _table(check: _Check, t: Catalogue) -> Html:
    return PairTable(
        check.method,
        check.plan,
        check.sides,
        t,
        wanted=check.settings.k,
        over=check.over,
        soft=check.settings.soft,
    ).html()


def _evidence(check: _Check, t: Catalogue) -> list[Child]:
    method = check.method
    if check.final and not check.current.retrieve:
        return [tag("p", t("rowen.not_needed"), class_="vs-empty", data_key="evidence")]
    steps = {step.span: step for step in method.steps if step.step in ("query", "search")}
    if not steps:
        key = "rowen.not_recorded" if check.over else "rowen.not_yet"
        return [tag("p", t(key), class_="vs-empty", data_key="evidence")]
    searches = sorted(
        (search for search in method.searches if search.span in steps),
        key=lambda search: _index(steps[search.span]),
    )
    parts: list[Child] = [_queries(searches, steps, t, over=check.over)]
    if check.over or any(step.step == "repair" for step in method.steps):
        parts.append(_passages(method, searches, check.settings.passages, t))
    return parts


def _queries(
    searches: Sequence[Retrieved], steps: Mapping[str, StepView], t: Catalogue, *, over: bool
) -> Html:
    items = []
    for search in searches:
        found = t("rowen.found", count=len(search.passages))
        outcome = t("rowen.search_failed") if search.error else found
        query = tag("span", shown(search.query), class_="vs-query", dir="auto")
        key = f"query-{_index(steps[search.span])}"
        count = tag("span", outcome, class_="vs-note vs-num")
        items.append(tag("li", query, count, data_key=key))
    if not over and any(step.outcome is None for step in steps.values()):
        items.append(tag("li", _reserved(), data_key="searching"))
    return tag("ul", items, class_="vs-rowen-queries", data_key="queries")


def _passages(method: MethodView, searches: Sequence[Retrieved], most: int, t: Catalogue) -> str:
    written = method.drafts[1].after if len(method.drafts) > 1 else ""
    found = {p.id: search.query for search in reversed(searches) for p in search.passages}
    items = [
        EvidenceItem(passage, found[passage.id], marks=supporting(passage.text, written))
        for passage in fused([search.passages for search in searches], most)
    ]
    return evidence(items, t, id="rowen-evidence")


def _change(
    view: RunView, method: MethodView, decision: RowenDecision | None, t: Catalogue
) -> Html:
    language: Language = view.header.language if view.header else "en"
    lang = language_tag(language)
    answer = decision.answer if decision is not None else None
    parts: list[Child] = []
    if method.drafts:
        original = method.drafts[0].after
        final = answer.text if answer is not None else original
        if decision is None and len(method.drafts) > 1:
            final = method.drafts[1].after
        if final != original:
            parts.append(diff_html(original, final, language, t, form="side"))
        else:
            parts.append(_plain(original, lang))
        if answer is not None and final == original:
            parts.append(tag("p", t("rowen.stays"), class_="vs-note"))
    else:
        written = "".join(step.text for step in method.steps if step.step == "draft")
        ended = tag("p", t("ask.no_answer"), class_="vs-note")
        parts.append(_plain(written, lang) if written else ended if view.over else _reserved())
    title = t("rowen.reasoning.first")
    parts.append(reasoning_note(_first_thoughts(method), title, "reasoning-first", lang))
    return tag("div", parts, class_="vs-card vs-padded vs-stack", data_key="change")


def _first_thoughts(method: MethodView) -> str:
    step = next((step for step in method.steps if step.step == "reason"), None)
    if step is None:
        return ""
    replies = [g.text for call in method.calls if call.span == step.span for g in call.generations]
    return visible(replies[-1] if replies else step.text)


def _plain(text: str, lang: str) -> Html:
    return tag("p", shown(text), class_="vs-answer", dir="auto", lang=lang)


def _reserved() -> Html:
    return tag("span", class_="vs-reserved", aria_busy="true", aria_hidden="true")


def _index(step: StepView) -> int:
    index = step.detail.get("index")
    return index if isinstance(index, int) else 0
