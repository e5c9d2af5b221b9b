"""A statement and its evidence as the judge reads them: word pieces, in windows of sentences.

Evidence longer than a window is not cut where it happens to stand: a window is filled with the
sentences that have most to do with the statement, wherever in the evidence they are. What concerns
one statement is thereby read together, and little has to be read. Evidence is split into sentences
and word pieces once, however many claims are made about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
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
"""How many values `EncodedPair.matches` takes."""

_MATCHED, _UNMATCHED, _ELSEWHERE = 1, 2, 3
_AGAIN = 0.25
"""What a piece of the statement is worth to a window that has it already."""

_FIRST_WORD = 1996
"""The index of "the" in BERT's vocabulary, which is in order of frequency from there on."""


_MARKS = (("[CLS]", "[SEP]"), ("<s>", "</s>"))
"""What BERT's and XLM-RoBERTa's tokenizers put before and after a text."""

_REMEMBERED = 4096
"""Texts of evidence whose word pieces are kept for the next claim about them."""

_LEANING = ("he", "she", "it", "they", "his", "her", "its", "their", "this", "these", "that")
"""Words with which a sentence begins that says of whom it speaks only in the one before it."""


class EvidenceReading(NamedTuple):
    """How evidence is read: what training was done with, judging has to be done with.

    At most `windows` of at most `pieces` word pieces. With `neighbours`, the sentence before one
    that begins with a pronoun is read with it. `nearness` is what the cosine of statement and
    sentence is worth in choosing sentences, beside the share of the statement's words. After a
    window that supports the claim with a probability of `sure` or more, before any calibration, no
    other one is read.
    """

    pieces: int = MAX_PIECES
    windows: int = 2
    neighbours: bool = False
    nearness: float = 0.0
    sure: float = 1.0


PLAIN = EvidenceReading()

Near = Callable[[str, Sequence[str]], Sequence[float]]
"""The cosine of a statement with each of some sentences."""


class WordPieces(NamedTuple):
    """A text's word pieces: ids in the vocabulary, and which of them carry meaning."""

    ids: tuple[int, ...]
    counted: tuple[bool, ...]


class EncodedPair(NamedTuple):
    """Input of one reading. `types` is 0 for question and statement, 1 for the evidence;

    `matches` says of each word piece that it also stands in the other text (1), does not (2), does
    so only in evidence outside this window (3), or does not count (0: marks and punctuation).
    """

    ids: list[int]
    types: list[int]
    matches: list[int]


