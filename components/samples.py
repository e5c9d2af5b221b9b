"""Recorded runs as lists show them: the question, and what each method does in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from components.markup import Html, shown, tag
from components.messages import Catalogue, lang, named
from pipelines.methods.registry import METHODS
from pipelines.samples.choosing import FAILS, SHOWS
from pipelines.store.recordings import Outcome, Recording, RecordingChoice

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
