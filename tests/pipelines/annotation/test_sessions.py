"""Sessions by their links: what a lead, a newcomer and an annotator can do, and what they see."""

from __future__ import annotations

import json
from itertools import groupby
from secrets import token_hex

import pytest

from pipelines.annotation.formats import export_session
from pipelines.annotation.labelling import AssignedItem, ReadLabel, Worker, standing_labels
from pipelines.annotation.sessions import Invitation, Lead, create_session, enter
from pipelines.annotation.types import (
    Hidden,
    ItemPlace,
    ModelVerdict,
    SessionItem,
    SessionSpec,
    SpanLabel,
    parse_label,
)
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.store import RunStore
from pipelines.store.labelling import NothingToDo
from tests.pipelines.annotation.bench import TEXT, VALUES, item, join, label_all, lead_session, take


def test_a_session_of_every_task_from_the_invitation_to_the_end(store: RunStore):
    lead = lead_session(store, overlap=2)
    ann, bo = join(lead, "Ann", "Bo")
    assert (ann.session_name, ann.guidelines) == ("Ada", "Read the evidence.")
    assert ann.progress().left == 5
    assert label_all(ann) == label_all(bo) == 5
    assert [one.labels for one in lead.items()] == [2] * 5
    progress = ann.progress()
    assert (progress.labelled, progress.left, progress.seconds) == (5, 0, 25.0)
    assert ann.next() == NothingToDo(status="done")


def test_one_comes_back_by_the_personal_link_to_the_same_item(store: RunStore):
    lead = lead_session(store)
    invitation = enter(store, lead.invite("join"), "here")
    assert isinstance(invitation, Invitation)
    worker, token = invitation.join("Ann")
    first = take(worker)
    back = enter(store, token, "elsewhere")
    assert isinstance(back, Worker)
    assert back.annotator == worker.annotator
    assert take(back).item == first.item
    lead.revoke(token.split(".")[0])
    with pytest.raises(NotFoundError):
        enter(store, token, "here")
    # Those who lost theirs are given another by the lead.
    again = enter(store, lead.invite("annotator", annotator=worker.annotator), "here")
    assert isinstance(again, Worker)
    assert isinstance(enter(store, lead.invite("lead", days=1), "here"), Lead)


def test_who_may_join(store: RunStore):
    lead = lead_session(store, names=("Ann", "Bo"))
    join(lead, "Ann")
    for name, said in (("Ann", "joined the session under"), ("Eve", "not among those")):
        with pytest.raises(InvalidInputError, match=said):
            join(lead, name)
    lead.close()
    with pytest.raises(InvalidInputError, match="closed"):
        join(lead, "Bo")


@pytest.mark.parametrize("show", ["after", "never", "before"])
def test_what_models_said_is_seen_as_the_session_says(store: RunStore, show: str):
    lead = lead_session(store, [item("answer")], show=show)
    (ann,) = join(lead, "Ann")
    found = take(ann)
    assert (found.hidden is not None) == (show == "before")
    assert ("doubtful" in found.model_dump_json()) == (show == "before")
    with pytest.raises(InvalidInputError):
        ann.reveal(found.item, client="r0")
    event = ann.label(found.item, VALUES["answer"], client="c")
    assert event.revealed == (show == "before")
    if show == "never":
        with pytest.raises(InvalidInputError, match="does not allow"):
            ann.reveal(found.item, client="r")
        return
    assert ann.reveal(found.item, client="r").verdicts[0].verdict == "doubtful"
    ann.change(found.item, {"task": "answer", "verdict": "wrong"}, client="d")
    (label,) = ann.labels()
    assert (label.label.model_dump()["verdict"], label.revealed, label.changes) == (
        "wrong",
        True,
        1,
    )


def test_detectors_spans_are_offered_only_where_the_session_says_so(store: RunStore):
    for offered in (False, True):
        lead = lead_session(store, [item("span")], offer_spans=offered)
        (ann,) = join(lead, "Ann")
        hidden = take(ann).hidden
        assert (hidden is not None) == offered
        assert hidden is None or hidden.verdicts == ()


def test_labels_on_a_text_whose_verdicts_were_seen_with_another_item_are_not_blind(store: RunStore):
    spans = (ModelVerdict(method="drad", verdict="doubtful", doubt=0.9, at=(16, 21)),)
    other = item("answer", 9, body=item("answer", 9).body.model_copy(update={"text": "Another."}))
    items = [item("answer"), item("sentence"), item("span", hidden=Hidden(spans=spans)), other]
    lead = lead_session(store, items, overlap=1)
    (ann,) = join(lead, "Ann")
    first = take(ann)
    ann.label(first.item, VALUES[first.body.task], client="first")
    shown = first.body.text
    ann.reveal(first.item, client="seen")
    while isinstance(found := ann.next(), AssignedItem):
        event = ann.label(found.item, VALUES[found.body.task], client=str(found.item))
        assert event.revealed == (found.body.text == shown)
    assert {one.body["text"] == shown for one in lead.items()} == {True, False}


