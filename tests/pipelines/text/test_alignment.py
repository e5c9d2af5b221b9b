"""Tokens and characters, against alignments worked out by hand."""

from __future__ import annotations

import random
from math import log

import pytest

from pipelines.base import Token
from pipelines.text.alignment import by_characters, token_spans, tokens_covering
from tests.worlds import worlds

ENGLISH = [b"Bill", b" Clinton", b" was", b" born", b" in", b" Hope", b",", b" Arkansas", b"."]


def test_english_tokens_keep_their_leading_space() -> None:
    assert token_spans(ENGLISH) == [
        (0, 4),
        (4, 12),
        (12, 16),
        (16, 21),
        (21, 24),
        (24, 29),
        (29, 30),
        (30, 39),
        (39, 40),
    ]


@pytest.mark.parametrize(
    ("entity", "tokens"),
    [
        ("Bill Clinton", range(0, 2)),
        ("Hope", range(5, 6)),
        ("Arkansas", range(7, 8)),
        ("Hope, Arkansas", range(5, 8)),
        ("Ark", range(7, 8)),
        (".", range(8, 9)),
    ],
)
def test_entity_of_english_text(entity: str, tokens: range) -> None:
    text = b"".join(ENGLISH).decode()
    start = text.index(entity)
    assert tokens_covering(token_spans(ENGLISH), start, start + len(entity)) == tokens


def test_chinese_character_over_three_tokens() -> None:
    # 鲁 is E9 B2 81 and 迅 is E8 BF 85; 生 (E7 94 9F) is whole.
    pieces = [b"\xe9", b"\xb2", b"\x81", b"\xe8\xbf", b"\x85", b"\xe7\x94\x9f"]
    spans = token_spans(pieces)
    assert spans == [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2), (2, 3)]
    assert tokens_covering(spans, 0, 2) == range(0, 5)
    assert tokens_covering(spans, 1, 2) == range(3, 5)


def test_token_with_parts_of_two_characters_belongs_to_both() -> None:
    # 北 E5 8C 97, 京 E4 BA AC: the middle token ends the one and begins the other.
    pieces = [b"\xe5\x8c", b"\x97\xe4", b"\xba\xac"]
    spans = token_spans(pieces)
    assert spans == [(0, 1), (0, 2), (1, 2)]
    assert tokens_covering(spans, 0, 1) == range(0, 2)
    assert tokens_covering(spans, 1, 2) == range(1, 3)


def test_token_of_several_characters() -> None:
    pieces = [b"1946", "年8月".encode(), b"19", "日，".encode()]
    spans = token_spans(pieces)
    assert spans == [(0, 4), (4, 7), (7, 9), (9, 11)]
    # 1946年8月19日: the last token also holds the comma.
    assert tokens_covering(spans, 0, 10) == range(0, 4)


def test_mixed_text_and_emoji() -> None:
    # "né 🎉": é is C3 A9, the emoji F0 9F 8E 89 is one character of four bytes.
    pieces = [b"n\xc3", b"\xa9", b" \xf0\x9f", b"\x8e", b"\x89"]
    assert token_spans(pieces) == [(0, 2), (1, 2), (2, 4), (3, 4), (3, 4)]


def test_same_word_twice_gives_two_ranges() -> None:
    pieces = [b"Paris", b" and", b" Paris"]
    spans = token_spans(pieces)
    assert tokens_covering(spans, 0, 5) == range(0, 1)
    assert tokens_covering(spans, 10, 15) == range(2, 3)


def test_invalid_bytes_count_as_the_replacement_characters_they_decode_to() -> None:
    # A lone start byte, then a sequence cut short by an ASCII letter.
    pieces = [b"a\xff", b"\xe4\xb8", b"b"]
    text = b"".join(pieces).decode("utf-8", errors="replace")
    assert text == "a\ufffd\ufffdb"
    assert token_spans(pieces) == [(0, 2), (2, 3), (3, 4)]


def test_character_cut_off_at_the_end() -> None:
    # The stream stopped inside 京 (E4 BA AC).
    pieces = [b"\xe5\x8c\x97", b"\xe4", b"\xba"]
    assert b"".join(pieces).decode("utf-8", errors="replace") == "北\ufffd"
    assert token_spans(pieces) == [(0, 1), (1, 2), (1, 2)]


def test_empty_pieces_have_no_width_and_never_begin_or_end_a_range() -> None:
    pieces = [b"", b"New", b"", b" York", b""]
    spans = token_spans(pieces)
    assert spans == [(0, 0), (0, 3), (3, 3), (3, 8), (8, 8)]
    assert tokens_covering(spans, 0, 8) == range(1, 4)


@pytest.mark.parametrize(("start", "end"), [(5, 5), (9, 12), (4, 2)])
def test_nothing_covered(start: int, end: int) -> None:
    assert tokens_covering(token_spans([b"Hello"]), start, end) == range(0)


def test_no_tokens() -> None:
    assert token_spans([]) == []
    assert tokens_covering([], 0, 3) == range(0)


@pytest.mark.parametrize("seed", worlds(40))
def test_spans_cover_the_decoded_text_however_bytes_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    alphabet = [*"ab ", "é", "北", "京", "🎉", "·"]
    data = "".join(chance.choices(alphabet, k=30)).encode()
    if seed % 2:
        broken = bytearray(data)
        for _ in range(5):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        data = bytes(broken)
    cuts = sorted(chance.choices(range(len(data) + 1), k=12))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    text = data.decode("utf-8", errors="replace")
    spans = token_spans(pieces)
    assert {i for start, end in spans for i in range(start, end)} == set(range(len(text)))
    for piece, (start, end) in zip(pieces, spans, strict=True):
        assert (start < end) == bool(piece)
        # A piece that is valid by itself decodes to exactly its characters.
        if piece and not seed % 2:
            try:
                alone = piece.decode()
            except UnicodeDecodeError:
                continue
            assert text[start:end] == alone


def test_bytes_of_one_character_are_one_outcome():
    def token(start: int, end: int, probability: float, entropy: float) -> Token:
        return Token(text="", start=start, end=end, logprob=log(probability), entropy=entropy)

    # "长" in two tokens and "江" in one, which holds the end of nothing else.
    split = [token(0, 1, 0.5, 1.2), token(0, 1, 0.4, 0.1), token(1, 2, 0.9, 0.3)]
    joined = by_characters(split)
    assert [(one.start, one.end) for one in joined] == [(0, 1), (1, 2)]
    assert [one.probability for one in joined] == [pytest.approx(0.2), pytest.approx(0.9)]
    assert [one.entropy for one in joined] == [1.2, 0.3]
    unknown = [split[0], split[1].model_copy(update={"logprob": None})]
    assert by_characters(unknown)[0].probability is None
