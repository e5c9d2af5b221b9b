"""Labels against judges of evaluations and against detectors: agreement and corrected scores."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.judges import (
    LabelledJudge,
    detector_agreements,
    evaluations_of,
    session_judges,
)
from pipelines.annotation.labelling import Adjudication
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import AnswerLabel, Hidden, ModelVerdict, label_adapter
from pipelines.evaluation.judging.spec import Grade
from pipelines.evaluation.statistics.judges import corrected_rate, powered_mean
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import item, lead_session
from tests.pipelines.annotation.evaluated import (
    BY_JUDGE,
    KEYS,
    TEXTS,
    Key,
    answer_item,
    evaluated,
    graded,
    judge,
    labelled_session,
)

PEOPLE = graded((12, "correct"), (3, "wrong"), (1, "correct"), (4, "wrong"))
"""Of the first twenty answers; the judge finds 15 of these right, and 15 of the others."""


def one_judge(lead: Lead) -> LabelledJudge:
    (found,) = session_judges(lead.store, lead.whole()).judges
    return found


def test_kappa_and_the_corrected_score_by_hand(store: RunStore):
    evaluated(store, {"direct": TEXTS})
    judge(store, "e", BY_JUDGE)
    lead = labelled_session(store, [answer_item(key, probability=0.5) for key in PEOPLE], PEOPLE)
    found = one_judge(lead)
    assert (found.name, found.items, found.unresolved) == ("Capitals", 20, 0)
    # 12 correct and 4 wrong alike: 0.8. Chance: 13/20 * 15/20 + 7/20 * 5/20 = 0.575.
    assert found.agreement is not None
    assert found.agreement.accuracy.value == pytest.approx(0.8)
    assert found.agreement.kappa.value == pytest.approx(0.225 / 0.425)
    assert found.agreement.kappa.low is not None
    (rate,) = found.rates
    assert (rate.judge, rate.answers, rate.labels, rate.by) == (0.75, 40, 20, "powered")
    assert rate.people is not None
    assert rate.people.value == pytest.approx(0.65)
    # The same as from the numbers themselves.
    said = [0.0 if key in BY_JUDGE else 1.0 for key in KEYS]
    usual = corrected_rate(said, [float(one == "correct") for one in PEOPLE.values()], range(20))
    assert rate.corrected == usual.corrected
    assert evaluations_of(lead.items()) == ["e"]


def test_a_label_is_of_every_answer_with_the_same_text(store: RunStore):
    # Two systems, two repeats: "direct" says the same twice, "rag" as "direct" in its second.
    texts = {
        "direct": [text for text in TEXTS[:20] for _ in range(2)],
        "rag": [one for text in TEXTS[:20] for one in (f"{text}, perhaps", text)],
    }
    evaluated(store, texts, repeats=2)
    judge(store, "e", {("q0", "Answer 0, perhaps"): "wrong", ("q1", "Answer 1"): None})
    # All answers of five items, drawn from forty: two different texts each.
    labels: dict[Key, Grade] = {
        key: "wrong" if key == ("q0", "Answer 0") else "correct"
        for n in range(5)
        for key in ((f"q{n}", f"Answer {n}"), (f"q{n}", f"Answer {n}, perhaps"))
    }
    items = [answer_item(key, probability=10 / 40) for key in labels]
    found = one_judge(labelled_session(store, items, labels))
    # Ten labels, of which the judge has no grade of one: nobody counts the repeats.
    assert found.agreement is not None
    assert (found.agreement.accuracy.n, found.agreement.undecided) == (9, 1)
    assert found.agreement.accuracy.value == pytest.approx(7 / 9)
    direct, rag = found.rates
    # Both answers to "q1" are left out, as the judge decided nothing.
    assert (direct.answers, direct.labels) == (38, 8)
    assert (rag.answers, rag.labels) == (39, 9)
    # Answers to one item are one group: two of eight answers are wrong, in one of four groups.
    assert direct.corrected is not None
    assert direct.corrected.value == pytest.approx(0.75)
    assert direct.people is not None
    assert (direct.people.value, direct.people.low) == (0.75, None)


def test_unequal_probabilities_are_weighted(store: RunStore):
    evaluated(store, {"direct": TEXTS})
    judge(store, "e", BY_JUDGE)
    drawn = [0.4 if place < 15 else 0.8 for place in range(20)]
    items = [answer_item(key, probability=one) for key, one in zip(PEOPLE, drawn, strict=True)]
    (rate,) = one_judge(labelled_session(store, items, PEOPLE)).rates
    said = [0.0 if key in BY_JUDGE else 1.0 for key in KEYS]
    values = [float(one == "correct") for one in PEOPLE.values()]
    groups = [record for record, _ in KEYS]
    usual = powered_mean(said, values, range(20), drawn, groups)
    assert (rate.by, rate.corrected, rate.people) == ("weighted", usual.corrected, None)


def test_answers_without_a_text_are_not_right_and_need_no_label(store: RunStore):
    evaluated(store, {"direct": [*TEXTS[:30], *[""] * 10]})
    judge(store, "e", {})
    labels = graded((6, "correct"), (6, "wrong"))
    items = [answer_item(key, probability=0.4) for key in labels]
    (rate,) = one_judge(labelled_session(store, items, labels)).rates
    # The judge finds all that is written right; of that, half is.
    assert (rate.judge, rate.empty, rate.full) == (0.75, 10, 0.75)
    assert rate.corrected is not None
    assert rate.corrected.value == pytest.approx(0.375)


def test_every_answer_labelled(store: RunStore):
    evaluated(store, {"direct": TEXTS[:20]})
    judge(store, "e", BY_JUDGE)
    items = [answer_item(key, probability=1.0) for key in PEOPLE]
    (rate,) = one_judge(labelled_session(store, items, PEOPLE)).rates
    assert rate.by == "labels"
    assert rate.corrected is not None
    assert rate.corrected.value == pytest.approx(0.65)


def test_what_cannot_be_corrected_says_why(store: RunStore):
    evaluated(store, {"direct": TEXTS, "rag": [*TEXTS[:4], *(f"No {text}" for text in TEXTS[4:])]})
    judge(store, "e", BY_JUDGE)
    chosen = [answer_item(key) for key in PEOPLE]
    direct = one_judge(labelled_session(store, chosen, PEOPLE)).rates[0]
    assert (direct.why, direct.corrected, direct.labels, direct.chosen) == (
        "not_drawn",
        None,
        0,
        20,
    )
    few = [answer_item(KEYS[0], probability=0.5), answer_item(KEYS[1], probability=0.5)]
    direct = one_judge(labelled_session(store, few, {KEYS[0]: "correct"})).rates[0]
    assert (direct.why, direct.corrected) == ("few_labels", None)
    # The items were drawn from the answers of "direct", four of which "rag" gave as well.
    drawn = [answer_item(key, probability=0.5) for key in PEOPLE]
    direct, rag = one_judge(labelled_session(store, drawn, PEOPLE)).rates
    assert (direct.why, direct.by) == ("", "powered")
    assert (rag.why, rag.labels, rag.corrected) == ("other_answers", 4, None)
    # None of the drawn answers is of "rag".
    others = dict(list(PEOPLE.items())[4:])
    drawn = [answer_item(key, probability=0.5) for key in others]
    assert one_judge(labelled_session(store, drawn, others)).rates[1].why == "other_answers"


def test_what_people_disagree_on_is_counted_until_it_is_decided(store: RunStore):
    evaluated(store, {"direct": TEXTS})
    judge(store, "e", BY_JUDGE)
    items = [answer_item(key, probability=0.5) for key in PEOPLE]
    lead = labelled_session(store, items, PEOPLE, {KEYS[0]: "wrong"})
    before = one_judge(lead)
    assert (before.unresolved, before.rates[0].labels) == (1, 19)
    decision = Adjudication(label=AnswerLabel(verdict="correct"))
    adjudicate(lead, "Chief", 0, decision, client="a")
    after = one_judge(lead)
    assert (after.unresolved, after.rates[0].labels) == (0, 20)


def test_a_control_item_that_was_drawn_counts_with_its_right_label(store: RunStore):
    evaluated(store, {"direct": TEXTS[:20]})
    judge(store, "e", BY_JUDGE)
    labels = dict(list(PEOPLE.items())[1:])
    items = [answer_item(key, probability=1.0) for key in labels]
    control = answer_item(KEYS[0], probability=1.0, gold="correct")
    (rate,) = one_judge(labelled_session(store, [control, *items], labels)).rates
    assert (rate.labels, rate.by) == (20, "labels")
    # One that was chosen is none of the random part.
    chosen = answer_item(KEYS[0], gold="correct")
    (rate,) = one_judge(labelled_session(store, [chosen, *items], labels)).rates
    assert (rate.labels, rate.chosen) == (19, 0)


def test_evaluations_that_are_gone_or_not_judged_are_named(store: RunStore):
    evaluated(store, {"direct": TEXTS[:3]})
    items = [answer_item(KEYS[0]), answer_item(KEYS[1], evaluation="gone")]
    lead = labelled_session(store, items, {KEYS[0]: "correct"})
    found = session_judges(store, lead.whole())
    assert (found.judges, found.unjudged, found.missing) == ((), ("Capitals",), ("gone",))
    # Somebody else's evaluation is none of the session's.
    evaluated(store, {"direct": TEXTS[:3]}, name="gone", owner="somebody")
    assert session_judges(store, lead.whole()).missing == ("gone",)


def said(verdict: str, method: str = "ever") -> Hidden:
    return Hidden(verdicts=(ModelVerdict(method=method, verdict=verdict),))


def labels_of(task: str, *verdicts: str) -> dict[int, Any]:
    told = ({"task": task, "verdict": verdict} for verdict in verdicts)
    return {n: label_adapter.validate_python(one) for n, one in enumerate(told)}


def test_concepts_are_compared_by_peoples_own_three_verdicts(store: RunStore):
    verdicts = ("supported", "contradicted", "not_enough", "contradicted", "unchecked")
    items = [item("concept", n, hidden=said(one)) for n, one in enumerate(verdicts)]
    lead = lead_session(store, items)
    labels = labels_of("concept", "true", "false", "not_enough", "true", "false")
    (found,) = detector_agreements("concept", lead.items(), labels)
    assert found.agreement.grades == ("true", "false", "not_enough")
    assert found.agreement.accuracy.value == pytest.approx(0.75)
    assert found.agreement.undecided == 1
    # Chance: 2/4 * 1/4 + 1/4 * 2/4 + 1/4 * 1/4 = 5/16; kappa = (12 - 5) / (16 - 5).
    assert found.agreement.kappa.value == pytest.approx(7 / 11)
    # A detector that doubts knows nothing of "not enough information": right or wrong.
    doubting = [item("concept", n, hidden=said("doubtful", "drad")) for n in range(3)]
    lead = lead_session(store, doubting)
    (found,) = detector_agreements("concept", lead.items(), labels)
    assert found.agreement.grades == ("right", "wrong")
    assert found.agreement.confusion == ((0, 1), (0, 1))


def test_sentences_answers_and_spans_are_right_or_wrong(store: RunStore):
    verdicts = ("supported", "contradicted", "confident", "doubtful", "not_enough")
    items = [item("sentence", n, hidden=said(one)) for n, one in enumerate(verdicts)]
    lead = lead_session(
        store,
        [
            *items,
            item(
                "sentence",
                9,
                gold={"task": "sentence", "verdict": "major"},
                hidden=said("supported"),
            ),
        ],
    )
    labels = labels_of("sentence", "accurate", "minor", "major", "major", "accurate", "major")
    (found,) = detector_agreements("sentence", lead.items(), labels)
    assert found.agreement.confusion == ((1, 0), (1, 2))
    assert found.agreement.undecided == 1
    answers = [item("answer", n, hidden=said("contradicted")) for n in range(3)]
    lead = lead_session(store, answers)
    labels = labels_of("answer", "partly", "abstained", "correct")
    (found,) = detector_agreements("answer", lead.items(), labels)
    # An abstention is neither.
    assert found.agreement.confusion == ((0, 1), (0, 1))
    assert detector_agreements("comparison", lead.items(), labels) == []
    assert detector_agreements("answer", lead.items(), {}) == []
