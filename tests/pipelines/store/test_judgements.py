"""Judgements in a store: whose they are, what is missing, what is found again and what it took."""

from __future__ import annotations

import pytest

from pipelines.errors import NotFoundError
from pipelines.store import RunStore
from tests.pipelines.store.test_evaluations import count, create

RIGHT = {"grade": "correct"}
COST = {"calls": 1}


def test_a_judgement_is_kept_once_and_found_by_every_evaluation(store: RunStore):
    create(store)
    create(store, "other")
    found = store.judgements
    found.begin("e", "me", "j", {"model": "m"}, [(0, "a"), (1, "b"), (2, "a")])
    # To begin again changes nothing.
    found.begin("e", "me", "j", {"model": "n"}, [(0, "a"), (3, "c")])
    assert [one.spec for one in found.judges("e", "me")] == [{"model": "m"}]
    assert found.missing("e", "me", "j") == [(0, "a"), (1, "b"), (2, "a"), (3, "c")]
    found.keep("me", "a", RIGHT, evaluation="e", judge="j", spent=COST)
    found.keep("me", "a", {"grade": "wrong"}, evaluation="e", judge="j", spent=COST)
    found.keep("me", "b", None, evaluation="e", judge="j", spent=COST)
    assert found.judged("e", "me", "j") == {0: RIGHT, 2: RIGHT}
    assert found.missing("e", "me", "j") == [(1, "b"), (3, "c")]
    # What failed was asked too.
    assert found.spent("e", "me", "j") == [COST] * 3
    assert found.spent("e", "me", "k") == []
    assert [found.times_asked("e", "me", judge) for judge in ("j", "k")] == [3, 0]
    found.begin("other", "me", "j", {"model": "m"}, [(5, "a")])
    assert found.judged("other", "me", "j") == {5: RIGHT}
    assert found.spent("other", "me", "j") == []
    assert found.known("me", ["a", "b", "z"]) == {"a": RIGHT}
    # Nobody else's judgements are given.
    assert found.known("you", ["a"]) == {}
    with pytest.raises(NotFoundError):
        found.judged("e", "you", "j")


def test_a_task_has_the_key_that_was_noted_last(store: RunStore):
    create(store)
    found = store.judgements
    found.begin("e", "me", "j", {}, [(0, "old"), (1, "b")])
    found.begin("e", "me", "j", {}, [(0, "new")])
    assert found.missing("e", "me", "j") == [(0, "new"), (1, "b")]


def test_its_stamp_changes_with_what_there_is(store: RunStore):
    create(store)
    found = store.judgements
    stamps = [found.stamp("e", "me")]
    found.begin("e", "me", "j", {}, [(0, "a"), (1, "b")])
    found.keep("me", "a", RIGHT, evaluation="e", judge="j", spent={})
    stamps.append(found.stamp("e", "me"))
    found.calibrate("e", "me", "j", {"source": "labels.csv"})
    stamps.append(found.stamp("e", "me"))
    # Labels again, of other people, who say something else of as many answers.
    found.calibrate("e", "me", "j", {"source": "other.csv"})
    stamps.append(found.stamp("e", "me"))
    found.keep("me", "b", RIGHT, evaluation="e", judge="j", spent={})
    stamps.append(found.stamp("e", "me"))
    assert stamps[0] == ""
    assert len(set(stamps)) == 5
    assert found.stamp("e", "me") == stamps[-1]
    assert found.judges("e", "me")[0].calibration == {"source": "other.csv"}


def test_judgements_stay_when_an_evaluation_is_deleted(store: RunStore):
    create(store)
    found = store.judgements
    found.begin("e", "me", "j", {}, [(0, "a")])
    found.keep("me", "a", RIGHT, evaluation="e", judge="j", spent=COST)
    store.evaluations.delete("e", "me")
    assert found.known("me", ["a"]) == {"a": RIGHT}
    for table in ("evaluation_judges", "evaluation_judgements", "judging_costs"):
        assert count(store, table) == 0


def test_what_was_paid_for_stays_when_its_evaluation_is_gone_by_then(store: RunStore):
    create(store)
    found = store.judgements
    found.begin("e", "me", "j", {}, [(0, "a")])
    store.evaluations.delete("e", "me")
    with pytest.raises(NotFoundError):
        found.keep("me", "a", RIGHT, evaluation="e", judge="j", spent=COST)
    assert found.known("me", ["a"]) == {"a": RIGHT}
    assert count(store, "judging_costs") == 0


def test_many_answers_are_begun_in_parts(store: RunStore):
    create(store)
    keys = [(number, f"k{number}") for number in range(1200)]
    store.judgements.begin("e", "me", "j", {}, keys)
    assert store.judgements.missing("e", "me", "j") == keys
