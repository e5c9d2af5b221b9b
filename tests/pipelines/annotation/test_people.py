"""Each person's agreement with the others, by hand."""

from __future__ import annotations

import pytest

from pipelines.annotation.agreement import people_agreement, task_agreement
from pipelines.annotation.labelling import standing_labels
from pipelines.store import RunStore
from tests.pipelines.annotation.test_agreement import FEW, answer, labelled

RIGHT = [answer(one) for one in ("correct", "wrong", "correct", "wrong")]
TURNED = [answer(one) for one in ("wrong", "correct", "wrong", "correct")]


def test_who_stands_out_comes_first(store: RunStore):
    lead, bodies = labelled(store, "answer", RIGHT, RIGHT, TURNED)
    given = standing_labels(lead.events())
    found = task_agreement("answer", given, bodies, FEW)
    third, first, second = people_agreement(found, given, bodies, FEW)
    # The third says the opposite: kappa is -1 with both; the two others agree wholly.
    assert (third.person, third.labels, third.kappa) == (2, 4, pytest.approx(-1))
    assert third.without.value == 1
    # 1 with each other and -1 with the third.
    assert first.kappa == second.kappa == pytest.approx(0)
    # Of 8 ratings, 4 of each kind, all 8 coincidences are off the diagonal: 1 - 7 * 8 / 32.
    assert first.without.value == pytest.approx(1 - 7 * 8 / 32)


def test_of_two_people_nobody_is_left_to_agree(store: RunStore):
    lead, bodies = labelled(store, "answer", RIGHT, RIGHT)
    given = standing_labels(lead.events())
    found = task_agreement("answer", given, bodies, FEW)
    one, other = people_agreement(found, given, bodies, FEW)
    assert (one.kappa, other.kappa) == (1, 1)
    assert one.without.why == "one_person"
    alone = task_agreement("answer", given[::2], bodies, FEW)
    (single,) = people_agreement(alone, given[::2], bodies, FEW)
    assert (single.kappa, single.without.why) == (None, "no_items")