@pytest.mark.parametrize("text", ['50% of_all/\\ "it" 的🌷', "a" * 600, "\x00"])
def test_texts_are_the_same_by_all_their_characters(store: RunStore, text: str):
    bodies = [
        item("answer", n).body.model_copy(update={"text": one})
        for n, one in enumerate([text, text, f"{text}!"])
    ]
    lead = lead_session(store, [item("answer", n, body=one) for n, one in enumerate(bodies)])
    (ann,) = join(lead, "Ann")
    for _ in range(3):
        ann.label(take(ann).item, VALUES["answer"], client=token_hex(8))
    ann.reveal(0, client="seen")
    wrong = {"task": "answer", "verdict": "wrong"}
    events = [ann.change(number, wrong, client=f"change {number}") for number in range(3)]
    assert [one.revealed for one in events] == [True, True, False]


def test_a_label_on_offered_spans_is_not_blind_nor_one_on_the_same_text(store: RunStore):
    spans = (ModelVerdict(method="drad", verdict="doubtful", doubt=0.9, at=(16, 21)),)
    plain = item("span", 1, body=item("span").body.model_copy(update={"text": TEXT[:32]}))
    lead = lead_session(
        store,
        [item("span", hidden=Hidden(spans=spans)), plain, item("sentence")],
        overlap=1,
        offer_spans=True,
    )
    (ann,) = join(lead, "Ann")
    seen: dict[int, bool] = {}
    while isinstance(found := ann.next(), AssignedItem):
        event = ann.label(found.item, VALUES[found.body.task], client=str(found.item))
        # The sentence is not blind where the span item of its text was shown before.
        seen[found.item] = event.revealed
    order = list(seen)
    assert seen[0]
    assert not seen[1]
    assert seen[2] == (order.index(0) < order.index(2))


def test_an_annotator_is_not_told_which_method_judged_the_item(store: RunStore):
    place = ItemPlace(run="r", method="drad", span="step", sentence=0)
    body = item("answer").body.model_copy(update={"place": place})
    lead = lead_session(store, [item("answer", body=body)])
    (ann,) = join(lead, "Ann")
    assert take(ann).body.place == ItemPlace(run="r", sentence=0)
    assert lead.items()[0].body["place"]["method"] == "drad"


def test_nobody_touches_what_is_not_theirs(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(3)], overlap=1)
    ann, bo = join(lead, "Ann", "Bo")
    mine = take(ann).item
    with pytest.raises(InvalidInputError, match="not given to you"):
        bo.label(mine, VALUES["answer"], client="x")
    with pytest.raises(InvalidInputError, match="not given to you"):
        bo.reveal(mine, client="x")
    ann.label(mine, VALUES["answer"], client="x")
    assert bo.labels() == []
    with pytest.raises(InvalidInputError, match="does not allow"):
        bo.overruled()
    with pytest.raises(NotFoundError):
        Lead(store, lead.session_id, "you")


def test_undo_redo_skip_and_comment(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(2)])
    (ann,) = join(lead, "Ann")
    first = take(ann)
    ann.label(first.item, VALUES["answer"], client="a", seconds=4)
    ann.undo(first.item, client="b")
    again = take(ann)
    assert (again.item, again.redo) == (first.item, parse_label(VALUES["answer"], first.body))
    event = ann.redo(first.item, client="c")
    assert ann.redo(first.item, client="c") == event
    with pytest.raises(InvalidInputError, match="not taken back"):
        ann.redo(first.item, client="d")
    ann.comment(first.item, "Delft or Gouda?", client="e")
    other = take(ann)
    ann.skip(other.item, "unreadable", client="f")
    assert ann.progress().model_dump() == {"labelled": 1, "skipped": 1, "left": 0, "seconds": 4.0}
    kinds = [one.kind for one in lead.events()]
    assert kinds == ["given", "undone", "redone", "comment", "skipped"]


