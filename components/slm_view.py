"""The SLM check's part of a page: verdict, answer, judges' matrix, means, judges, context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.calls import call_list, calls_within
from components.evidence import EvidenceItem, evidence
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.method_card import error_note
from components.run_view import supporting
from components.scores import gauge, score_line, score_title, score_value
from components.sections import notice, section
from components.slm_judges import judge_notes
from components.slm_matrix import matrix_table
from components.verdict import verdict_badge
from pipelines.methods.slm.decision import SlmDecision, weigh
from pipelines.methods.slm.reading import Reading, read_back
from pipelines.methods.slm.settings import SlmSettings
from pipelines.run.events import Score
from pipelines.run.view import MethodView, RunView

__all__ = ["slm_view"]

_OF_THE_ENGINE = ("language_unsupported", "empty")
"""Remarks that the engine adds behind the method's own."""


def slm_view(
    view: RunView, decision: SlmDecision | None, settings: SlmSettings, t: Catalogue
) -> str:
    """Everything about the check, as far as it has come.

    `decision` is what `settings` lead to; None while the run goes on, when what has been said so
    far is weighed with them.
    """
    method = view.methods.get("slm")
    if method is None:
        return tag("div", _reserved(not view.over), class_="vs-run", data_key="slm")
    running = not view.over and method.outcome is None
    asking = next((step for step in method.steps if step.step == "ask_judges"), None)
    reading = read_back(asking.detail, method.judged) if asking is not None else None
    known = decision
    if reading is not None and (known is None or not known.judges):
        known = weigh(reading, settings, complete=False)
    settled = known is not None and (
        _answered(method) or (decision is not None and decision.answer is not None)
    )
    parts: list[Child] = []
    if method.error is not None:
        parts.append(error_note(method.error, t, retry="slm"))
    parts.append(
        tag(
            "div",
            section("answer", t("slm.answer"), _answer(method, reading, known, t, running=running)),
            section(
                "decision",
                t("slm.decision"),
                *(
                    _decision(method, known, settings, t)
                    if known is not None and settled
                    else [_unsettled(t, running=running)]
                ),
                _flags(method, decision, reading, t),
            ),
            class_="vs-slm-main",
            data_key="main",
        )
    )
    if reading is not None and known is not None:
        means = _means(known, t) if settled else _unsettled(t, running=running)
        parts += _details(view, method, reading, known, settings, means, t, running=running)
    return tag("div", parts, class_="vs-run", data_key="slm")


def _details(
    view: RunView,
    method: MethodView,
    reading: Reading,
    decision: SlmDecision,
    settings: SlmSettings,
    means: Html,
    t: Catalogue,
    *,
    running: bool,
) -> list[Html]:
    body = (
        matrix_table(method, reading, decision, t, running=running)
        if decision.sentences and decision.judges
        else tag("p", t("slm.nothing"), class_="vs-empty", data_key="nothing")
    )
    found = [section("matrix", t("slm.matrix"), tag("p", t("slm.note"), class_="vs-note"), body)]
    found.append(
        tag(
            "div",
            section("means", t("slm.means"), means),
            section("judges", t("slm.judges"), judge_notes(decision, settings, reading.panel, t)),
            class_="vs-slm-main",
            data_key="more",
        )
    )
    found.append(section("context", t("slm.context"), _context(view, method, reading, t)))
    return found


def _answered(method: MethodView) -> bool:
    return any(event.what == "answer" for event in method.judged)


def _unsettled(t: Catalogue, *, running: bool) -> Html:
    """Room for what only follows once all judges have spoken, or that it never will."""
    return _reserved(running) if running else tag("p", t("slm.unfinished"), class_="vs-note")


def _reserved(running: bool) -> Html:
    return tag(
        "div",
        (
            tag("span", class_="vs-reserved", style=f"width:{width}%", aria_hidden="true")
            for width in (92, 64)
        ),
        class_="vs-answer-panel vs-slm-reserved",
        aria_busy="true" if running else None,
        data_key="reserved",
    )


