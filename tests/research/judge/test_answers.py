"""Two answers to one question: the same or another, in either direction."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from research.judge.labelled import (
    AnsweredQuestion,
    answer_pairs,
    both_ways,
    short_and_long,
)
from research.judge.made import Names
from research.samples.files import Sources

ASKED = AnsweredQuestion(
    "Who wrote the notes?",
    "Ada Lovelace",
    "The notes were written by Ada Lovelace. She met Charles Babbage in London.",
    "qa-1",
)


@pytest.fixture(scope="module")
def names() -> Names:
    return Names()


def test_both_directions_are_one_pair():
    one, other = both_ways("Who?", "Ada", "It was Ada.", same=True, group="g")
    assert (one.statement, one.evidence) == (other.evidence, other.statement)
    assert {one.label, other.label} == {"supported"}
    assert one.relation == "same"


def test_short_and_long_answers_are_compared(names: Names):
    pairs = [p for n in range(40) for p in short_and_long(ASKED, names, Random(n))]
    labels = Counter(pair.label for pair in pairs)
    # Sometimes no other name is found.
    assert labels["supported"] == labels["contradicted"] > 100
    for pair in pairs:
        holding = ["Ada Lovelace" in said for said in (pair.statement, pair.evidence)]
        # "Charles Babbage" is the other name.
        assert all(holding) if pair.supported else holding.count(True) == 1
    same = [pair for pair in pairs if pair.supported]
    assert any(len(p.statement.split()) == 2 and len(p.evidence.split()) > 5 for p in same)
    assert any(len(p.evidence.split()) == 2 and len(p.statement.split()) > 5 for p in same)


def test_long_answers_make_no_pairs(names: Names):
    long = ASKED._replace(answer="one of " * 8)
    assert list(short_and_long(long, names, Random(0))) == []


def written(tmp_path: Path) -> Sources:
    consistency = tmp_path / "consistency.json"
    record = {"question": "Who?", "right_answer": "Ada", "hallucinated_answer": "Eve did."}
    consistency.write_text(
        json.dumps(
            [
                {**record, "generated_answer": "It was Ada.", "label": "True"},
                {**record, "generated_answer": "An odd one.", "label": "True"},
                {**record, "generated_answer": "It was Bob.", "label": "False"},
            ]
        )
    )
    trivia = tmp_path / "trivia.jsonl"
    rows = [{"question": f"Q{n}", "answers": [f"a{n}", f"b{n}"]} for n in range(20)]
    trivia.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    facts = tmp_path / "facts.jsonl"
    rows = [
        {"question": f"Is it {n}?", "answer": n % 4 == 0, "facts": ["It is so"]} for n in range(40)
    ]
    facts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Sources(consistency=consistency, trivia=trivia, facts=facts)


def test_even_records_of_every_file_make_pairs(names: Names, tmp_path: Path):
    pairs = list(answer_pairs(written(tmp_path), names, Random(0)))
    said = {pair.statement for pair in pairs}
    assert "An odd one." not in said
    by_pair = {(pair.statement, pair.evidence): pair.label for pair in pairs}
    assert by_pair["It was Ada.", "Ada"] == "supported"
    assert by_pair["It was Ada.", "Eve did."] == "contradicted"
    assert by_pair["It was Bob.", "Ada"] == "contradicted"
    # Whether a wrong sentence says the same as another wrong one is not known.
    assert ("It was Bob.", "Eve did.") not in by_pair
    assert not {f"a{n}" for n in range(1, 20, 2)} & said
    trivia = [pair for pair in pairs if pair.group.startswith("trivia-")]
    for pair in trivia:
        assert (pair.statement[1:] == pair.evidence[1:]) == pair.supported


def test_a_reason_goes_with_its_yes_or_no(names: Names, tmp_path: Path):
    pairs = answer_pairs(written(tmp_path), names, Random(0))
    found = [p for p in pairs if p.group.startswith("facts-") and "so" in p.evidence]
    assert found
    for pair in found:
        starts = pair.evidence.startswith(pair.statement.rstrip("."))
        assert starts == pair.supported
