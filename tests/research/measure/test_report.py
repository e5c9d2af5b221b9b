"""Suites and measures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from research.judge.shortcuts import SHORTCUTS, balanced, shortcut_areas
from research.measure.report import (
    fitted_curve,
    measure,
    yes_or_no,
)
from research.measure.sets import Suite, library_pairs, suites
from research.samples.files import Sources
from research.samples.pairs import Label, TrainingPair
from tests.scripted.slm import JudgeModel


def pair(
    label: Label, statement: str = "a b", evidence: str = "c", group: str = "g"
) -> TrainingPair:
    return TrainingPair(evidence=evidence, statement=statement, label=label, make="m", group=group)


def test_supported_against_the_rest():
    examples = [pair("supported"), pair("contradicted"), pair("not_enough"), pair("supported")]
    said = np.array([[0.9, 0.1, 0], [0.6, 0.4, 0], [0.1, 0, 0.9], [0.5, 0, 0.5]])
    found = measure(Suite("x", examples), said)
    # Of the four comparisons only 0.5 against 0.6 is lost.
    assert (found["auroc"], found["supported"]) == (0.75, 0.5)
    # 0.9 and 0.1 are on the right side of a half, 0.6 is not, and 0.5 is on neither.
    assert found["right"] == 2


def test_macro_f1_counts_every_label_the_same():
    examples = [pair("supported"), pair("supported"), pair("contradicted"), pair("not_enough")]
    said = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]], dtype=float)
    # Supported: precision 1, recall 1/2. Contradicted: 1/3 and 1. Not enough: never said.
    found = measure(Suite("x", examples, three_way=True), said)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 3, abs=1e-4)


def test_shortcuts_measure_what_can_be_seen_without_reading():
    one = pair("supported", "Red is it", "It is red now")
    assert SHORTCUTS["word overlap"](one) == 1.0
    assert SHORTCUTS["statement length"](one) == 3
    assert SHORTCUTS["position"](pair("supported", "red", "it is red now")) == 2 / 4


def test_balancing_takes_the_shortcut_away():
    random = Random(3)
    said = [pair("supported", "a b", "a b", f"{n}") for n in range(400)]
    unsaid = [pair("not_enough", "a b", "c d" if n % 10 else "a b", f"{n}") for n in range(400)]
    before = shortcut_areas([*said, *unsaid])["word overlap"]
    kept = balanced([*said, *unsaid], random)
    after = shortcut_areas(kept)["word overlap"]
    assert before > 0.9
    assert abs(after - 0.5) < 0.3
    assert {one.label for one in kept} == {"supported", "not_enough"}


def test_a_curve_through_what_is_right_and_wrong():
    numbers = [0.0] * 4 + [1.0] * 4
    right = [True, False, False, False, True, True, True, False]
    offset, slope = fitted_curve(numbers, right)
    # One of four at 0, three of four at 1: log odds of -ln 3 and ln 3.
    assert offset == pytest.approx(-np.log(3), abs=1e-2)
    assert slope == pytest.approx(2 * np.log(3), abs=2e-2)


def same(statement: str, other: str, label: str) -> TrainingPair:
    return TrainingPair.model_validate(
        {
            "evidence": other,
            "statement": statement,
            "label": label,
            "make": "same",
            "group": "g",
            "question": "Where?",
            "relation": "same",
        }
    )


def test_our_statements_are_of_all_kinds_and_their_articles_exist():
    english, chinese = list(library_pairs("en")), list(library_pairs("zh"))
    assert len(english) > 100
    assert len(chinese) > 20
    for pairs in (english, chinese):
        assert {pair.label for pair in pairs} == {"supported", "contradicted", "not_enough"}
        assert all(len(pair.evidence) > 150 for pair in pairs)
        assert len({pair.statement for pair in pairs}) == len(pairs)


def test_no_statement_of_ours_is_copied_from_its_article():
    assert not [p for p in library_pairs("en") if p.statement in p.evidence]


def test_without_files_there_are_our_own_statements_to_report_on():
    assert [suite.name for suite in suites(Sources(), 1)] == ["library", "library_zh", "yes_or_no"]
    assert list(suites(Sources(), 0)) == []


def test_the_odd_half_of_every_file(tmp_path: Path):
    records = [{"claim": f"{n}", "evidence": "e", "stance": "refute"} for n in range(4)]
    path = tmp_path / "stances.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    suite = next(iter(suites(Sources(stances=path), 1)))
    assert (suite.name, suite.three_way) == ("stances", True)
    assert [pair.statement for pair in suite.examples] == ["1", "3"]


def test_statements_that_can_be_asked_are_asked():
    asked = next(suite for suite in suites(Sources(), 1) if suite.name == "yes_or_no")
    assert len(asked.examples) > 50
    assert all(pair.statement.endswith("?") for pair in asked.examples)
    assert {pair.label for pair in asked.examples} >= {"supported", "contradicted"}


def test_two_answers_are_compared_without_the_question():
    suite = Suite("two_answers", [same("Hope", "In Hope", "supported")])
    (claim,) = suite.claims
    assert (claim.relation, claim.statement, claim.evidence) == ("same", "Hope", ("In Hope",))
    assert claim.question == "Where?"


def test_a_suite_is_measured_by_what_was_said():
    pairs = [same("a", "b", "supported"), same("c", "d", "contradicted")]
    said = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    found = measure(Suite("two_answers", pairs), said)
    assert (found["auroc"], found["right"], found["examples"]) == (1.0, 2, 2)
    assert found["reliability"] == [[0.2, 0.0, 1], [0.9, 1.0, 1]]
    assert "macro_f1" not in found


async def test_a_language_model_is_asked_as_the_slm_check_asks():
    model = JudgeModel("asked", {"a": 0.7, "c": None})
    claims = Suite("x", [same("a", "b", "supported"), same("c", "d", "supported")]).claims
    said = await yes_or_no(model, claims)
    # One that says neither is worth a coin.
    assert said.tolist() == [pytest.approx([0.7, 0.3, 0.0]), [0.5, 0.5, 0.0]]
    assert "[1] b" in model.asked[0].messages[-1].content
