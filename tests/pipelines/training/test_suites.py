"""What judges are measured on: halves of files, our own statements, a rival that is asked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines.training.examples import Example
from pipelines.training.recipe import Files
from pipelines.training.rivals import said_by
from pipelines.training.suites import Suite, measure, statement_pairs, suites
from tests.pipelines.methods.slm.judges import JudgeModel


def same(statement: str, other: str, label: str) -> Example:
    return Example.model_validate(
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
    english, chinese = list(statement_pairs("en")), list(statement_pairs("zh"))
    assert len(english) > 100
    assert len(chinese) > 20
    for pairs in (english, chinese):
        assert {pair.label for pair in pairs} == {"supported", "contradicted", "not_enough"}
        assert all(len(pair.evidence) > 150 for pair in pairs)
        assert len({pair.statement for pair in pairs}) == len(pairs)


def test_no_statement_of_ours_is_copied_from_its_article():
    assert not [p for p in statement_pairs("en") if p.statement in p.evidence]


def test_without_files_there_are_our_own_statements_to_report_on():
    assert [suite.name for suite in suites(Files(), 1)] == ["library", "library_zh", "yes_or_no"]
    assert list(suites(Files(), 0)) == []


def test_the_odd_half_of_every_file(tmp_path: Path):
    records = [{"claim": f"{n}", "evidence": "e", "stance": "refute"} for n in range(4)]
    path = tmp_path / "stances.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    suite = next(iter(suites(Files(stances=path), 1)))
    assert (suite.name, suite.three_way) == ("stances", True)
    assert [pair.statement for pair in suite.examples] == ["1", "3"]


def test_statements_that_can_be_asked_are_asked():
    asked = next(suite for suite in suites(Files(), 1) if suite.name == "yes_or_no")
    assert len(asked.examples) > 50
    assert all(pair.statement.endswith("?") for pair in asked.examples)
    assert {pair.label for pair in asked.examples} >= {"supported", "contradicted"}


def test_two_answers_are_held_against_each_other_without_the_question():
    suite = Suite("two_answers", [same("Hope", "In Hope", "supported")])
    (claim,) = suite.claims()
    assert (claim.relation, claim.statement, claim.evidence) == ("same", "Hope", ("In Hope",))
    assert claim.question == "Where?"


def test_a_suite_is_measured_by_what_was_said():
    pairs = [same("a", "b", "supported"), same("c", "d", "contradicted")]
    said = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    found = measure(Suite("two_answers", pairs), said)
    assert (found["auroc"], found["right"], found["examples"]) == (1.0, 2, 2)
    assert found["reliability"] == [[0.2, 0.0, 1], [0.9, 1.0, 1]]
    assert "macro_f1" not in found
    assert measure(Suite("x", pairs, three_way=True), said)["auroc_supported_or_contradicted"] == 1


async def test_a_language_model_is_asked_as_the_slm_check_asks():
    model = JudgeModel("asked", {"a": 0.7, "c": None})
    claims = Suite("x", [same("a", "b", "supported"), same("c", "d", "supported")]).claims()
    said = await said_by(model, claims)
    # One that says neither is worth a coin.
    assert said.tolist() == [pytest.approx([0.7, 0.3, 0.0]), [0.5, 0.5, 0.0]]
    assert "[1] b" in model.asked[0].messages[-1].content
