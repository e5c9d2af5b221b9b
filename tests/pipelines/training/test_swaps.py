"""Changes that make a sentence say something else."""

from __future__ import annotations

import re
from random import Random

import pytest

from pipelines.training import swaps
from pipelines.training.swaps import Names, swapped
from pipelines.training.texts import text_of

TEXT = text_of(
    "ada",
    "Ada Lovelace",
    "Ada Lovelace was born in London in 1815. Charles Babbage met her in Paris. "
    "She wrote 3 notes about the engine of Babbage.",
)


@pytest.fixture(scope="module")
def names() -> Names:
    known = Names()
    known.learn([TEXT])
    return known


def test_a_name_becomes_another_of_its_kind(names: Names):
    found = {
        swap.text
        for seed in range(40)
        if (swap := swaps._entity("She was born in London.", TEXT, names, Random(seed)))
    }
    assert found == {"She was born in Paris."}


def test_two_names_of_a_kind_change_places(names: Names):
    swap = swaps._two_names("He went from London to Paris.", names, Random(0))
    assert swap is not None
    assert swap.text == "He went from Paris to London."
    # This says the same the other way round.
    assert swaps._two_names("He saw London and Paris.", names, Random(0)) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_year_becomes_another_year(seed: int):
    swap = swaps._year("Born in 1815, in London.", Random(seed))
    assert swap is not None
    assert re.fullmatch(r"Born in 1[789]\d\d, in London\.", swap.text)
    assert swap.before == "1815"
    assert swap.after in swap.text
    assert "1815" not in swap.text


@pytest.mark.parametrize("sentence", ["It has 3 notes.", "About 6,650 kilometres.", "It is 2.5 m."])
@pytest.mark.parametrize("seed", range(10))
def test_a_number_becomes_another_of_its_form(sentence: str, seed: int):
    swap = swaps._number(sentence, Random(seed))
    assert swap is not None
    assert swap.text != sentence
    assert re.sub(r"[\d.,]+", "#", swap.text) == re.sub(r"[\d.,]+", "#", sentence)


def test_negation_comes_and_goes():
    assert swaps._negation("It was not red.", Random(0)) == swaps.Swap("negation", "It was red.")
    assert swaps._negation("It never was.", Random(0)) == swaps.Swap("negation", "It was.")
    found = {
        swap.text for seed in range(30) if (swap := swaps._negation("It is red.", Random(seed)))
    }
    assert found == {"It is not red.", "It is never red."}


def test_a_sentence_with_nothing_to_change(names: Names):
    assert swapped("So be it.", TEXT, names, Random(0)) is None
