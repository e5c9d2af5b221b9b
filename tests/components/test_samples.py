"""Recorded runs in lists: what each method does in them, worded in both languages."""

from __future__ import annotations

from typing import get_args

import pytest

from components.messages import Catalogue
from components.samples import (
    Part,
    nowhere_note,
    outcomes_in,
    recording_brief,
    recording_card,
    recordings_note,
)
from pipelines.samples.choosing import FAILS, SHOWS
from pipelines.store.recordings import (
    ChosenRun,
    Outcome,
    Recording,
    RecordingChoice,
    choice,
    recordings,
)
from pipelines.types import Language
from tests.components.html_tree import read

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


def lines(part: Part, t: Catalogue) -> list[str]:
    return [line.text() for line in read(recording_card(ONE, part, t)).all("li")]


def test_a_card_says_what_works_in_a_run(t: Catalogue):
    assert lines("works", t) == [
        "DRAD catches and corrects the wrong answer",
        "SLM check catches the wrong answer",
    ]
    card = read(recording_card(ONE, "works", t))
    assert "Who was <b>Ada</b>?" in card.text()
    assert "Right answer: Hope & Hot Springs" in card.text()
    assert card.all("b") == []


def test_a_card_says_what_fails_in_a_run(t: Catalogue):
    assert lines("fails", t) == ["EVER does not notice the wrong answer"]


def test_a_run_that_shows_nothing_has_no_list(t: Catalogue):
    plain = ONE.model_copy(update={"chosen": ChosenRun(run="one")})
    for part in get_args(Part):
        assert outcomes_in(plain, part) == {}
        card = read(recording_card(plain, part, t))
        assert card.all("li") == []
        assert "Right answer" not in card.text()
    assert read(recording_brief(plain, t)).text() == plain.question


def test_in_brief_the_methods_are_named_that_work_and_that_fail(t: Catalogue):
    brief = read(recording_brief(ONE, t))
    assert brief.one(".recorded-works").text() == "Works: DRAD, SLM check"
    assert brief.one(".recorded-fails").text() == "Fails: EVER"
    assert brief.one("p").text() == "Who was <b>Ada</b>?"


@pytest.mark.parametrize("language", ["en", "zh"])
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


def test_the_note_says_how_many_were_recorded(t: Catalogue):
    assert "135 million parameters" in recordings_note(WHY, t)
    assert "2 questions were recorded" in recordings_note(WHY, t)


def test_what_no_run_shows_is_said(t: Catalogue):
    said = nowhere_note(WHY, "works", t)
    assert said == "In none of the 2 recorded runs does this method do what it is for: Rowen, EVER."
    said = nowhere_note(WHY, "fails", t)
    assert said == "None of the 2 recorded runs shows a failure of Rowen, DRAD, SLM check."
    assert nowhere_note(RecordingChoice(), "works", t) == ""


@pytest.mark.parametrize("language", ["en", "zh"])
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
