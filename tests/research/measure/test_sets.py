"""The suites of odd records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.measure.sets import Suite, answers_by_hand, odd_suites, span_examples
from research.measure.suites import TITLES
from research.samples.files import Sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    folder = tmp_path_factory.mktemp("data")

    def written(name: str, rows: list[dict]) -> Path:
        path = folder / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    claims = [{"claim": f"c{n}", "evidence": f"e{n}", "label": "SUPPORTS"} for n in range(4)]
    hard = [{**row, "gold_evidence": [row["evidence"]]} for row in claims]
    cited = [{**row, "evidence": [row["evidence"]], "label": "supported"} for row in claims]
    climate = [
        {**row, "claim_label": "REFUTES", "evidences": [{"evidence": row["evidence"]}]}
        for row in claims
    ]
    stances = [{**row, "stance": "refute"} for row in claims]
    return Sources(
        hard=written("hard.jsonl", hard),
        symmetric=written("symmetric.jsonl", claims),
        cited=written("cited.jsonl", cited),
        climate=written("climate.jsonl", climate),
        stances=written("stances.jsonl", stances),
    )


def test_odd_records_of_every_file_are_a_suite(sources: Sources):
    found = {suite.name: suite for suite in odd_suites(sources)}
    for name in ("hard", "symmetric", "cited", "climate", "stances"):
        assert [one.statement for one in found[name].examples] == ["c1", "c3"]
        assert found[name].people
    # Groups are those by which training holds pairs out.
    assert [one.group for one in found["stances"].examples] == ["stance-1", "stance-3"]
    assert found["hard"].examples[0].group == "hard-1"
    # What was written for measuring is there without any file.
    assert {"library", "yes_or_no", "answers by hand"} <= set(found)
    assert set(found) <= set(TITLES)


def test_a_claim_alone_has_evidence_that_says_nothing(sources: Sources):
    (suite,) = (one for one in odd_suites(sources) if one.name == "hard")
    assert {claim.evidence for claim in suite.alone} == {("Nothing else is known about it.",)}
    assert [claim.statement for claim in suite.alone] == ["c1", "c3"]
    # Two answers are nothing without each other.
    assert Suite("answers by hand", tuple(answers_by_hand())).alone == []


def test_the_pairs_written_by_hand_are_a_suite():
    pairs = answers_by_hand()
    assert len(pairs) == 100
    assert sum(pair.supported for pair in pairs) == 50
    assert {pair.relation for pair in pairs} == {"same"}


def test_without_articles_there_are_no_labelled_words():
    assert span_examples(Sources()) == []


def test_words_are_labelled_in_odd_paragraphs(tmp_path: Path):
    paragraphs = [
        {
            "context": f"Ada Lovelace was born in London in 18{n}5. She lived in Paris.",
            "qas": [{"question": "Who?", "answers": [{"text": "Ada"}]}],
        }
        for n in range(6)
    ]
    content = {"data": [{"title": f"T{n}", "paragraphs": paragraphs[n::2]} for n in range(2)]}
    path = tmp_path / "articles.json"
    path.write_text(json.dumps(content))
    pairs = span_examples(Sources(articles=path))
    assert pairs
    assert all(pair.wrong is not None for pair in pairs)
    assert all(pair.wrong for pair in pairs if pair.label == "contradicted")
    assert len({pair.group for pair in pairs}) <= 3


def test_the_words_of_a_refuted_claim_are_those_that_its_twin_has_not(tmp_path: Path):
    path = tmp_path / "symmetric.jsonl"
    evidence = "He was born in Hope in 1946 ."
    rows = [
        {"claim": "He was born in Hope .", "evidence": evidence, "label": "SUPPORTS"},
        {"claim": "He was born in Paris , France .", "evidence": evidence, "label": "REFUTES"},
        {"claim": "Nothing is like that .", "evidence": evidence, "label": "SUPPORTS"},
        {"claim": "Everybody knows where she died .", "evidence": evidence, "label": "REFUTES"},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (suite,) = (one for one in odd_suites(Sources(symmetric=path)) if one.name == "refuted words")
    wrong, right = suite.examples
    assert wrong.wrong is not None
    assert [wrong.statement[start:end] for start, end in wrong.wrong] == ["Paris", "France"]
    assert (right.statement, right.wrong) == ("He was born in Hope .", ())
    assert wrong.group == right.group
