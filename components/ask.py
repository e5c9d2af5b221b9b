"""The Ask page of a run: answer, methods, calls and evidence, as one piece of HTML."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, get_args

from components.base.elements import (
    EvidenceItem,
    answer_text,
    button,
    counters,
    evidence,
    fold,
    reserved,
)
from components.base.html import Child, Html, shown, tag
from components.base.words import Catalogue, lang, method_names, named
from components.methods.together import together_head
from components.outcome import FinalAnswer, outcome_of
from components.page import illustration_note, loading_note, run_notices, section
from components.run.ask import (
    Original,
    agreement_words,
    clock,
    language_unsupported,
    method_cards,
    method_rows,
    original_of,
    passages_of,
    run_status,
    totals,
)
from components.run.calls import call_bars, timeline
from components.run.spending import spending
from components.run.text import diff_html, heatmap
from pipelines.base import SAMPLE_DATA, Language
from pipelines.engine.estimate import Account
from pipelines.engine.executor import left_out
from pipelines.engine.pool import Loading
from pipelines.methods.registry import METHODS
from pipelines.methods.together.verdict import answer_together
from pipelines.run.findings import SentenceChosen
from pipelines.run.view import RunView
from pipelines.samples.record import FAILS, SHOWS
from pipelines.store.exchange import Outcome, Recording, RecordingChoice


def run_bar(
    view: RunView, t: Catalogue, *, now: float | None = None, account: Account | None = None
) -> str:
    """Return the line that ticks while the run goes on; with `account`, under it what the run took
    against what it was expected to take and may take.
    """
    line = counters(t, status=run_status(view), seconds=clock(view, now), **totals(view)._asdict())
    spent = None if account is None else spending(account, t)
    return line if spent is None else tag("div.vs-run-bar", Html(line), spent, key="run-bar")


def ask_view(
    view: RunView, t: Catalogue, *, now: float | None = None, loading: Sequence[Loading] = ()
) -> str:
    """Return everything about the run. `now` is the present (seconds since the epoch) while
    it runs.

    `loading` says what is being prepared before the methods can begin.
    """
    question = view.header.spec.question if view.header else ""
    # What went wrong with the run, unless a method's card says so already.
    told = any(method.error == view.error for method in view.methods.values())
    calls = timeline(call_bars(view), t, now=None if view.over else clock(view, now))
    over_time = fold(t("ask.timeline.unfold"), calls, key="timeline-fold")
    return tag(
        "div.vs-run",
        illustration_note(view, t),
        tag("h2.vs-question", question, dir="auto", key="question"),
        None if view.over else loading_note(_own(loading, view), t),
        run_notices(view, None if told else view.error, t),
        results(view, t, now=now),
        section("timeline", t("ask.timeline"), over_time),
        section("evidence", t("evidence.title"), found_evidence(view, t)),
        key="run",
    )


def results(view: RunView, t: Catalogue, *, now: float | None = None) -> Html:
    """Return the answer before any correction, and beside it what becomes of it: in a sentence,
    as a change, and in a line a method.
    """
    rows, original = method_rows(view, now), original_of(view)
    text = "" if original is None or original.writing else original.text
    judged = _together(view, t)
    links = None if language_unsupported(view) else _links(view, t)
    found = [outcome_head(view, t, now=now), method_cards(rows, text, t), links]
    return tag(
        "div.vs-run-main",
        section("answer", _title(original, t), _answer(original, view, t)),
        section("methods", t("ask.results"), *found),
        # On a wide screen below the answer, on a phone below what the methods say of it.
        None if judged is None else tag("div.vs-run-together", judged, key="together"),
        key="main",
    )


def _title(original: Original | None, t: Catalogue) -> str:
    if original is None or original.method in ("direct", "drad"):
        return t("ask.original")
    return t("ask.original_of", name=named("method", original.method, t))


def outcome_head(view: RunView, t: Catalogue, *, now: float | None = None) -> Html | None:
    """Return whether the answer of a run holds, and what most methods answer in the end.

    None where the run has not begun, or was asked in a language that its model does not speak.
    """
    header = view.header
    if header is None or language_unsupported(view):
        return None
    rows, begun = method_rows(view, now), original_of(view)
    original = "" if begun is None or begun.writing else begun.text
    outcome = outcome_of(rows, original, header.spec.question, header.language)
    found = _outcome(outcome, original, header.language, t)
    words = agreement_words(rows, original, t, found)
    return None if words is None else tag("div.vs-outcome.vs-card.vs-padded", words, key="outcome")


def _outcome(outcome: FinalAnswer, original: str, language: Language, t: Catalogue) -> Html | None:
    if outcome.kind == "none":
        return None
    words = t(
        f"outcome.{outcome.kind}", count=len(outcome.methods), list=method_names(outcome.methods, t)
    )
    said = tag("strong.vs-outcome-phrase", outcome.phrase, dir="auto") if outcome.phrase else None
    change: Child = None
    if outcome.answer and not (outcome.phrase and original):
        change = answer_text(outcome.answer)
    elif outcome.kind == "corrected":
        change = diff_html(original, outcome.answer, language, t, brief=True)
    line = tag("p.vs-outcome-line", words, " ", said)
    return tag("div.vs-outcome-found", line, change, key="found")


def _together(view: RunView, t: Catalogue) -> Html | None:
    """Return the one verdict on the answer shown, once a detector that can tell has judged it."""
    direct = view.methods.get("direct") or next(iter(view.methods.values()), None)
    if direct is None or language_unsupported(view):
        return None
    found = answer_together(view, direct.name)
    return None if found is None else together_head(found, t)


def _own(loading: Sequence[Loading], view: RunView) -> list[Loading]:
    """Return what this run waits for; models of other visitors are not shown."""
    if view.header is None:
        return []
    spec = view.header.spec
    names = {spec.evidence.library, *(model.name for model in spec.models.values())}
    return [item for item in loading if item.name in names]


def evidence_items(view: RunView) -> list[EvidenceItem]:
    """Return every passage found, each once, with the methods that used it and the sentences that
    decided.
    """
    items: dict[str, EvidenceItem] = {}
    decided = {(one.passage, one.start, one.end) for one in _deciding(view)}
    for method in view.methods.values():
        for passage, query in passages_of(method):
            known = items.get(passage.id, EvidenceItem(passage, query))
            marks = tuple((start, end) for of, start, end in decided if of == passage.id)
            items[passage.id] = replace(
                known, methods=(*known.methods, method.name), marks=tuple(sorted(marks))
            )
    return list(items.values())


def _deciding(view: RunView) -> dict[SentenceChosen, list[str]]:
    """Return the sentences that answers rest on, with the methods that took them, in order."""
    found: dict[SentenceChosen, list[str]] = {}
    places: dict[tuple[str, int], SentenceChosen] = {}
    for method in view.methods.values():
        for event in method.judged:
            chosen = event.detail
            if isinstance(chosen, SentenceChosen) and chosen.form != "none":
                first = places.setdefault((chosen.passage, chosen.start), chosen)
                names = found.setdefault(first, [])
                names += [] if method.name in names else [method.name]
    return found


def _answer(original: Original | None, view: RunView, t: Catalogue) -> Html:
    if original is None:
        space = (reserved(style=f"width:{width}%") for width in (96, 88, 62))
        empty = tag("p.vs-note", t("ask.no_answer")) if view.over else space
        return tag("div.vs-answer-panel.vs-card.vs-padded", empty, key="panel")
    text = original.text
    if language_unsupported(view):
        body = tag("div.vs-card.vs-padded", answer_text(text))
    else:
        body = heatmap(text, original.tokens, original.entities, t=t, id="original")
    bare = tag("p.vs-note", t("ask.no_heat"))
    return tag(
        "div.vs-answer-panel" + (".vs-writing" if original.writing else ""),
        body,
        None if original.writing or original.tokens else bare,
        aria_busy=original.writing,
        key="panel",
    )


def _links(view: RunView, t: Catalogue) -> Html | None:
    """Return what leads on from the run: to the comparison, and to the methods it left out."""
    if not view.methods:
        return None
    compare = button(t("ask.open_compare"), "open", "compare", "open-compare")
    others = view.over and left_out(view)
    complete = button(t("ask.others"), "complete", "standard", "complete") if others else None
    return tag("div.vs-steps-links", compare, complete, key="links")


def found_evidence(view: RunView, t: Catalogue, *, folded: bool = True) -> str:
    """Return the sentences that answers rest on, and every passage found, as cards to unfold;
    or why there is none.
    """
    items = evidence_items(view)
    if not items and not view.over:
        return tag("p.vs-empty", t("ask.no_evidence_yet"), key="evidence")
    if not any(method.searches for method in view.methods.values()):
        return tag("p.vs-empty", t("evidence.unasked"), key="evidence")
    rests = [
        tag(
            "li",
            tag("q", chosen.sentence, dir="auto"),
            tag("span.vs-note", f" {chosen.title} · ", method_names(methods, t)),
            key=f"{chosen.passage}-{chosen.start}",
        )
        for chosen, methods in _deciding(view).items()
    ]
    decided = tag("ul.vs-deciding", rests, key="deciding") if rests else None
    cards = Html(evidence(items, t))
    if folded:
        cards = fold(t("evidence.all", count=len(items)), cards, key="evidence-fold")
    return tag("div.vs-evidence-found", decided, cards, key="found-evidence")


_EXAMPLES = {
    "en": ("en-001", "en-037", "en-016", "en-018", "en-027", "en-095"),
    "zh": ("zh-001", "zh-010", "zh-012", "zh-005", "zh-002", "zh-049"),
}


@cache
def examples(language: Language) -> tuple[str, ...]:
    """Return some of the sample questions in `language`."""
    with (SAMPLE_DATA / "questions.csv").open(encoding="utf-8", newline="") as file:
        questions = {row["id"]: row["question"] for row in csv.DictReader(file)}
    return tuple(questions[name] for name in _EXAMPLES[language])


# Recorded runs as lists show them: the question, and what each method does in it.

Part = Literal["works", "fails"]
"""The two lists: methods that do what they are for, and methods that fail."""


def outcomes_in(recording: Recording, part: Part) -> Mapping[str, Outcome]:
    """Return the methods that a run was chosen for in one of the two lists, each with what
    it does.
    """
    return recording.chosen.shows if part == "works" else recording.chosen.fails


def recording_card(recording: Recording, part: Part, t: Catalogue) -> Html:
    """Return what each method does in the run, and the question with its right answer."""
    found = outcomes_in(recording, part)
    lines = [
        tag("li", t(f"samples.outcome.{found[name]}", name=named("method", name, t)))
        for name in METHODS
        if name in found
    ]
    answer = recording.chosen.answer
    return tag(
        "div",
        tag("ul", lines, class_=f"recorded-{part}"),
        tag("p", shown(recording.question), dir="auto", lang=lang(recording.language)),
        tag("p", t("samples.right", answer=answer), class_="workbench-note") if answer else None,
    )


def recording_brief(recording: Recording, t: Catalogue) -> Html:
    """Return the question, and the methods that work in the run and those that fail, in a
    line each.
    """
    lists: list[Html] = []
    for part in get_args(Part):
        found = outcomes_in(recording, part)
        methods = [named("method", name, t) for name in METHODS if name in found]
        if methods:
            words = t(f"samples.brief.{part}", methods=t("list.separator").join(methods))
            lists.append(tag("ul", tag("li", words), class_=f"recorded-{part}"))
    return tag("div", tag("p", recording.question), *lists, class_="recorded")


def recordings_note(choice: RecordingChoice, t: Catalogue) -> str:
    """Return what the recorded runs are, and how they were chosen."""
    return t("samples.recordings.note", count=len(choice.recorded))


def nowhere_note(choice: RecordingChoice, part: Part, t: Catalogue) -> str:
    """Return the methods that no recorded run could show in a list; empty where there are none."""
    wanted = SHOWS if part == "works" else FAILS
    recorded = choice.recorded.values()
    asked = {name for found in recorded for name in found}
    able = {name for found in recorded for name, outcome in found.items() if outcome in wanted}
    missing = [named("method", name, t) for name in METHODS if name in asked - able]
    if not missing:
        return ""
    methods = t("list.separator").join(missing)
    return t(f"samples.nowhere.{part}", count=len(recorded), methods=methods)
