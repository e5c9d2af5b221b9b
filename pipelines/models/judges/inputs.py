"""A statement and its evidence as the judge reads them: word pieces, in windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "LONGEST",
    "Pair",
    "Pieces",
    "load_tokenizer",
    "most_alike",
    "pair_of",
    "pairs_for",
    "windows_of",
]

LONGEST = 160
"""Word pieces of a pair that are read at once, the three marks among them."""

_LONGEST_STATEMENT = 80
_OVERLAP = 0.25
_MATCHED, _UNMATCHED = 1, 2


class Pieces(NamedTuple):
    """A text's word pieces: ids in the vocabulary, and which of them carry meaning."""

    ids: tuple[int, ...]
    counted: tuple[bool, ...]


class Pair(NamedTuple):
    """Input of one reading. `types` is 0 for question and statement, 1 for the evidence;

    `matches` says of each word piece that it also stands in the other text (1), does not (2), or
    does not count (0: marks and punctuation).
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


def windows_of(evidence: Pieces, room: int) -> list[Pieces]:
    """`evidence` in windows of at most `room` pieces, each a quarter into the one before."""
    if len(evidence.ids) <= room:
        return [evidence]
    step = max(1, int(room * (1 - _OVERLAP)))
    starts = range(0, len(evidence.ids) - int(room * _OVERLAP), step)
    return [Pieces(evidence.ids[at : at + room], evidence.counted[at : at + room]) for at in starts]


def most_alike(asked: Pieces, windows: Sequence[Pieces], most: int) -> list[int]:
    """Places of the at most `most` windows that hold most of the statement's pieces, in order."""
    wanted = {piece for piece, counts in zip(asked.ids, asked.counted, strict=True) if counts}
    shared = [len(wanted.intersection(window.ids)) for window in windows]
    best = sorted(range(len(windows)), key=lambda at: (-shared[at], at))[:most]
    return sorted(best)


def asked_pieces(tokenizer: Tokenizer, question: str, statement: str) -> Pieces:
    """Question and statement as one text; of a long one the end, where the statement stands."""
    asked = pieces_of(tokenizer, f"{question} {statement}".strip())
    return Pieces(asked.ids[-_LONGEST_STATEMENT:], asked.counted[-_LONGEST_STATEMENT:])


def pair_of(tokenizer: Tokenizer, asked: Pieces, evidence: Pieces) -> Pair:
    """The input for one window of the evidence."""
    start, mark = _marks(tokenizer)
    left, right = set(asked.ids), set(evidence.ids)

    def matches(pieces: Pieces, other: set[int]) -> list[int]:
        return [
            (_MATCHED if piece in other else _UNMATCHED) if counts else 0
            for piece, counts in zip(pieces.ids, pieces.counted, strict=True)
        ]

    return Pair(
        ids=[start, *asked.ids, mark, *evidence.ids, mark],
        types=[0] * (len(asked.ids) + 2) + [1] * (len(evidence.ids) + 1),
        matches=[0, *matches(asked, right), 0, *matches(evidence, left), 0],
    )


def pairs_for(
    tokenizer: Tokenizer, question: str, statement: str, evidence: Iterable[str], most: int
) -> list[Pair]:
    """What is read of all `evidence`: at most `most` windows, those most like the statement."""
    asked = asked_pieces(tokenizer, question, statement)
    room = room_for(asked)
    windows = [
        window
        for text in evidence
        if text.strip()
        for window in windows_of(pieces_of(tokenizer, text), room)
    ]
    return [pair_of(tokenizer, asked, windows[at]) for at in most_alike(asked, windows, most)]


def _marks(tokenizer: Tokenizer) -> tuple[int, int]:
    start, mark = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    assert start is not None
    assert mark is not None
    return start, mark


def room_for(asked: Pieces) -> int:
    """Pieces of evidence that fit beside `asked`."""
    return LONGEST - len(asked.ids) - 3
