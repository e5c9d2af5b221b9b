"""Token entries and the text they belong to."""

from __future__ import annotations

from math import log

import pytest

from pipelines.models.byte_tokens import Piece, decode_complete, place, read_piece
from tests.pipelines.models.wire import entry, raw_entry


def pieces(*data: str | bytes) -> list[Piece]:
    return [read_piece(raw_entry(one if isinstance(one, bytes) else one.encode())) for one in data]


def spans(content: str, *data: str | bytes) -> list[tuple[str, int, int]] | None:
    _, tokens = place(pieces(*data), content)
    return None if tokens is None else [(token.text, token.start, token.end) for token in tokens]


def test_entropy_counts_the_tail_as_one_outcome():
    piece = read_piece(entry("a", 0.5, ("b", 0.25)))
    # 1/2 ln 2 + 1/4 ln 4 + 1/4 ln 4
    assert piece.entropy == pytest.approx(1.5 * log(2))
    assert piece.tail_mass == pytest.approx(0.25)
    assert piece.top_k == 2
    assert [one.text for one in piece.alternatives] == ["a", "b"]


def test_a_token_outside_the_reported_ones_still_counts():
    improbable = entry("a", 0.5, ("b", 0.25)) | {"token": "z", "bytes": [122], "logprob": log(0.1)}
    piece = read_piece(improbable)
    assert piece.top_k == 3
    assert piece.tail_mass == pytest.approx(0.15)
    assert [one.text for one in piece.alternatives] == ["a", "b"]


def test_a_character_merged_from_several_tokens_is_found_by_its_id():
    merged = entry("魍", 0.5, id=9) | {
        "top_logprobs": [{"id": 9, "token": "", "bytes": [141], "logprob": log(0.5)}]
    }
    assert read_piece(merged).top_k == 1


def test_without_bytes_the_token_string_stands_in():
    assert read_piece(entry(" hi", 0.5, bytes=None)).data == b" hi"


def test_a_log_probability_never_exceeds_zero():
    assert read_piece(entry("a", 1.0, logprob=1e-6)).logprob == 0.0


@pytest.mark.parametrize("lost", ["logprob", "token"])
def test_an_entry_without_its_parts_is_an_error(lost: str):
    broken = entry("a", 0.5, bytes=None)
    del broken[lost]
    with pytest.raises(KeyError):
        read_piece(broken)


def test_tokens_that_spell_the_text():
    assert spans("Hi you", "Hi", " you") == [("Hi", 0, 2), (" you", 2, 6)]


def test_bytes_of_one_character_overlap():
    assert spans("龘!", b"\xe9\xbe", b"\x98!") == [("龘", 0, 1), ("龘!", 0, 2)]


@pytest.mark.parametrize("end", ["<|im_end|>", "", " STOP"])
def test_what_follows_the_text_is_dropped(end: str):
    assert spans("Hi", "Hi", end) == [("Hi", 0, 2)]


def test_a_stop_string_may_cut_a_token():
    assert spans("1, 2", "1", ", ", "2, 3") == [("1", 0, 1), (", ", 1, 3), ("2", 3, 4)]


def test_trimmed_white_space_is_dropped():
    assert spans("{}", "\n", "{", "}") == [("{", 0, 1), ("}", 1, 2)]
    assert spans("Paris", " Paris") == [("Paris", 0, 5)]


def test_reasoning_before_the_text_is_dropped_even_when_it_quotes_it():
    found = spans("Yes", "<think>", "Yes", "?", "</think>", "Yes", "<|im_end|>")
    assert found == [("Yes", 0, 3)]
    _, tokens = place(
        [
            read_piece(entry("Yes", 0.1)),
            read_piece(entry("\n", 0.9)),
            read_piece(entry("Yes", 0.7)),
        ],
        "Yes",
    )
    # At the very start the first is taken: nothing says that it was left out.
    assert tokens is not None
    assert tokens[0].probability == pytest.approx(0.1)


def test_text_of_another_origin_has_no_tokens():
    assert spans("Something else", "Hi", " you") is None


def test_bytes_mend_replaced_characters():
    text, tokens = place(pieces("a", b"\xf0\x9f", b"\xa6\x9c"), "a\ufffd\ufffd")
    assert text == "a🦜"
    assert tokens is not None
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (1, 2), (1, 2)]


def test_replaced_characters_stay_where_nothing_mends_them():
    text, tokens = place(pieces("b", b"\xf0\x9f\xa6\x9c"), "a\ufffd")
    assert (text, tokens) == ("a\ufffd", None)


def test_no_text_has_no_tokens():
    assert place([], "") == ("", ())


def test_a_character_counts_once_all_its_bytes_are_there():
    assert decode_complete("a龘".encode()[:-1]) == "a"
    assert decode_complete("a龘".encode()) == "a龘"
    assert decode_complete(b"a\xff") == "a\ufffd"
