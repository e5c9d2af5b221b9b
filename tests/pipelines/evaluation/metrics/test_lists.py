"""Lists of entities: how an answer is taken apart, and its precision and recall."""

from __future__ import annotations

import pytest

from pipelines.evaluation.metrics.answers import entities, score_list
from pipelines.evaluation.plan import Item


def item(*lists: tuple[str, ...]) -> Item:
    return Item(id="1", lists=lists)


FILMS = item(("Heat", "The Heat"), ("Alien",), ("Trinidad and Tobago",), ("Washington, D.C.",))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Heat, Alien.", ["Heat", "Alien"]),
        ("1. Heat\n2) Alien\n- Jaws", ["Heat", "Alien", "Jaws"]),
        ("Heat; Alien; and Jaws", ["Heat", "Alien", "Jaws"]),
        ("Heat and Alien", ["Heat", "Alien"]),
        # Whole names stay together, known or not.
        ("Trinidad and Tobago, Heat", ["Trinidad and Tobago", "Heat"]),
        ("Bosnia and Herzegovina", ["Bosnia and Herzegovina"]),
        ("Heat, Washington, D.C., Alien", ["Heat", "Washington, D.C.", "Alien"]),
        ("She made these: Heat, Alien", ["Heat", "Alien"]),
        ("热、Alien和Heat", ["热", "Alien", "Heat"]),
        (", ,\n", []),
    ],
)
def test_entities_are_taken_apart(answer: str, found: list[str]):
    assert entities(answer, FILMS) == found


def test_precision_and_recall_of_a_short_list():
    # Two of three are right; two of four were found.
    score = score_list("the heat, Alien, Jaws", FILMS)
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall_5 == pytest.approx(2 / 4)
    assert score.f1_5 == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))


def test_five_of_many_are_enough():
    many = item(*[(f"film {number}",) for number in range(20)])
    # Four of twenty: recall of five is 4/5. Seven: no more than 1.
    assert score_list("film 1, film 2, film 3, film 4", many).recall_5 == 0.8
    assert score_list(", ".join(f"film {number}" for number in range(7)), many) == (1, 1, 1)


def test_an_entity_counts_once_for_recall():
    score = score_list("Heat, The Heat", item(("Heat", "The Heat"), ("Alien",)))
    assert (score.precision, score.recall_5) == (1, 0.5)


def test_an_empty_answer_and_an_item_without_a_list():
    assert score_list("", FILMS) == (0, 0, 0)
    with pytest.raises(ValueError, match="no list"):
        score_list("Heat", Item(id="1"))