def _answer(
    method: MethodView,
    reading: Reading | None,
    decision: SlmDecision | None,
    t: Catalogue,
    *,
    running: bool,
) -> Html:
    """The answer, each sentence underlined by its verdict; before that, as it is written."""
    if decision is None or reading is None:
        step = next((s for s in method.steps if s.step == "draft"), None)
        text = method.drafts[0].after if method.drafts else step.text if step else ""
        if not text:
            return _reserved(running) if running else tag("p", t("ask.no_answer"), class_="vs-note")
        body: list[Child] = [shown(text)]
    else:
        body, at = [], 0
        for number, sentence in enumerate(decision.sentences):
            heard = all(reading.cell(judge.role, number) for judge in decision.judges)
            verdict = decision.verdicts[number] if heard else "unchecked"
            css = f"vs-judged vs-verdict-{verdict}"
            label = tag("span", f" ({t(f'verdict.{verdict}')})", class_="vs-sr")
            body.append(shown(decision.text[at : sentence.start]))
            body.append(tag("span", shown(sentence.text), label, class_=css))
            at = sentence.end
        body.append(shown(decision.text[at:]))
        if not decision.sentences:
            return tag("p", t("flag.empty"), class_="vs-note")
    return tag("p", body, class_="vs-answer vs-card vs-padded", dir="auto", data_key="slm-answer")


def _decision(
    method: MethodView, decision: SlmDecision, settings: SlmSettings, t: Catalogue
) -> list[Child]:
    headline = decision.response[0] if decision.response else None
    parts: list[Child] = [
        tag("p", verdict_badge(decision.verdict, t), data_key="slm-verdict"),
    ]
    if headline is not None:
        calls = call_list(calls_within(method, headline.behind), t, id="slm-headline-calls")
        parts.append(score_line(headline, t, behind=calls))
        parts.append(tag("p", _threshold(decision, settings, t), class_="vs-note"))
    if decision.reason:
        parts.append(notice(t(f"diverges.{decision.reason}"), "diverges"))
    return parts


def _threshold(decision: SlmDecision, settings: SlmSettings, t: Catalogue) -> str:
    """Where the threshold comes from; a neutral one names the judges that call for it."""
    unmeasured = dict.fromkeys(
        visible(judge.name) for judge in decision.judges if judge.scale.source == "neutral"
    )
    return t(
        f"slm.threshold.{decision.threshold_source}",
        goal=t(f"setting.slm.tuned_for.{settings.tuned_for}"),
        judges=t("list.separator").join(unmeasured),
    )


def _flags(
    method: MethodView, decision: SlmDecision | None, reading: Reading | None, t: Catalogue
) -> Html | None:
    answer = decision.answer if decision is not None else None
    own = answer or method.answer
    flags = list(own.flags if own else reading.panel.flags if reading else ())
    flags += [f for f in (method.answer.flags if method.answer else ()) if f in _OF_THE_ENGINE]
    items = [tag("li", t(f"flag.{flag}"), class_="vs-flag") for flag in dict.fromkeys(flags)]
    return tag("ul", items, class_="vs-flags", data_key="slm-flags") if items else None


def _means(decision: SlmDecision, t: Catalogue) -> Html:
    """The response's score under every mean; the chosen one first, with its threshold."""
    return tag(
        "ol",
        (_mean(score, place == 0, t) for place, score in enumerate(decision.response)),
        class_="vs-slm-means",
        data_key="slm-means",
    )


def _mean(score: Score, chosen: bool, t: Catalogue) -> Html:
    return tag(
        "li",
        tag(
            "span",
            score_title(score, t),
            tag("span", t("slm.chosen"), class_="vs-chip") if chosen else None,
            class_="vs-score-name vs-chips",
        ),
        gauge(score, t),
        tag("span", score_value(score), class_="vs-score-value vs-num"),
        tag("span", t(f"formula.{score.formula}"), class_="vs-formula vs-note"),
        class_="vs-slm-mean" + (" vs-slm-chosen" if chosen else ""),
        aria_current="true" if chosen else None,
        data_key=score.name,
    )


def _context(view: RunView, method: MethodView, reading: Reading, t: Catalogue) -> str:
    recorded = _recorded(view)
    if recorded.get("context") == "given":
        given = tag("p", shown(str(recorded.get("passage", "")).strip()), class_="vs-answer")
        return tag("div", given, class_="vs-card vs-padded", data_key="slm-context")
    if not method.searches:
        return tag("p", t("slm.context.none"), class_="vs-empty", data_key="slm-context")
    items = [
        EvidenceItem(passage, search.query, marks=supporting(passage.text, reading.panel.text))
        for search in method.searches
        for passage in search.passages
    ]
    return evidence(items, t, id="slm-context")


def _recorded(view: RunView) -> Mapping[str, Any]:
    methods = view.header.spec.methods if view.header else ()
    return next((spec.settings for spec in methods if spec.name == "slm"), {})
