"""Recorded runs in lists: what each method does in them, worded in both languages."""

from __future__ import annotations

from typing import get_args

import pytest

from components.ask import (
    Part,
    nowhere_note,
    outcomes_in,
    recording_brief,
    recording_card,
    recordings_note,
)
from components.base.html import tag
from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from pipelines.samples.record import FAILS, SHOWS
from pipelines.store.exchange import (
    ChosenRun,
    Outcome,
    Recording,
    RecordingChoice,
    choice,
    recordings,
)
from tests.components.html_tree import read
from tests.snapshots import Snapshot

CHOSEN = ChosenRun(
    run="one",
    answer="Hope & Hot Springs",
    shows={"slm": "catches", "drad": "corrects"},
    fails={"ever": "misses"},
)
ONE = Recording(
    id="sample-one",
    question="Who was <b>Ada</b>?",
    language="en",
    methods=("drad", "ever", "rowen", "slm"),
    chosen=CHOSEN,
)
WHY = RecordingChoice(
    recorded={
        "one": {"rowen": "lucky", "drad": "corrects", "ever": "misses", "slm": "catches"},
        "two": {"drad": "confirms"},
    },
    runs=(CHOSEN,),
)


PLAIN = ONE.model_copy(update={"chosen": ChosenRun(run="one")})


@pytest.mark.parametrize("language", LANGUAGES)
def test_recorded_runs(language: Language, snapshot: Snapshot):
    """What works and what fails in a run, in brief and as a card; how many were recorded."""
    t = Catalogue(language)
    for state, one in (("a run", ONE), ("a run that shows nothing", PLAIN)):
        for part in get_args(Part):
            snapshot(recording_card(one, part, t), state=f"{state}: {part}")
        snapshot(recording_brief(one, t), state=f"{state}: in brief")
    for words in (recordings_note(WHY, t), *(nowhere_note(WHY, one, t) for one in get_args(Part))):
        snapshot(tag("p", words))


def test_names_stay_text(t: Catalogue):
    assert read(recording_card(ONE, "works", t)).all("b") == []
    assert nowhere_note(RecordingChoice(), "works", t) == ""
    assert all(outcomes_in(PLAIN, part) == {} for part in get_args(Part))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("outcome", [*SHOWS, *FAILS])
def test_every_outcome_that_is_shown_is_worded(outcome: Outcome, language: Language):
    part: Part = "works" if outcome in SHOWS else "fails"
    found: dict[str, Outcome] = {"drad": outcome}
    chosen = (
        ChosenRun(run="one", shows=found) if part == "works" else ChosenRun(run="one", fails=found)
    )
    one = ONE.model_copy(update={"chosen": chosen})
    html = recording_card(one, part, Catalogue(language))
    assert read(html).one("li").text().startswith("DRAD ")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shipped_runs_are_told_in_both_languages(language: Language):
    t = Catalogue(language)
    assert recordings()
    assert str(len(choice().recorded)) in recordings_note(choice(), t)
    for one in recordings():
        for part in get_args(Part):
            html = read(recording_card(one, part, t))
            assert len(html.all("li")) == len(outcomes_in(one, part))
            assert one.question in html.text()
            assert one.chosen.answer in html.text()