@cache
def load_tokenizer(encoder: Path) -> Tokenizer:
    """Return the encoder's tokenizer, without its limit on lengths.

    `encoder` is a folder, or the file that multilingual-e5-small comes in.
    """
    if encoder.is_file():
        from pipelines.retrieval.packed import PackedEncoder

        return PackedEncoder(encoder).tokenizer()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(encoder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def pieces_of(tokenizer: Tokenizer, text: str) -> WordPieces:
    """Return the word pieces of `text`; punctuation does not count."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    counted = tuple(any(char.isalnum() for char in token) for token in encoded.tokens)
    return WordPieces(tuple(encoded.ids), counted)


@lru_cache(maxsize=_REMEMBERED)
def _whole_sentences(tokenizer: Tokenizer, text: str) -> tuple[tuple[str, WordPieces], ...]:
    """Return the sentences of `text`, each with its pieces."""
    found = split_sentences(text)
    return tuple((one.text, pieces_of(tokenizer, one.text)) for one in found)


class _Part(NamedTuple):
    """A sentence of the evidence, or a part of a long one."""

    sentence: str
    pieces: WordPieces
    leans: bool
    """Whether it speaks of what the part before it names."""


def _parts(tokenizer: Tokenizer, texts: Sequence[str], room: int) -> Iterator[_Part]:
    for text in texts:
        for number, (sentence, whole) in enumerate(_whole_sentences(tokenizer, text)):
            leans = number > 0 and sentence.split(maxsplit=1)[0].casefold() in _LEANING
            for at in range(0, len(whole.ids), room):
                pieces = WordPieces(whole.ids[at : at + room], whole.counted[at : at + room])
                yield _Part(sentence, pieces, leans and at == 0)


def windows_of(
    asked: WordPieces,
    sentences: Sequence[WordPieces],
    room: int,
    most: int,
    *,
    leaning: Sequence[bool] = (),
    near: Sequence[float] = (),
) -> list[WordPieces]:
    """Return at most `most` windows of at most `room` pieces, the one most like the
    statement first.

    A window takes the sentences that hold most of the statement's pieces, rare ones and new ones
    above all, and keeps them in order. `leaning` says which sentences are read with the one before
    them, `near` what each is worth beside its pieces, whose worth is a share of the statement's.
    """
    weights = {
        piece: math.log1p(max(0, piece - _FIRST_WORD))
        for piece, counts in zip(asked.ids, asked.counted, strict=True)
        if counts
    }
    left = list(range(len(sentences)))
    windows: list[WordPieces] = []
    while left and len(windows) < most:
        chosen = _chosen(weights, sentences, left, room, leaning, near)
        kept = [sentences[at] for at in sorted(chosen)]
        ids = tuple(piece for one in kept for piece in one.ids)
        windows.append(WordPieces(ids, tuple(counts for one in kept for counts in one.counted)))
        left = [at for at in left if at not in chosen]
    return windows


def _chosen(
    weights: dict[int, float],
    sentences: Sequence[WordPieces],
    left: Sequence[int],
    room: int,
    leaning: Sequence[bool],
    near: Sequence[float],
) -> set[int]:
    """Return, of the sentences that are `left`, those for one window."""
    if sum(len(sentences[at].ids) for at in left) <= room:
        return set(left)
    shared = {at: weights.keys() & set(sentences[at].ids) for at in left}
    total = sum(weights.values()) or 1.0
    chosen: set[int] = set()
    covered: set[int] = set()

    def gain(at: int) -> tuple[float, int]:
        worth = sum(weights[piece] * (_AGAIN if piece in covered else 1.0) for piece in shared[at])
        return worth + (total * near[at] if near else 0.0), -at

    while fitting := [at for at in left if at not in chosen and len(sentences[at].ids) <= room]:
        best = max(fitting, key=gain)
        taken = [best]
        before = best - 1
        if leaning and leaning[best] and before in shared and before not in chosen:
            both = len(sentences[best].ids) + len(sentences[before].ids)
            taken = [best, before] if both <= room else taken
        for at in taken:
            chosen.add(at)
            covered |= shared[at]
            room -= len(sentences[at].ids)
    return chosen


def asked_pieces(tokenizer: Tokenizer, question: str, statement: str) -> WordPieces:
    """Return question and statement as one text; of a long one the end, with the statement."""
    asked = pieces_of(tokenizer, f"{question} {statement}".strip())
    return WordPieces(asked.ids[-MAX_STATEMENT_PIECES:], asked.counted[-MAX_STATEMENT_PIECES:])


def statement_offsets(tokenizer: Tokenizer, question: str, statement: str) -> list[tuple[int, int]]:
    """Return where in `statement` each of the `asked_pieces` stands; the question lies before 0."""
    asked = f"{question} {statement}".strip()
    begin = len(asked) - len(statement.rstrip())
    offsets = tokenizer.encode(asked, add_special_tokens=False).offsets[-MAX_STATEMENT_PIECES:]
    # Some tokenizers count the space before a word to it.
    return [(start + (asked[start:end][:1] == " ") - begin, end - begin) for start, end in offsets]


def pair_of(
    tokenizer: Tokenizer,
    asked: WordPieces,
    window: WordPieces,
    elsewhere: frozenset[int] = frozenset(),
) -> EncodedPair:
    """Return the input for one window of evidence; `elsewhere` are the pieces of all of it."""
    start, mark = _marks(tokenizer)
    left, right = set(asked.ids), set(window.ids)

    def kind(piece: int, other: set[int]) -> int:
        if piece in other:
            return _MATCHED
        return _ELSEWHERE if other is right and piece in elsewhere else _UNMATCHED

    def matches(pieces: WordPieces, other: set[int]) -> list[int]:
        return [
            kind(piece, other) if counts else 0
            for piece, counts in zip(pieces.ids, pieces.counted, strict=True)
        ]

    return EncodedPair(
        ids=[start, *asked.ids, mark, *window.ids, mark],
        types=[0] * (len(asked.ids) + 2) + [1] * (len(window.ids) + 1),
        matches=[0, *matches(asked, right), 0, *matches(window, left), 0],
    )


def _marks(tokenizer: Tokenizer) -> tuple[int, int]:
    """Return what stands before the first text and after each."""
    for begin, end in _MARKS:
        start, mark = tokenizer.token_to_id(begin), tokenizer.token_to_id(end)
        if start is not None and mark is not None:
            return start, mark
    raise ValueError("The encoder has marks of another kind.")


def pairs_for(
    tokenizer: Tokenizer,
    claim: Claim,
    most: int,
    reading: EvidenceReading = PLAIN,
    near: Near | None = None,
) -> list[EncodedPair]:
    """Return what is read of all evidence: at most `most` windows, the most like the
    statement first.

    Evidence that fits into one window is read whole; no evidence gives no pair. Another answer
    stands behind the question: alone it may be one word, which says nothing. `near` is needed where
    the `reading` chooses by nearness.
    """
    evidence = claim.evidence
    if claim.relation == "same":
        evidence = tuple(f"{claim.question} {answer}".strip() for answer in evidence)
    asked = asked_pieces(tokenizer, claim.question, claim.statement)
    room = room_for(asked, reading.pieces)
    parts = list(_parts(tokenizer, evidence, room))
    sentences = [part.pieces for part in parts]
    everywhere = frozenset(piece for sentence in sentences for piece in sentence.ids)
    cosines: list[float] = []
    # Nothing is chosen of evidence that fits.
    if near and reading.nearness and sum(len(one.ids) for one in sentences) > room:
        said = f"{claim.question} {claim.statement}".strip()
        found = near(said, [part.sentence for part in parts])
        cosines = [reading.nearness * max(0.0, cosine) for cosine in found]
    leaning = [part.leans for part in parts] if reading.neighbours else []
    windows = windows_of(asked, sentences, room, most, leaning=leaning, near=cosines)
    return [pair_of(tokenizer, asked, window, everywhere) for window in windows]


def room_for(asked: WordPieces, pieces: int = MAX_PIECES) -> int:
    """Return how many pieces of evidence fit beside `asked` into a window of `pieces`."""
    return pieces - len(asked.ids) - 3
