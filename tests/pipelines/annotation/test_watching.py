"""What somebody who leads a session watches, and what the list of sessions says of it."""

from __future__ import annotations

import pytest

from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.labelling import Adjudication
from pipelines.annotation.types import SentenceLabel
from pipelines.annotation.watching import agreement_now, watch_of
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import VALUES, item, join, label_all, lead_session, take


def sentence(verdict: str) -> dict[str, str]:
    return {"task": "sentence", "verdict": verdict}


def test_labels_and_agreement_are_by_task_and_without_control_items(store: RunStore):
    gold = item("sentence", 9, gold=sentence("minor"))
    items = [*(item("sentence", number) for number in range(4)), item("answer"), gold]
    lead = lead_session(store, items, without_gold=False, gold_every=2)
    ann, bob = join(lead, "Ann", "Bob")
    label_all(ann)
    # Bob finds half of the sentences otherwise.
    label_all(bob, {0: sentence("major"), 1: sentence("accurate")})
    seen = watch_of(lead.whole())
    assert [one.task for one in seen.tasks] == ["sentence", "answer"]
    sentences, answers = seen.tasks
    assert (sentences.items, sentences.given, sentences.wanted, sentences.gold) == (4, 8, 8, 1)
    assert (answers.finished, answers.wanted, answers.gold) == (1, 2, 0)
    # The control item would be a fifth.
    assert sentences.now.n == 4
    assert sentences.now == agreement_now(lead.whole(), "sentence")
    assert answers.now.why == "all_equal"
    assert seen.progress.finished == 5


def test_before_two_people_have_labelled_agreement_is_not_defined(store: RunStore):
    lead = lead_session(store)
    (ann,) = join(lead, "Ann")
    assert watch_of(lead.whole()).tasks[0].now.why == "no_items"
    label_all(ann)
    seen = watch_of(lead.whole()).tasks[0]
    assert seen.now.why == "one_person"
    assert seen.half is None
    assert seen.half_then is None


def test_more_labels_narrow_the_interval_by_the_root_of_their_number(store: RunStore):
    lead = lead_session(store, [item("sentence", number) for number in range(40)])
    people = join(lead, "Ann", "Bob")
    verdicts = ("accurate", "minor", "major")
    for worker in people:
        for _ in range(20):
            task = take(worker)
            # Every fourth time, Bob finds an item worse than Ann.
            worse = worker is people[1] and task.item % 4 == 0
            verdict = verdicts[(task.item % 2) + worse]
            worker.label(task.item, sentence(verdict), client=f"{worker.annotator}-{task.item}")
    seen = watch_of(lead.whole()).tasks[0]
    assert seen.now.n == 20
    assert seen.half is not None
    assert seen.half_then == pytest.approx(seen.half / 2**0.5)
    assert [one.labels for one in seen.rounds] == [10, 20, 30, 40]


def test_notes_name_the_items_that_need_the_lead(store: RunStore):
    lead = lead_session(store, [item("sentence", number) for number in range(3)], overlap=2)
    (ann,) = join(lead, "Ann")
    first = take(ann)
    ann.comment(first.item, "Odd.", client="c")
    ann.skip(first.item, "Broken.", client="s")
    label_all(ann)
    # While one person is missing for every item, no item is stuck.
    alone = watch_of(lead.whole())
    assert alone.lacking == 1
    assert [one.kind for one in alone.notes] == ["skip", "comment"]
    label_all(join(lead, "Bob")[0])
    decision = Adjudication(label=SentenceLabel(verdict="minor"), note="Dates?", gap=True)
    adjudicate(lead, "me", 2, decision, client="d")
    seen = watch_of(lead.whole())
    assert seen.lacking == 0
    notes = seen.notes
    found = {
        kind: [one for one in notes if one.kind == kind]
        for kind in ("stuck", "gap", "skip", "comment")
    }
    # Nobody is left who could label what Ann has skipped.
    assert [one.item.number for one in found["stuck"]] == [first.item]
    assert [(one.item.number, one.text) for one in found["gap"]] == [(2, "Dates?")]
    assert [(one.item.number, one.who, one.text) for one in found["skip"]] == [
        (first.item, "Ann", "Broken.")
    ]
    assert [one.text for one in found["comment"]] == ["Odd."]


def test_the_standing_of_a_session_is_counted_without_reading_it(store: RunStore):
    gold = item("answer", 9, gold=VALUES["answer"])
    lead = lead_session(store, [item("sentence"), item("answer"), gold], without_gold=False)
    empty = store.annotations.standing(lead.session_id)
    assert (empty.items, empty.gold, empty.given, empty.wanted) == (2, 1, 0, 4)
    assert empty.people == 0
    (ann,) = join(lead, "Ann")
    label_all(ann)
    now = store.annotations.standings("me")[lead.session_id]
    assert now == store.annotations.standing(lead.session_id)
    assert now != empty
    # The label of the control item counts for nothing here.
    assert (now.given, now.people, now.share) == (2, 1, 0.5)
    lead.set_overlap(1)
    assert store.annotations.standing(lead.session_id).tasks["answer"].finished == 1
    assert store.annotations.standings("somebody else") == {}
    store.annotations.delete(lead.session_id, "me")
    with pytest.raises(NotFoundError):
        store.annotations.standing(lead.session_id)


def test_labels_beyond_a_lowered_overlap_are_not_more_than_all(store: RunStore):
    lead = lead_session(store, [item("sentence")], overlap=2)
    for worker in join(lead, "Ann", "Bob"):
        label_all(worker)
    lead.set_overlap(1)
    assert store.annotations.standing(lead.session_id).share == 1
    assert watch_of(lead.whole()).tasks[0].given == 1


def test_settings_change_and_are_checked(store: RunStore):
    lead = lead_session(store)
    lead.change(names=("Ann",), lease=60)
    assert lead.spec.names == ("Ann",)
    assert lead.spec.lease == 60
    assert lead.spec.without_gold
    with pytest.raises(InvalidInputError, match="most_annotators"):
        lead.change(most_annotators=0)
    assert lead.spec.most_annotators == 100
