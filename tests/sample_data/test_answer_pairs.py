"""The hundred pairs of answers: complete, of both kinds, and not to be guessed by their length."""

from __future__ import annotations

import json
from collections import Counter

from pipelines.base import SAMPLE_DATA

PAIRS = json.loads((SAMPLE_DATA / "answer_pairs.json").read_text(encoding="utf-8"))


def test_there_are_a_hundred_half_of_which_say_the_same():
    assert Counter(pair["same"] for pair in PAIRS) == {True: 50, False: 50}
    assert all(set(pair) == {"question", "first", "second", "same"} for pair in PAIRS)
    assert all(pair["question"].endswith("?") for pair in PAIRS)
    assert len({(pair["question"], pair["same"]) for pair in PAIRS}) == 100


def test_one_answer_of_each_is_short_and_the_other_a_sentence():
    for pair in PAIRS:
        short, long = sorted((pair["first"], pair["second"]), key=len)
        assert len(short.split()) <= 5
        assert len(long.split()) >= 5
        assert long.endswith(".")


def test_the_length_of_the_answers_says_nothing():
    def words(same: bool) -> float:
        lengths = [
            len(f"{pair['first']} {pair['second']}".split())
            for pair in PAIRS
            if pair["same"] == same
        ]
        return sum(lengths) / len(lengths)

    assert abs(words(True) - words(False)) < 2.5
