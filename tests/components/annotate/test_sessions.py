"""What is shown of annotation sessions: cards, headings, links, progress, people, notes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from components.annotate.sessions import (
    MOST_NOTES,
    Agreed,
    LinkState,
    about_view,
    alpha_cell,
    collecting_view,
    empty_view,
    label_text,
    link_line,
    percent,
    problems_view,
    progress_view,
    session_card,
    share_text,
    size_view,
    state_of,
)
from components.base.words import LANGUAGES, Catalogue, starting_guidelines
from pipelines.annotation.agreement import AgreementRound
from pipelines.annotation.types import TASKS, SessionSpec, Task, label_adapter
from pipelines.annotation.watching import (
    ItemBrief,
    Note,
    PersonProgress,
    SessionProgress,
    SessionWatch,
    TaskWatch,
)
from pipelines.base import Language
from pipelines.evaluation.statistics.agreement import Coefficient, share
from pipelines.store.annotations import Link, SessionStanding, StoredSession, TaskStanding
from tests.components.html_tree import read
from tests.snapshots import Snapshot

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
HOSTILE = "<img src=x onerror=alert(1)>"
EN = Catalogue("en")


def standing(**more: object) -> SessionStanding:
    told: dict[str, object] = {
        "id": "s",
        "events": 3,
        "overlap": 2,
        "guidelines": 1,
        "closed": None,
        "spec": {},
        "people": 2,
        "tasks": {"sentence": TaskStanding(items=10, gold=2, given=5, finished=1)},
    }
    return SessionStanding.model_validate({**told, **more})


def stored(name: str = "Clinton") -> StoredSession:
    return StoredSession(
        id="s",
        owner="me",
        name=name,
        created=NOW,
        closed=None,
        seed="0",
        overlap=2,
        guidelines=1,
        spec={},
        items=12,
    )


def link(**more: object) -> Link:
    told: dict[str, object] = {
        "id": "a",
        "session": "s",
        "role": "join",
        "annotator": None,
        "created": NOW,
        "expires": None,
        "revoked": None,
    }
    return Link.model_validate({**told, **more})


def person(**more: object) -> PersonProgress:
    told: dict[str, object] = {
        "number": 0,
        "name": "Ann",
        "kind": "person",
        "labelled": 12,
        "skipped": 1,
        "changed": 3,
        "fast": 2,
        "seconds": 240.0,
        "median_seconds": 18.0,
        "gold": share(5, 6),
        "overruled": share(0, 0),
    }
    return PersonProgress.model_validate({**told, **more})


def task(**more: object) -> TaskWatch:
    told: dict[str, object] = {
        "task": "sentence",
        "items": 10,
        "finished": 4,
        "given": 13,
        "wanted": 20,
        "gold": 2,
        "now": Coefficient(value=0.62, low=0.4, high=0.8, n=5),
        "half": 0.2,
        "half_then": 0.141,
    }
    return TaskWatch.model_validate({**told, **more})


def watch(*notes: Note, people: tuple[PersonProgress, ...] = (), **more: object) -> SessionWatch:
    progress = SessionProgress(
        items=10, finished=4, missing=7, needs={0: 4, 1: 5, 2: 1}, people=people
    )
    return SessionWatch(progress=progress, overlap=2, tasks=(task(**more),), notes=notes)


STANDINGS: dict[str, dict[str, object]] = {
    "going on": {},
    "nobody joined": {"people": 0},
    "closed": {"closed": NOW},
    "all labels": {"overlap": 1, "tasks": {"span": TaskStanding(items=3, given=3)}},
    "no items": {"tasks": {}},
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_sessions(language: Language, snapshot: Snapshot):
    """Cards in every state, with agreement and without, the rules, links, sizes, an empty page."""
    t = Catalogue(language)
    agreed = Agreed("sentence", Coefficient(value=0.71, n=5))
    # 5 of 10 items times 2 people: 25 %.
    snapshot(session_card(stored(), standing(), agreed, "today", t), state="with agreement")
    for state, more in STANDINGS.items():
        snapshot(session_card(stored(), standing(**more), None, "today", t), state=state)
    snapshot(about_view(standing(), SessionSpec(show="never"), t), state="the rules")
    links: tuple[tuple[str, LinkState, str], ...] = (
        ("annotator", "valid", "Friday"),
        ("join", "valid", ""),
        ("join", "withdrawn", ""),
    )
    for role, state, end in links:
        line = link_line(link(role=role), state, "Ann", "Monday", end, t)
        snapshot(line, state=f"a link: {role}, {state}")
    sizes: dict[Task, int] = {"sentence": 12, "answer": 3}
    snapshot(size_view(sizes, ["sentence", "answer"], 2, t), state="the size of two tasks")
    snapshot(size_view(sizes, [], 2, t), state="no task chosen")
    snapshot(problems_view(list("abcdefg"), t), state="sources that gave nothing")
    snapshot(collecting_view(3, 1000, t), state="reading")
    snapshot(empty_view(t), state="no session")


def test_a_card_without_agreement_leaves_it_out():
    agreed = Agreed("sentence", Coefficient(value=None, why="no_items"))
    assert "alpha" not in session_card(stored(), standing(), agreed, "today", EN)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.001, "<1"), (0.25, "25"), (0.999, "99"), (1.0, "100")],
)
def test_a_percentage_is_never_rounded_to_all_or_nothing(value: float, text: str):
    assert percent(value) == text


def test_a_link_is_valid_until_it_expires_or_is_withdrawn():
    assert state_of(link(), NOW) == "valid"
    assert state_of(link(expires=NOW), NOW) == "expired"
    assert state_of(link(expires=NOW + timedelta(days=1)), NOW) == "valid"
    assert state_of(link(expires=NOW, revoked=NOW), NOW) == "withdrawn"


@pytest.mark.parametrize(
    ("value", "sign", "said"),
    [
        (0.9, "✓", "0.90 ≥ 0.80: reliable"),
        (0.7, "?", "0.70 < 0.80: enough for tentative conclusions"),
        (0.41, "✗", "0.41 < 0.67: too low to rely on"),
        (-0.2, "✗", "-0.20 < 0.67: too low to rely on"),
    ],
)
def test_alpha_stands_beside_its_threshold(value: float, sign: str, said: str):
    shown = read(alpha_cell(Coefficient(value=value, n=7), EN)).text()
    assert said in shown
    assert sign in shown


@pytest.mark.parametrize("why", ["no_items", "one_person", "all_equal", "few_resamples", ""])
def test_a_missing_alpha_says_why(why: str):
    found = Coefficient.model_validate({"value": None, "why": why})
    assert len(read(alpha_cell(found, EN)).text()) > 5


def test_a_share_has_its_interval_and_its_number():
    # Wilson: 5 of 6.
    assert share_text(share(5, 6), EN) == "0.83 [0.44, 0.97] of 6"
    assert share_text(share(0, 0), EN) == "–"


def test_labels_are_told_in_words():
    text = "Ada was born in Delft."
    for value, said in (
        ({"task": "answer", "verdict": "partly"}, "Partly correct"),
        ({"task": "span", "spans": []}, "No hallucination"),
        ({"task": "span", "spans": [{"start": 16, "end": 21}]}, "“Delft”"),
    ):
        assert label_text(label_adapter.validate_python(value), text, EN) == said


def test_sources_that_gave_nothing_are_listed_to_a_limit():
    assert problems_view([], EN) == ""
    assert "<img" not in problems_view([HOSTILE], EN)


@pytest.mark.parametrize("language", LANGUAGES)
def test_guidelines_to_begin_with_have_a_part_for_each_task(language: Language):
    whole = starting_guidelines(TASKS, language)
    assert whole.count("\n## ") == len(TASKS)
    assert whole.startswith("# ")
    one = starting_guidelines(("span",), language)
    assert one.count("\n## ") == 1
    assert len(one) < len(whole)


@pytest.mark.parametrize("language", LANGUAGES)
def test_progress(language: Language, snapshot: Snapshot):
    """Labels, what is missing, people, agreement over the labels, what more labels would bring."""
    first, second = (
        AgreementRound(
            labels=count,
            so_far=Coefficient(value=value, n=5),
            recent=Coefficient(value=None, why="no_items"),
        )
        for count, value in ((10, 0.5), (20, 0.75))
    )
    imported = person(number=1, name="Bo", kind="imported", seconds=0, median_seconds=None)
    # One round alone says nothing about a course.
    for state, found in {
        "nobody": watch(),
        "people are missing": watch().model_copy(update={"lacking": 1}),
        "one round": watch(rounds=(first,)),
        "two rounds": watch(rounds=(first, second)),
        "people": watch(people=(person(), imported)),
    }.items():
        snapshot(progress_view(found, SessionSpec(), Catalogue(language)), state=state)


def test_progress_in_numbers():
    text = read(progress_view(watch(), SessionSpec(), EN)).text()
    assert "13 of 20 labels (65 %)" in text
    assert "0.62 < 0.67: too low to rely on" in text
    assert "7 more labels: the interval of alpha shrinks from ±0.20 to about ±0.14" in text


def test_names_of_people_stay_text():
    html = progress_view(watch(people=(person(name=HOSTILE),)), SessionSpec(), EN)
    # 12 labels in 240 seconds.
    assert "180" in read(html).text()
    assert "<img" not in html


def test_notes_open_runs_only_for_their_owner():
    item = ItemBrief(number=3, task="sentence", text=HOSTILE, run="r1")
    notes = [
        Note(kind="stuck", item=item),
        Note(kind="gap", item=item, text="Dates?"),
        Note(kind="skip", item=item, who=HOSTILE, text=HOSTILE),
        Note(kind="comment", item=item, who="Ann", text="Odd."),
    ]
    html = progress_view(watch(*notes), SessionSpec(), EN, opens_runs=True)
    assert html.count('data-action="open_run"') == 4
    assert "Item 4, Sentences" in html
    assert "1 gap in the guidelines" in html
    assert "<img" not in html
    assert "open_run" not in progress_view(watch(*notes), SessionSpec(), EN)


def test_notes_are_not_endless():
    item = ItemBrief(number=0, task="span", text="Ada.")
    notes = [Note(kind="comment", item=item, who="Ann", text="Hm.")] * (MOST_NOTES + 3)
    html = progress_view(watch(*notes), SessionSpec(), EN)
    assert html.count("Hm.") == MOST_NOTES
    assert "and 3 more" in html
