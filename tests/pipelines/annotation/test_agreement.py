"""Agreement, adjudication and progress of small sessions, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.annotation.adjudication import (
    adjudicate,
    final_labels,
    item_agreement,
    merged_spans,
    overruled,
    to_decide,
)
from pipelines.annotation.agreement import agreement_rounds, task_agreement
from pipelines.annotation.labelling import Adjudication, comments, decisions, standing_labels
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import ItemBody, SpanLabel, label_adapter, parse_label
from pipelines.annotation.watching import session_progress
from pipelines.errors import InvalidInputError
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import VALUES, item, join, label_all, lead_session

FEW = Sampling(resamples=100)


def answer(verdict: str) -> dict[str, Any]:
    return {"task": "answer", "verdict": verdict}


def spans(*ends: tuple[int, int], kind: str = "other") -> dict[str, Any]:
    told = [{"start": start, "end": end, "kind": kind} for start, end in ends]
    return {"task": "span", "spans": told}


def labelled(
    store: RunStore, task: str, *people: list[dict[str, Any]]
) -> tuple[Lead, dict[int, ItemBody]]:
    """A session in which each of `people` gives a label to each item."""
    lead = lead_session(store, [item(task, n) for n in range(len(people[0]))], overlap=len(people))
    for worker, given in zip(join(lead, *"ABCD"[: len(people)]), people, strict=True):
        label_all(worker, dict(enumerate(given)))
    return lead, {one.number: ItemBody.model_validate(one.body) for one in lead.items()}


def test_agreement_on_answers_by_hand(store: RunStore):
    first = [answer(one) for one in ("correct", "correct", "wrong", "partly")]
    second = [answer(one) for one in ("correct", "wrong", "wrong", "partly")]
    lead, bodies = labelled(store, "answer", first, second)
    found = task_agreement("answer", standing_labels(lead.events()), bodies, FEW)
    # 3 of 4 equal. Chance: 2/4 * 1/4 (correct) + 1/4 * 1/4 (partly) + 1/4 * 2/4 (wrong) = 5/16.
    # Kappa = (12/16 - 5/16) / (11/16) = 7/11.
    assert found.overall.raw == 0.75
    assert found.overall.cohen is not None
    assert found.overall.cohen.value == pytest.approx(7 / 11)
    # Of 8 ratings 3 are correct, 2 partly, 3 wrong; 2 coincidences are off the diagonal:
    # alpha = 1 - 7 * 2 / (64 - 9 - 4 - 9) = 2/3.
    assert found.overall.alpha.value == pytest.approx(2 / 3)
    (pair,) = found.pairs
    assert pair.confusion[0] == (1, 0, 1, 0)
    assert found.labels["partly"].value == pytest.approx(1)
    assert found.labels["abstained"].why == "all_equal"


def test_near_verdicts_on_sentences_disagree_less(store: RunStore):
    def sentence(verdict: str) -> dict[str, Any]:
        return {"task": "sentence", "verdict": verdict}

    first = [sentence(one) for one in ("accurate", "minor", "major", "accurate")]
    found = []
    for other in ("minor", "major"):
        second = [*first[:3], sentence(other)]
        lead, bodies = labelled(store, "sentence", first, second)
        task = task_agreement("sentence", standing_labels(lead.events()), bodies, FEW)
        found.append(task.overall.alpha.value)
    assert found[0] > found[1]


def test_agreement_on_spans_by_characters_overlap_and_exactly(store: RunStore):
    first = [spans((0, 10)), spans((0, 4))]
    second = [spans((2, 10)), spans((0, 4))]
    lead, bodies = labelled(store, "span", first, second)
    found = task_agreement("span", standing_labels(lead.events()), bodies, FEW).spans
    assert found is not None
    # Exactly one of two; by half of the union both (8 of 10); characters 2 * 12 / (14 + 12).
    assert found.f1 == pytest.approx({"exact": 0.5, "iou": 1.0, "characters": 24 / 26})
    assert found.items == 2
    # 72 characters... each text has n; both marked 12, one of them 2, so o01 = 2, n1 = 26.
    total = 2 * sum(len(body.text) for body in bodies.values())
    assert found.characters.value == pytest.approx(1 - (total - 1) * 2 / (26 * (total - 26)))
    # Of three aligned pairs of spans one differs, a little.
    assert found.gamma.value is not None
    assert 0.9 < found.gamma.value < 1
    assert found.gamma.n == 2


def test_comments_and_skips_are_no_disagreement(store: RunStore):
    lead = lead_session(store, [item("answer")], overlap=3)
    ann, bo, cy = join(lead, "A", "B", "C")
    for worker in (ann, bo):
        label_all(worker)
    ann.comment(0, "I am not sure.", client="m")
    cy.next()
    cy.skip(0, "unclear", client="s")
    bodies = {one.number: ItemBody.model_validate(one.body) for one in lead.items()}
    found = task_agreement("answer", standing_labels(lead.events()), bodies, FEW)
    assert (found.overall.people, found.overall.raw) == (2, 1.0)
    assert [one.text for one in comments(lead.events())] == ["I am not sure."]


def test_agreement_by_rounds(store: RunStore):
    first = [answer(one) for one in ("correct", "wrong", "correct", "wrong")]
    second = [answer(one) for one in ("correct", "wrong", "wrong", "wrong")]
    lead, bodies = labelled(store, "answer", first, second)
    rounds = agreement_rounds("answer", standing_labels(lead.events()), bodies, 4, FEW)
    assert [one.labels for one in rounds] == [4, 8]
    # After four labels only the first person has labelled.
    assert rounds[0].so_far.why == "one_person"
    assert rounds[1].so_far.value is not None


def test_blind_labels_are_those_before_the_reveal(store: RunStore):
    lead = lead_session(store, [item("answer")], overlap=1)
    (ann,) = join(lead, "A")
    label_all(ann)
    ann.reveal(0, client="r")
    ann.change(0, answer("wrong"), client="c")
    events = lead.events()
    kept = {which: standing_labels(events, which)[0].label for which in ("last", "blind")}  # type: ignore[arg-type]
    assert kept["last"].model_dump()["verdict"] == "wrong"
    assert kept["blind"].model_dump()["verdict"] == "partly"
    ann.undo(0, client="u")
    assert standing_labels(lead.events()) == []
    assert len(standing_labels(lead.events(), "blind")) == 1


def parsed(value: dict[str, Any]) -> SpanLabel:
    found = parse_label(value, item("span").body)
    assert isinstance(found, SpanLabel)
    return found


def test_spans_are_merged_by_union_and_majority():
    people = [
        parsed(spans((0, 10), kind="entity")),
        parsed(spans((5, 12), kind="number")),
        parsed(spans((6, 8), (20, 22), kind="entity")),
    ]
    union, majority = (merged_spans(people, rule) for rule in ("union", "majority"))  # type: ignore[arg-type]
    assert [(one.start, one.end, one.kind) for one in union.spans] == [
        (0, 12, "entity"),
        (20, 22, "entity"),
    ]
    # Two of three marked 5 to 10; entity has 5 + 2 of the characters there, number 5.
    assert [(one.start, one.end, one.kind) for one in majority.spans] == [(5, 10, "entity")]
    # Of two people the majority is both.
    assert [(one.start, one.end) for one in merged_spans(people[:2], "majority").spans] == [(5, 10)]
    assert merged_spans([SpanLabel()], "union") == SpanLabel()


def test_merging_more_spans_than_a_label_holds_is_refused():
    # The two people mark every other character, each in a half of the text.
    people = [
        SpanLabel.model_validate(spans(*((at, at + 1) for at in range(start, start + 240, 2))))
        for start in (0, 240)
    ]
    with pytest.raises(InvalidInputError, match="240 spans"):
        merged_spans(people, "union")
    assert merged_spans(people, "majority") == SpanLabel()


def test_adjudication_from_the_lowest_agreement_to_the_final_labels(store: RunStore):
    verdicts = ["correct", "correct", "correct"], ["wrong", "correct", "correct"]
    third = ["partly", "wrong", "correct"]
    lead, _ = labelled(
        store, "answer", *([answer(one) for one in row] for row in (*verdicts, third))
    )
    labels = standing_labels(lead.events())
    # No pair of three agrees on the first, one of three on the second, all on the third.
    assert item_agreement([one.label for one in labels if one.item == 1]) == pytest.approx(1 / 3)
    assert to_decide(labels, {}) == [0, 1]
    wrong = label_adapter.validate_python(answer("wrong"))
    decision = Adjudication(label=wrong, note="See the evidence.", gap=True, merged="annotator:1")
    event = adjudicate(lead, "Lee", 0, decision, client="d")
    assert adjudicate(lead, "Lee", 0, decision, client="d") == event
    decided = decisions(lead.events())
    assert decided == {0: decision}
    assert to_decide(labels, decided) == [1]
    final = final_labels(range(4), labels, decided)
    assert [one.status for one in final.values()] == [
        "adjudicated",
        "unresolved",
        "unanimous",
        "none",
    ]
    # Nobody's label was changed, and the adjudicator's is no label.
    assert standing_labels(lead.events()) == labels
    assert overruled(labels, decided) == {0: (1, 1), 1: (0, 1), 2: (1, 1)}
    assert session_progress(lead).gaps == (0,)
    with pytest.raises(InvalidInputError, match="joined the session under this name"):
        adjudicate(lead, "A", 1, decision, client="e")
    with pytest.raises(InvalidInputError, match="task is answer"):
        adjudicate(lead, "Lee", 1, Adjudication(label=SpanLabel()), client="f")


def test_spans_that_differ_in_their_kind_alone_are_to_be_decided(store: RunStore):
    marked = [[spans((0, 5), kind=kind)] for kind in ("entity", "number")]
    lead, _ = labelled(store, "span", *marked)
    labels = standing_labels(lead.events())
    assert item_agreement([one.label for one in labels]) == 1
    assert to_decide(labels, {}) == [0]
    assert final_labels([0], labels, {})[0].status == "unresolved"


def test_people_see_where_they_were_overruled_once_the_session_is_closed(store: RunStore):
    lead = lead_session(store, [item("answer")], overlap=1)
    (ann,) = join(lead, "A")
    label_all(ann)
    wrong = label_adapter.validate_python(answer("wrong"))
    adjudicate(lead, "Lee", 0, Adjudication(label=wrong, note="No."), client="d")
    lead.close()
    ((number, own, decided, note),) = ann.overruled()
    assert (number, own, decided, note) == (0, ann.labels()[0].label, wrong, "No.")


def test_progress_says_what_is_missing_and_how_each_person_works(store: RunStore):
    gold = label_adapter.validate_python(VALUES["answer"])
    items = [item("answer", n, gold=gold if n < 2 else None) for n in range(5)]
    lead = lead_session(store, items, overlap=2, without_gold=False, gold_every=2)
    ann, bo = join(lead, "A", "B")
    label_all(ann, {0: answer("wrong")})
    found = bo.next()
    assert not hasattr(found, "status")
    progress = session_progress(lead)
    assert (progress.items, progress.finished, progress.missing) == (3, 0, 3)
    assert progress.needs == {1: 3}
    first, second = progress.people
    assert (first.labelled, first.seconds, first.median_seconds) == (5, 25.0, 5.0)
    # One of two control items was wrong.
    assert (first.gold.hits, first.gold.n, first.gold.value) == (1, 2, 0.5)
    assert (second.labelled, second.gold.value, second.median_seconds) == (0, None, None)
    while hasattr(found := bo.next(), "body"):
        bo.skip(found.item, "unclear", client=str(found.item))  # type: ignore[union-attr]
    assert session_progress(lead).stuck == 3
    assert session_progress(lead).skipped.keys() >= {2, 3, 4}