def test_too_fast_is_marked_and_impossible_times_are_none(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(4)], too_fast=2)
    (ann,) = join(lead, "Ann")
    for seconds in (1.9, 2.0, -1.0, float("nan")):
        found = take(ann)
        ann.label(found.item, VALUES["answer"], client=str(seconds), seconds=seconds)
    assert [(one.seconds, one.fast) for one in lead.events()] == [
        (1.9, True),
        (2.0, False),
        (None, False),
        (None, False),
    ]


def test_which_text_is_shown_first_is_random_for_each_person(store: RunStore):
    lead = lead_session(store, [item("comparison", n) for n in range(12)], overlap=2)
    orders = []
    for worker in join(lead, "Ann", "Bo"):
        order = {}
        while isinstance(found := worker.next(), AssignedItem):
            order[found.item] = found.swapped
            worker.label(found.item, VALUES["comparison"], client=str(found.item))
        orders.append(order)
    assert set(orders[0].values()) == {True, False}
    assert orders[0] != orders[1]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"task": "answer", "verdict": "fine"}, "verdict"),
        ({"task": "concept", "verdict": "true"}, "the item's task is span"),
        ({"task": "span", "spans": [{"start": 3, "end": 3}]}, "at least one character"),
        ({"task": "span", "spans": [{"start": 3, "end": 99}]}, "outside of the text"),
        ("nonsense", "no label for the item"),
        ({"task": "span", "spans": [{"start": 0, "end": 1}] * 201}, "200"),
    ],
)
def test_what_is_no_label_is_refused_with_the_reason(value: object, said: str):
    with pytest.raises(InvalidInputError, match=said):
        parse_label(value, item("span").body)


def test_spans_are_put_in_order_overlap_and_count_code_points():
    # The flower is one character, the accent of the last word a character of its own.
    body = item("span").body.model_copy(update={"text": "a 🌷 שלום e\u0301"})
    spans = [(8, 10), (2, 5), (2, 5), (1, 4)]
    found = parse_label(
        {"task": "span", "spans": [{"start": start, "end": end} for start, end in spans]}, body
    )
    assert isinstance(found, SpanLabel)
    assert [(one.start, one.end) for one in found.spans] == [(1, 4), (2, 5), (8, 10)]
    assert body.text[2:3] == "🌷"
    assert len(body.text) == 11


def test_a_session_without_control_items_has_to_be_meant(store: RunStore):
    with pytest.raises(InvalidInputError, match="control items"):
        create_session(store, "me", "Ada", SessionSpec(), [item("answer")])
    with pytest.raises(InvalidInputError, match="no items"):
        create_session(store, "me", "Ada", SessionSpec(without_gold=True), [])
    with pytest.raises(InvalidInputError, match="tasks lack answer"):
        create_session(
            store, "me", "Ada", SessionSpec(tasks=("span",), without_gold=True), [item("answer")]
        )
    with pytest.raises(InvalidInputError, match="overlap"):
        lead_session(store, overlap=0)


def test_control_items_are_mixed_in_and_look_like_the_others(store: RunStore):
    gold = parse_label(VALUES["answer"], item("answer").body)
    items = [item("answer", n, gold=gold if n < 3 else None) for n in range(9)]
    lead = lead_session(store, items, without_gold=False, gold_every=2, overlap=1)
    (ann,) = join(lead, "Ann")
    seen = []
    while isinstance(found := ann.next(), AssignedItem):
        assert "gold" not in json.loads(found.model_dump_json())["body"]
        seen.append(found.item)
        ann.label(found.item, VALUES["answer"], client=str(found.item))
    assert len(set(seen)) == len(seen) == 9
    assert {0, 1, 2} <= set(seen)


def test_labels_from_elsewhere_are_one_person_and_do_not_count(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(2)], overlap=1)
    label = parse_label(VALUES["answer"], item("answer").body)
    labels = [ReadLabel(key, label) for key in ("answer-0", "answer-1", "unknown")]
    assert lead.import_labels("published", labels) == 2
    assert lead.import_labels("published", labels) == 0
    assert [(one.name, one.kind) for one in lead.annotators()] == [("published", "imported")]
    (ann,) = join(lead, "Ann")
    assert label_all(ann) == 2


def test_labels_from_elsewhere_can_be_imported_anew_and_change(store: RunStore):
    keys = [f"{'k' * 60}{n}" for n in range(2)]
    lead = lead_session(store, [item("answer", n, key=key) for n, key in enumerate(keys)])
    right, wrong = (
        parse_label({"task": "answer", "verdict": one}, item("answer").body)
        for one in ("correct", "wrong")
    )
    assert lead.import_labels("other", [ReadLabel(key, right) for key in keys]) == 2
    other = [ReadLabel(keys[0], wrong), ReadLabel(keys[1], right)]
    assert lead.import_labels("other", other) == 1
    # Back to what it was is a change as well.
    assert lead.import_labels("other", [ReadLabel(keys[0], right)]) == 1
    assert lead.import_labels("other", [ReadLabel(keys[0], right)]) == 0
    assert [(one.kind, one.item) for one in lead.events()] == [
        ("given", 0),
        ("given", 1),
        ("changed", 0),
        ("changed", 0),
    ]
    assert [one.label for one in standing_labels(lead.events())] == [right, right]


