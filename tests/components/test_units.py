from math import log

import pytest

from components.units import Unit, heat_level, text_units
from pipelines.types import Token
from tests.components.samples import TEXT, TOKENS, ZH_TEXT, chinese, written


def covered(length: int, tokens: list[Token], cuts: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    return [(unit.start, unit.end) for unit in text_units(length, tokens, cuts)]


def token(start: int, end: int, p: float | None = 0.5, entropy: float | None = 1.0) -> Token:
    return Token(
        text="x", start=start, end=end, logprob=None if p is None else log(p), entropy=entropy
    )


def test_one_unit_a_token_where_none_overlap() -> None:
    units = text_units(len(TEXT), TOKENS)
    assert [unit.tokens for unit in units] == [(one,) for one in TOKENS]
    assert "".join(TEXT[unit.start : unit.end] for unit in units) == TEXT


def test_tokens_that_share_a_character_become_one_unit() -> None:
    units = text_units(len(ZH_TEXT), chinese())
    (shared,) = [unit for unit in units if len(unit.tokens) > 1]
    assert ZH_TEXT[shared.start : shared.end] == "杭"
    assert shared.probability == pytest.approx(0.5 * 0.4 * 0.9)
    assert shared.entropy == 2.1


def test_a_chain_of_overlaps_is_one_unit() -> None:
    assert covered(4, [token(0, 2), token(1, 3), token(2, 4)]) == [(0, 4)]
    assert covered(4, [token(0, 2), token(2, 4)]) == [(0, 2), (2, 4)]


def test_what_no_token_covers_is_kept_and_divided_at_the_cuts() -> None:
    assert covered(9, [token(3, 5)], (1, 4, 7, 9)) == [(0, 1), (1, 3), (3, 5), (5, 7), (7, 9)]
    assert covered(4, [], (2, 2)) == [(0, 2), (2, 4)]
    assert covered(0, []) == []


def test_tokens_beyond_the_text_or_without_characters_are_left_out() -> None:
    assert covered(3, [token(0, 0), token(0, 2), token(2, 9), token(5, 6)]) == [(0, 2), (2, 3)]


def test_order_of_tokens_does_not_matter() -> None:
    assert covered(4, [token(2, 4), token(0, 2)]) == [(0, 2), (2, 4)]


def test_an_unknown_part_makes_the_probability_unknown() -> None:
    unit = Unit(0, 1, (token(0, 1, 0.5), token(0, 1, None, None)))
    assert unit.probability is None
    assert unit.entropy == 1.0
    assert Unit(0, 1).probability is None
    assert Unit(0, 1).entropy is None


@pytest.mark.parametrize(
    ("p", "level"),
    [
        (1.0, 0),
        (0.95, 0),
        (0.94, 1),
        (0.8, 1),
        (0.79, 2),
        (0.6, 2),
        (0.59, 3),
        (0.4, 3),
        (0.39, 4),
        (0.2, 4),
        (0.19, 5),
        (0.05, 5),
        (0.049, 6),
        (0.0, 6),
    ],
)
def test_levels_of_probability(p: float, level: int) -> None:
    assert heat_level("probability", p) == level


@pytest.mark.parametrize(
    ("entropy", "level"),
    [(0.0, 0), (0.1, 1), (0.49, 1), (0.5, 2), (1.0, 3), (1.5, 4), (2.5, 5), (4.0, 6), (11.0, 6)],
)
def test_levels_of_entropy_are_capped(entropy: float, level: int) -> None:
    assert heat_level("entropy", entropy) == level


def test_no_level_without_a_value() -> None:
    assert heat_level("probability", None) is None


def test_hand_made_tokens_spell_their_text() -> None:
    assert [t.text for t in written(("a", 0.5, 1.0), (" b", 0.5, 1.0))] == ["a", " b"]
