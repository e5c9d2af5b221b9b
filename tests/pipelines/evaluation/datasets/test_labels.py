"""Labels under names that are not known: what their words say, and when they are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluation.datasets.labels import label_in, labels_by_words
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.opening import open_data_set
from tests.pipelines.evaluation.datasets.small_files import items, lines

QUESTION, RIGHT, WRONG = "Where was Marie Curie born?", "In Warsaw.", "In Paris."


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("factuality_label", 1, 0),
        ("hallucinated_flag_of_gpt", False, True),
        ("truth", "true", "false"),
        ("veracity", "true", "pants-fire"),
        ("passed", True, False),
        ("result", "PASS", "FAIL"),
        ("majority_vote", "not hallucination", "hallucination"),
        ("outcome", "supported", "contradicted"),
        ("hallucination_type", "none", "entity"),
        ("error type", "NoE", "EntE"),
        ("事实性", "正确", "错误"),
        ("事实性", "是", "否"),
        ("幻觉类型", "无", "事实性幻觉"),
        ("correct", "✓", "✗"),
        ("标注", "未发现幻觉", "存在幻觉"),
        # What denies it.
        ("not_supported", 0, 1),
        ("no_hallucination", True, False),
        ("without_hallucination", "true", "false"),
        ("non_hallucinated", True, False),
        ("not_hallucinated", 1, 0),
        ("hallucination_free", "yes", "no"),
        ("is_not_grounded", False, True),
        ("is_not_faithful", 0, 1),
        ("not_consistent", 0, 1),
        ("not_factual", "no", "yes"),
        ("not_correct", "no", "yes"),
        ("无幻觉", "是", "否"),
        ("是否无幻觉", "是", "否"),
        ("是否不符合事实", "否", "是"),
        ("有无幻觉", "无", "有"),
        ("unfaithful", 0, 1),
        ("non_factual", 0, 1),
        # What explains itself.
        ("label (0 = hallucinated, 1 = correct)", 1, 0),
        ("label (1=hallucination, 0=ok)", 0, 1),
        ("label (0: hallucination; 1: faithful)", 1, 0),
        ("hallucination (1 = no, 0 = yes)", 1, 0),
        ("Supported (0=yes, 1=no)", 0, 1),
        ("幻觉标签（0为幻觉，1为正常）", 1, 0),
    ],
)
def test_labels_are_known_by_their_words(tmp_path: Path, name: str, right: Any, wrong: Any):
    rows = [{"question": QUESTION, "answer": text, name: label}
            for text, label in ((RIGHT, right), (WRONG, wrong))]  # fmt: skip
    found = items(lines(tmp_path / "set.jsonl", *rows))
    assert [(one.text, one.hallucinated) for one in found] == [(RIGHT, False), (WRONG, True)]


@pytest.mark.parametrize(
    "column",
    [
        {"rating": [5, 1]},
        {"side": ["left", "right"]},
        {"flag": [True, False]},
        {"groundedness_score": [0.9, 0.1]},
        {"hallucination_type": ["entity", "relation"]},
        {"checked_by": ["correct", "correct"]},
        {"first": ["correct", "wrong"], "second": ["wrong", "correct"]},
        {"factual_notes": [["true"], ["false"]]},
    ],
)
def test_other_columns_are_no_labels(tmp_path: Path, column: dict[str, list[Any]]):
    rows = [{"question": QUESTION, "response": text} for text in (RIGHT, WRONG)]
    for name, told in column.items():
        rows = [{**row, name: cell} for row, cell in zip(rows, told, strict=True)]
    assert [one.hallucinated for one in items(lines(tmp_path / "set.jsonl", *rows))] == [None, None]


def test_pieces_that_are_not_supported(tmp_path: Path):
    row = {"question": QUESTION, "answer": WRONG, "unsupported_spans": ["Paris"]}
    (one,) = items(lines(tmp_path / "set.jsonl", row))
    assert (one.text, [(span.start, span.end) for span in one.spans]) == (WRONG, [(3, 8)])


def test_options_that_are_wrong(tmp_path: Path):
    row = {"question": QUESTION, "correct_answer": "Warsaw", "distractor1": "Paris",
           "distractor2": "Vienna"}  # fmt: skip
    (one,) = items(lines(tmp_path / "set.jsonl", row))
    assert (one.answers, one.wrong_answers) == (("Warsaw",), ("Paris", "Vienna"))


def test_what_yes_means_is_told_by_a_part_of_the_name():
    rows = [{"x": "yes"}, {"x": "no"}]
    assert labels_by_words(rows, ["x"]) is None
    said = {
        name: labels_by_words([{name: "yes"}, {name: "no"}], [name])
        for name in ("is_it_factual", "was_incorrect")
    }
    assert [one and one.label_is for one in said.values()] == ["supported", "hallucinated"]
    with pytest.raises(KeyError):
        label_in("yes")


def test_a_column_that_may_hold_labels_is_named_where_none_are_read(tmp_path: Path):
    path = lines(
        tmp_path / "t.jsonl",
        {"question": QUESTION, "response": RIGHT, "severity": "none", "source_file": "a"},
        {"question": QUESTION, "response": WRONG, "severity": "high", "source_file": "b"},
    )
    mapped = ColumnMapping(question="question", text="response")
    for reading in (open_data_set(path).reading, open_data_set(path, mapping=mapped).reading):
        assert reading is not None
        (note,) = reading.notes
        assert (note.key, note.facts["column"]) == ("note.may_be_labels", "severity")
    labelled = mapped.model_copy(
        update={"hallucinated": "severity", "hallucinated_values": ("high",)}
    )
    read = open_data_set(path, mapping=labelled)
    assert read.reading is not None
    assert [one.hallucinated for one in read.items] == [False, True]
    assert read.reading.notes == ()