def test_a_label_that_is_restored_keeps_its_run_and_that_it_was_too_fast(store: RunStore):
    body = item("answer").body.model_copy(update={"place": ItemPlace(run="r1")})
    lead = lead_session(store, [item("answer", body=body)], too_fast=2)
    (ann,) = join(lead, "Ann")
    ann.label(take(ann).item, VALUES["answer"], client="a", seconds=1)
    ann.undo(0, client="b")
    lead.set_guidelines("Read it twice.")
    event = ann.redo(0, client="c")
    assert (event.run, event.fast, event.seconds, event.guidelines) == ("r1", True, None, 1)
    (label,) = ann.labels()
    assert (label.run, label.fast, label.seconds) == ("r1", True, 1.0)


def test_a_label_keeps_the_version_that_its_annotator_has_read(store: RunStore):
    lead = lead_session(store, [item("answer", n) for n in range(3)])
    (ann,) = join(lead, "Ann")
    mine = take(ann).item
    # The guidelines change while the item is open.
    assert lead.set_guidelines("Read it twice.") == 2
    ann.label(mine, VALUES["answer"], client="a", guidelines=1)
    wrong = {"task": "answer", "verdict": "wrong"}
    ann.change(mine, wrong, client="b", guidelines=2)
    # There is no third version, and none before the first.
    for client, version in (("c", 3), ("d", 0), ("e", None)):
        ann.change(mine, VALUES["answer"], client=client, guidelines=version)
    assert [one.guidelines for one in lead.events()] == [1, 2, 2, 2, 2]


def test_comments_are_clean_text_of_a_bounded_length(store: RunStore):
    lead = lead_session(store, [item("answer")])
    (ann,) = join(lead, "Ann")
    number = take(ann).item
    ann.comment(number, "half \ud800", client="a")
    assert ann.comment(number, "half \ud800", client="a").seq == 0
    ann.skip(number, "half \ud800", client="b")
    assert [list(one.value.values()) for one in lead.events()] == [["half \ufffd"]] * 2
    assert "".join(export_session(lead)).encode()
    with pytest.raises(InvalidInputError, match="The text has 5001 characters; at most 5000"):
        ann.comment(number, "a" * 5001, client="c")


def test_what_is_left_falls_by_one_with_each_item_also_a_control_item(store: RunStore):
    gold = parse_label(VALUES["answer"], item("answer").body)
    # More control items than ever become due.
    items = [item("answer", n, gold=gold if n < 6 else None) for n in range(14)]
    lead = lead_session(store, items, without_gold=False, gold_every=3, overlap=1)
    (ann,) = join(lead, "Ann")
    expected = ann.progress().left
    assert 8 < expected < 14
    while isinstance(found := ann.next(), AssignedItem):
        # The open item is among them.
        assert ann.progress().left == expected
        ann.label(found.item, VALUES["answer"], client=str(found.item))
        expected -= 1
        assert ann.progress().left == expected
    assert expected == 0


def test_items_of_one_text_follow_each_other_in_their_order(store: RunStore):
    def about(text: str, task: str, number: int) -> SessionItem:
        body = item(task, number).body.model_copy(update={"text": text})
        return item(task, number, body=body)

    texts = [f"Text {number}. {TEXT}" for number in range(4)]
    # Not even what belongs together stands together.
    mixed = [
        about(text, task, number)
        for task in ("answer", "sentence", "concept")
        for number, text in enumerate(texts)
    ]
    lead = lead_session(store, mixed, overlap=2)
    for person in join(lead, "Ann", "Bo"):
        met: list[str] = []
        tasks: list[str] = []
        while isinstance(found := person.next(), AssignedItem):
            met.append(found.body.text)
            tasks.append(found.body.task)
            value = VALUES[found.body.task]
            person.label(found.item, value, client=f"{person.annotator}-{found.item}")
        assert [text for text, _ in groupby(met)] == list(dict.fromkeys(met))
        assert sorted(dict.fromkeys(met)) == texts
        assert tasks == ["answer", "sentence", "concept"] * len(texts)
