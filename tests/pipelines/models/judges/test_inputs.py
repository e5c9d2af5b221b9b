"""Statement and evidence as word pieces: windows, what stands in both, lengths."""

from __future__ import annotations

import pytest

from pipelines.models.judges.inputs import (
    LONGEST,
    Pieces,
    asked_pieces,
    load_tokenizer,
    most_alike,
    pair_of,
    pieces_of,
    room_for,
    windows_of,
)
from pipelines.models.judges.trained import encoder_folder


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(encoder_folder())


def numbered(count: int) -> Pieces:
    return Pieces(tuple(range(count)), (True,) * count)


def test_what_fits_is_one_window():
    assert windows_of(numbered(8), 8) == [numbered(8)]


def test_longer_evidence_is_read_in_windows_that_share_a_quarter():
    windows = windows_of(numbered(20), 8)
    # Each begins 6 = 8 - 8/4 further on; the last ends with the evidence.
    assert [(w.ids[0], w.ids[-1]) for w in windows] == [(0, 7), (6, 13), (12, 19)]
    assert all(len(window.ids) <= 8 for window in windows)


@pytest.mark.parametrize("count", range(9, 60))
def test_no_piece_is_left_out(count: int):
    read = {piece for window in windows_of(numbered(count), 8) for piece in window.ids}
    assert read == set(range(count))


def test_windows_that_hold_most_of_the_statement_are_read():
    asked = Pieces((1, 2, 3, 9), (True, True, True, False))
    windows = [Pieces((9, 9), (True, True)), Pieces((1, 2), (True, True)), Pieces((3,), (True,))]
    # 9 is punctuation of the statement and does not count.
    assert most_alike(asked, windows, 2) == [1, 2]
    assert most_alike(asked, windows, 1) == [1]


def test_a_pair_says_what_stands_in_both(tokenizer):
    asked = asked_pieces(tokenizer, "", "Born in Hope.")
    pair = pair_of(tokenizer, asked, pieces_of(tokenizer, "He lived in Hope"))
    words = [tokenizer.id_to_token(piece) for piece in pair.ids]
    assert words == [
        "[CLS]",
        *["born", "in", "hope", "."],
        "[SEP]",
        *["he", "lived", "in", "hope"],
        "[SEP]",
    ]
    assert pair.types == [0] * 6 + [1] * 5
    assert pair.matches == [0, 2, 1, 1, 0, 0, 2, 2, 1, 1, 0]


def test_of_a_long_question_and_statement_the_end_is_read(tokenizer):
    asked = asked_pieces(tokenizer, "why " * 200, "because of rain")
    assert len(asked.ids) == 80
    assert tokenizer.decode(list(asked.ids[-3:])) == "because of rain"
    assert room_for(asked) == LONGEST - 83
