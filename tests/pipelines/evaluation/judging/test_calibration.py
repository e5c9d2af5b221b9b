"""Labels are read and refused; known answers of data sets; rates corrected by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.judging.calibration import (
    GradedAnswer,
    HumanGrades,
    KnownAnswer,
    LabelKey,
    calibrated,
    calibrated_elsewhere,
    known_answers,
    read_labels,
)
from pipelines.evaluation.judging.spec import Grade, JudgeInput, Judgement
from pipelines.evaluation.plan import Item


def answer(item: str, grade: Grade | None, system: str = "direct", repeat: int = 0) -> GradedAnswer:
    return GradedAnswer(item, system, "", Judgement(grade=grade), repeat)


def test_labels_are_read_in_both_forms(tmp_path: Path):
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"id": "a", "label": "right"}\n{"id": 7, "label": 0.5}\n', encoding="utf-8")
    found = read_labels(lines)
    assert found.grades == {LabelKey("a", ""): "correct", LabelKey("7", ""): "partly"}
    table = tmp_path / "labels.csv"
    table.write_text("id,label,system\na,错误,rag\nb,Abstained,rag\n", encoding="utf-8")
    assert read_labels(table).grades == {
        LabelKey("a", "rag"): "wrong",
        LabelKey("b", "rag"): "abstained",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,label\na,maybe\n", "'maybe'"),
        ("id,truth\na,right\n", "no id or no label"),
        ("id,label\na,right\na,wrong\n", "contradicts"),
        ("id,label\n", "label"),
        ("id,label,repeat\na,right,second\n", "the repeat 'second'"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(tmp_path: Path, text: str, said: str):
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=said):
        read_labels(file)


def test_every_system_has_a_corrected_rate():
    graded = [answer(f"q{n}", "correct" if n < 8 else "wrong") for n in range(10)]
    graded += [answer(f"q{n}", "wrong", "rag") for n in range(10)]
    graded.append(answer("q10", None, "rag"))
    # People find one of the first four right answers wrong, and one of the wrong ones right.
    said = {"q0": "correct", "q1": "correct", "q2": "correct", "q3": "wrong", "q9": "wrong"}
    grades = {LabelKey(item, "direct"): grade for item, grade in said.items()}
    grades[LabelKey("q10", "rag")] = "wrong"
    found = calibrated(graded, HumanGrades(grades, "mine"))
    assert found.agreement.accuracy.value == pytest.approx(0.8)
    assert found.agreement.undecided == 1
    direct = found.rates["direct"]
    assert (direct.judge, direct.labels) == (pytest.approx(0.8), 5)
    # Sensitivity 3/3, specificity 1/2: (0.8 + 0.5 - 1) / 0.5.
    assert direct.rogan_gladen is not None
    assert direct.rogan_gladen.value == pytest.approx(0.6)
    assert "Two labels" in found.rates["rag"].why


def test_labels_have_to_say_whose_answers_they_are_of():
    graded = [answer("a", "correct"), answer("a", "wrong", "rag")]
    with pytest.raises(InvalidInputError, match="several"):
        calibrated(graded, HumanGrades({LabelKey("a", ""): "correct"}, "mine"))
    with pytest.raises(InvalidInputError, match="'other'"):
        calibrated(graded, HumanGrades({LabelKey("a", "other"): "correct"}, "mine"))
    with pytest.raises(InvalidInputError, match="No label of mine"):
        calibrated(graded, HumanGrades({LabelKey("z", "rag"): "correct"}, "mine"))


def test_a_label_is_of_one_answer_of_several(tmp_path: Path):
    graded = [answer("a", grade, repeat=n) for n, grade in enumerate(("correct", "wrong", "wrong"))]
    graded.append(answer("b", "wrong"))
    # One label would count for three different answers.
    with pytest.raises(InvalidInputError, match="which of the 3 answers to 'a'"):
        calibrated(graded, HumanGrades({LabelKey("a", ""): "correct"}, "mine"))
    file = tmp_path / "labels.csv"
    file.write_text("id,label,repeat\na,right,0\na,right,2\nb,wrong,\n", encoding="utf-8")
    labels = read_labels(file)
    assert list(labels.grades) == [LabelKey("a", "", 0), LabelKey("a", "", 2), LabelKey("b", "")]
    # Of the answers 0 and 2 to "a" and the one to "b" the judge has the second one wrong.
    found = calibrated(graded, labels)
    assert found.agreement.accuracy.value == pytest.approx(2 / 3)
    assert found.rates["direct"].labels == 3
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"id": "a", "label": "right", "repeat": 0}\n', encoding="utf-8")
    assert list(read_labels(lines).grades) == [LabelKey("a", "", 0)]
    # Two items with one id cannot be told apart by anything.
    with pytest.raises(InvalidInputError, match="2 items of the evaluation have the id 'a'"):
        calibrated([*graded, answer("a", "wrong")], labels)


def test_known_answers_are_no_copies_where_that_can_be():
    items = [
        Item(id="a", question="Who?", answers=("Ann", "Ann S."), wrong_answers=("Bob",)),
        Item(id="b", question="Who?", answers=("Ann",), text="It was Bob.", hallucinated=True),
        Item(id="c", question="Who?", answers=("Ann",)),
    ]
    found = [(one.judged.answer, one.judged.references, one.right) for one in known_answers(items)]
    assert found == [
        ("Ann S.", ("Ann",), True),
        ("Bob", ("Ann", "Ann S."), False),
        ("It was Bob.", ("Ann",), False),
    ]


def test_errors_found_elsewhere_correct_the_rates():
    asked = JudgeInput(question="Who?", answer="Ann", references=("Ann",))
    known = [
        (KnownAnswer(asked, True), Judgement(grade="correct")),
        (KnownAnswer(asked, True), Judgement(grade="correct")),
        (KnownAnswer(asked, False), Judgement(grade="partly")),
        (KnownAnswer(asked, False), Judgement(grade="correct")),
        (KnownAnswer(asked, False), Judgement(grade=None)),
    ]
    found = calibrated_elsewhere(known, {"direct": [1.0, 1.0, 1.0, 0.5]}, "known")
    assert found.agreement.confusion == ((2, 0), (1, 1))
    assert found.agreement.undecided == 1
    # (0.75 + 0.5 - 1) / (1 + 0.5 - 1) = 0.5.
    estimate = found.transferred["direct"]
    assert estimate is not None
    assert estimate.value == pytest.approx(0.5)
    with pytest.raises(InvalidInputError, match="decided on no answer"):
        calibrated_elsewhere(known[-1:], {}, "known")
