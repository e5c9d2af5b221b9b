"""Where a statement differs from a true one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.samples.pairs import TrainingPair, differing, write_examples


def words(true: str, statement: str) -> list[str] | None:
    places = differing(true, statement)
    return None if places is None else [statement[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("true", "statement", "different"),
    [
        ("Oslo lies in Norway.", "Oslo lies in Sweden.", ["Sweden"]),
        ("It opened in 1901.", "It opened in 1,901 days.", ["1,901 days"]),
        ("Ann saw the play that Bob wrote.", "Bob saw the play that Ann wrote.", ["Bob", "Ann"]),
        ("She sang.", "She never sang.", ["never"]),
        # What is missing is felt at the words beside the gap.
        ("She never sang there.", "She sang there.", ["She sang"]),
        ("Not all came.", "all came.", ["all"]),
        ("He was born in Rome.", "He was born in Rome and died in Pisa.", ["and died in Pisa"]),
        ("O'Neill's play ran.", "O'Brien's play ran.", ["O'Brien's"]),
        # Nothing differs, or nearly everything does.
        ("The same.", "the same", None),
        ("One thing is said here.", "Quite another matter, wholly different words.", None),
    ],
)
def test_the_words_that_differ(true: str, statement: str, different: list[str] | None):
    assert words(true, statement) == different


def test_a_pair_of_which_all_is_right_or_wrong():
    pair = TrainingPair(evidence="e", statement="Oslo", label="supported", make="m", group="g")
    assert (pair.wrong, pair.wholly_right.wrong, pair.wholly_wrong.wrong) == (None, (), ((0, 4),))


def test_pairs_are_written_a_line_each(tmp_path: Path):
    pair = TrainingPair(
        evidence="北京", statement="s", label="supported", make="m", group="g", wrong=((0, 1),)
    )
    write_examples(tmp_path / "pairs.jsonl", [pair, pair])
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert "北京" in lines[0]
    assert TrainingPair.model_validate(json.loads(lines[0])) == pair
