"""Sessions made of runs, evaluations, labelled data and files of sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from pipelines.annotation.formats import export_label_studio, export_session
from pipelines.annotation.labelling import standing_labels
from pipelines.annotation.sources import (
    Answers,
    Collected,
    Step,
    data_steps,
    evaluation_steps,
    make_session,
    read_session_file,
    run_steps,
)
from pipelines.annotation.types import MAX_TEXT, SessionSpec, SpanLabel
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.evaluation.beginning import create_evaluation
from pipelines.evaluation.plan import DataSet, EvaluationSpec, Item, System
from pipelines.run.events import MethodSpec, default_models
from pipelines.store import RunStore
from pipelines.store.exchange import export_lines, load_recording, recordings
from tests.pipelines.annotation.bench import item, join, label_all, lead_session

SAMPLE = recordings()[0].id


def collected(steps: Iterable[Step]) -> Collected:
    found = Collected()
    for one in steps:
        found.add(one)
    return found


def data(*items: Item) -> DataSet:
    return DataSet(name="texts", items=items, hash="0" * 64)


LABELLED = data(
    *(
        Item(id=f"t{number}", text=f"Ada was born in 19{number:02}.", hallucinated=number % 2 == 0)
        for number in range(10)
    )
)


def test_runs_and_samples_give_their_items_and_others_say_why_not(store: RunStore):
    run = store.import_run(export_lines(load_recording(SAMPLE)), "me")
    found = collected(run_steps(store, "me", [run, SAMPLE, "missing"]))
    assert [type(one) for one in found.problems] == [NotFoundError]
    own = {item.body.place.run for item in found.items.values()}
    assert own == {run, load_recording(SAMPLE).header.run}
    assert set(found.counts()) == {"concept", "span", "sentence", "comparison", "answer"}
    assert {item.body.task for item in found.chosen(("span",))} == {"span"}
    # Nobody else has this run.
    assert len(collected(run_steps(store, "you", [run])).problems) == 1


def test_items_that_two_runs_share_are_there_once():
    found = collected([Step([(item("span"), None)]), Step([(item("span"), None)])])
    assert len(found.items) == 1


def evaluated(store: RunStore, count: int) -> str:
    """An evaluation that has items but no answers."""
    spec = EvaluationSpec(
        data="capitals",
        data_hash="0" * 64,
        code="1",
        checks="questions",
        systems=(System(name="direct", method=MethodSpec(name="direct"), models=default_models()),),
    )
    items = [
        Item(id=f"q{number}", question=f"Who is {number}?", answers=("Ada",))
        for number in range(count)
    ]
    return create_evaluation(store.evaluations, "me", spec, items, "Capitals")


def test_drawn_items_of_an_evaluation_keep_their_probability(store: RunStore):
    evaluation = evaluated(store, 8)
    answers = Answers(evaluation, {position: [(SAMPLE, "direct")] for position in range(8)})
    found = collected(evaluation_steps(store, "me", answers, 2, 7))
    assert not found.problems
    assert {one.probability for one in found.items.values()} == {0.25}
    records = {one.body.place.record for one in found.items.values()}
    assert len(records) == 2
    assert {one.body.place.evaluation for one in found.items.values()} == {evaluation}
    # The same seed draws the same.
    assert collected(evaluation_steps(store, "me", answers, 2, 7)).items == found.items
    whole = collected(evaluation_steps(store, "me", answers, None, 7))
    assert {one.probability for one in whole.items.values()} == {1.0}
    assert len({one.body.place.record for one in whole.items.values()}) == 8


def test_an_answer_whose_run_was_deleted_is_left_out(store: RunStore):
    evaluation = evaluated(store, 2)
    answers = Answers(evaluation, {0: [("gone", "direct")], 1: [(SAMPLE, "direct")]})
    found = collected(evaluation_steps(store, "me", answers, None, 0))
    assert len(found.problems) == 1
    assert {one.body.place.record for one in found.items.values()} == {"q1"}


def test_one_text_that_is_too_long_does_not_keep_the_others_out():
    long = Item(id="long", text="a" * (MAX_TEXT + 1), hallucinated=True)
    found = collected(data_steps(data(*LABELLED.items, long)))
    assert len(found.problems) == 1
    assert "long" in found.problems[0].message
    assert found.counts()["answer"] == 10


def test_known_labels_become_control_items_and_an_imported_person(store: RunStore):
    found = collected(data_steps(LABELLED))
    assert len(found.controls(("answer",))) == 10
    lead = make_session(
        store,
        "me",
        "Texts",
        SessionSpec(tasks=("answer",)),
        found,
        overlap=1,
        guidelines="",
        controls=3,
        seed=1,
        keep="texts",
    )
    items = lead.items()
    gold = {one.number for one in items if one.gold is not None}
    assert (len(items), len(gold)) == (10, 3)
    assert not lead.spec.without_gold
    assert [one.kind for one in lead.annotators()] == ["imported"]
    labels = standing_labels(lead.events())
    # What is a control item is not compared with itself.
    assert {one.item for one in labels} == {one.number for one in items} - gold


def test_without_controls_the_session_says_so(store: RunStore):
    found = collected(data_steps(LABELLED))
    told = {"overlap": 1, "guidelines": ""}
    with pytest.raises(InvalidInputError, match="control items"):
        make_session(store, "me", "T", SessionSpec(tasks=("answer",)), found, **told)
    spec = SessionSpec(tasks=("answer",), without_gold=True)
    lead = make_session(store, "me", "T", spec, found, **told)
    assert lead.annotators() == []


def test_marked_spans_are_no_control_items():
    wrong = Item.model_validate(
        {
            "id": "a",
            "text": "Ada was here.",
            "hallucinated": True,
            "spans": [{"start": 0, "end": 3, "label": "major"}],
        }
    )
    right = Item(id="b", text="Ada was there.", hallucinated=False)
    found = collected(data_steps(data(wrong, right)))
    keys = found.controls(("span",))
    assert [found.known[key] for key in keys] == [SpanLabel()]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_a_file_of_a_session_gives_items_and_everybodys_labels(store: RunStore, ending: str):
    lead = lead_session(store)
    ann, bob = join(lead, "Ann", "Bob")
    label_all(ann)
    label_all(bob, {0: {"task": "concept", "verdict": "false"}})
    text = "".join(export_session(lead)) if ending == "jsonl" else export_label_studio(lead)
    found = read_session_file(f"session.{ending}", text)
    assert len(found.items) == 5
    assert {name: len(labels) for name, labels in found.people.items()} == {"Ann": 5, "Bob": 5}
    # On the first they disagree.
    assert len(found.known) == 4
    made = make_session(
        store,
        "me",
        "Again",
        SessionSpec(without_gold=True),
        found,
        overlap=1,
        guidelines="",
        keep="file",
    )
    assert [one.name for one in made.annotators()] == ["Ann", "Bob"]
    assert len(standing_labels(made.events())) == 10


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", "", "no session"),
        ("a.jsonl", '{"format": "other"}', "line 1"),
        ("a.json", "{", "no JSON"),
        ("a.json", json.dumps([{"data": {}}]), "line 1"),
    ],
)
def test_a_file_that_is_none_says_where(name: str, text: str, said: str):
    with pytest.raises(InvalidInputError, match=said):
        read_session_file(name, text)
