"""A statement and its evidence as the judge reads them: word pieces, in windows of sentences.

Evidence longer than a window is not cut where it happens to stand: a window is filled with the
sentences that have most to do with the statement, wherever in the evidence they are. What concerns
one statement is thereby read together, and little has to be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.models.base import Claim
from pipelines.text import split_sentences

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_PIECES = 256
"""Word pieces of a pair that are read at once, the three marks among them."""

MAX_STATEMENT_PIECES = 80
"""Word pieces of question and statement that are read; of more the last ones."""

MATCH_KINDS = 4
"""How many values `Pair.matches` takes."""

_MATCHED, _UNMATCHED, _ELSEWHERE = 1, 2, 3
_AGAIN = 0.25
"""What a piece of the statement is worth to a window that has it already."""

_FIRST_WORD = 1996
"""The index of "the" in BERT's vocabulary, which is in order of frequency from there on."""


class Pieces(NamedTuple):
    """A text's word pieces: ids in the vocabulary, and which of them carry meaning."""

    ids: tuple[int, ...]
    counted: tuple[bool, ...]


class Pair(NamedTuple):
    """Input of one reading. `types` is 0 for question and statement, 1 for the evidence;

    `matches` says of each word piece that it also stands in the other text (1), does not (2), does
    so only in evidence outside this window (3), or does not count (0: marks and punctuation).
    """

    ids: list[int]
    types: list[int]
    matches: list[int]


@cache
def load_tokenizer(folder: Path) -> Tokenizer:
    """The encoder's tokenizer, without its limit on lengths."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def pieces_of(tokenizer: Tokenizer, text: str) -> Pieces:
    """The word pieces of `text`; punctuation does not count."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    counted = tuple(any(char.isalnum() for char in token) for token in encoded.tokens)
    return Pieces(tuple(encoded.ids), counted)


def sentences_of(tokenizer: Tokenizer, text: str, room: int) -> Iterator[Pieces]:
    """The sentences of `text` as pieces; one longer than `room` in parts."""
    for sentence in split_sentences(text):
        whole = pieces_of(tokenizer, sentence.text)
        for at in range(0, len(whole.ids), room):
            yield Pieces(whole.ids[at : at + room], whole.counted[at : at + room])


def windows_of(asked: Pieces, sentences: Sequence[Pieces], room: int, most: int) -> list[Pieces]:
    """At most `most` windows of at most `room` pieces, the one most like the statement first.

    A window takes the sentences that hold most of the statement's pieces, rare ones and new ones
    above all, and keeps them in order.
    """
    weights = {
        piece: math.log1p(max(0, piece - _FIRST_WORD))
        for piece, counts in zip(asked.ids, asked.counted, strict=True)
        if counts
    }
    left = list(range(len(sentences)))
    windows: list[Pieces] = []
    while left and len(windows) < most:
        chosen = _chosen(weights, sentences, left, room)
        kept = [sentences[at] for at in sorted(chosen)]
        ids = tuple(piece for one in kept for piece in one.ids)
        windows.append(Pieces(ids, tuple(counts for one in kept for counts in one.counted)))
        left = [at for at in left if at not in chosen]
    return windows


def _chosen(
    weights: dict[int, float], sentences: Sequence[Pieces], left: Sequence[int], room: int
) -> set[int]:
    """Of the sentences that are `left`, those for one window."""
    if sum(len(sentences[at].ids) for at in left) <= room:
        return set(left)
    shared = {at: weights.keys() & set(sentences[at].ids) for at in left}
    chosen: set[int] = set()
    covered: set[int] = set()

    def gain(at: int) -> tuple[float, int]:
        worth = sum(weights[piece] * (_AGAIN if piece in covered else 1.0) for piece in shared[at])
        return worth, -at

    while fitting := [at for at in left if at not in chosen and len(sentences[at].ids) <= room]:
        best = max(fitting, key=gain)
        chosen.add(best)
        covered |= shared[best]
        room -= len(sentences[best].ids)
    return chosen


def asked_pieces(tokenizer: Tokenizer, question: str, statement: str) -> Pieces:
    """Question and statement as one text; of a long one the end, where the statement stands."""
    asked = pieces_of(tokenizer, f"{question} {statement}".strip())
    return Pieces(asked.ids[-MAX_STATEMENT_PIECES:], asked.counted[-MAX_STATEMENT_PIECES:])


def statement_offsets(tokenizer: Tokenizer, question: str, statement: str) -> list[tuple[int, int]]:
    """Where in `statement` each of the `asked_pieces` stands; the question lies before 0."""
    asked = f"{question} {statement}".strip()
    begin = len(asked) - len(statement.rstrip())
    offsets = tokenizer.encode(asked, add_special_tokens=False).offsets[-MAX_STATEMENT_PIECES:]
    return [(start - begin, end - begin) for start, end in offsets]


def pair_of(
    tokenizer: Tokenizer, asked: Pieces, window: Pieces, elsewhere: frozenset[int] = frozenset()
) -> Pair:
    """The input for one window of the evidence; `elsewhere` are the pieces of all evidence."""
    start, mark = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    assert start is not None
    assert mark is not None
    left, right = set(asked.ids), set(window.ids)

    def kind(piece: int, other: set[int]) -> int:
        if piece in other:
            return _MATCHED
        return _ELSEWHERE if other is right and piece in elsewhere else _UNMATCHED

    def matches(pieces: Pieces, other: set[int]) -> list[int]:
        return [
            kind(piece, other) if counts else 0
            for piece, counts in zip(pieces.ids, pieces.counted, strict=True)
        ]

    return Pair(
        ids=[start, *asked.ids, mark, *window.ids, mark],
        types=[0] * (len(asked.ids) + 2) + [1] * (len(window.ids) + 1),
        matches=[0, *matches(asked, right), 0, *matches(window, left), 0],
    )


def pairs_for(tokenizer: Tokenizer, claim: Claim, most: int) -> list[Pair]:
    """What is read of all evidence: at most `most` windows, the most like the statement first.

    Evidence that fits into one window is read whole; no evidence gives no pair. Another answer
    stands behind the question: alone it may be one word, which says nothing.
    """
    evidence = claim.evidence
    if claim.relation == "same":
        evidence = tuple(f"{claim.question} {answer}".strip() for answer in evidence)
    asked = asked_pieces(tokenizer, claim.question, claim.statement)
    room = room_for(asked)
    sentences = [sentence for text in evidence for sentence in sentences_of(tokenizer, text, room)]
    everywhere = frozenset(piece for sentence in sentences for piece in sentence.ids)
    windows = windows_of(asked, sentences, room, most)
    return [pair_of(tokenizer, asked, window, everywhere) for window in windows]


def room_for(asked: Pieces) -> int:
    """Pieces of evidence that fit beside `asked`."""
    return MAX_PIECES - len(asked.ids) - 3
