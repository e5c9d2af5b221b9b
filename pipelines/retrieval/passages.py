"""Documents cut into passages of about a hundred words.

Passages of 100 tokens are what the retrieval of DRAD and FLARE works with; here they begin and end
with a sentence, and each repeats the last sentence of the one before, so that a pronoun keeps its
antecedent and a fact told in two sentences stays together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pipelines.retrieval.documents import Document
from pipelines.retrieval.tokens import word_spans
from pipelines.text.sentences import split_sentences
from pipelines.types import Passage

__all__ = ["CUTTING_RULES", "PASSAGE_WORDS", "cut_document", "indexed_text"]

CUTTING_RULES = 1
"""Version of the rules below. A stored index with another number is built anew."""

PASSAGE_WORDS = 100
"""A passage takes in sentences as long as it holds no more words than this."""

_OVERLAP_WORDS = PASSAGE_WORDS // 2
"""A last sentence longer than this is not repeated: little room would be left for new text."""


class _Piece(NamedTuple):
    """A sentence, or a part of an overlong one, at `[start, end)` of the document."""

    start: int
    end: int
    words: int


def cut_document(document: Document) -> list[Passage]:
    """The passages of `document` in order: `document.text[p.start:p.end] == p.text` for each.

    Ids are the document's with the passage's number, from 0, after a "#". The longest possible
    passage has 150 words: an overlap of 50 and a sentence of 100.
    """
    return [
        Passage(
            id=f"{document.id}#{number}",
            title=document.title,
            text=document.text[start:end],
            source=document.source,
            url=document.url,
            start=start,
            end=end,
        )
        for number, (start, end) in enumerate(_stretches(_pieces(document.text)))
    ]


def indexed_text(passage: Passage) -> str:
    """What retrievers index: the title goes first, because a passage seldom names its subject."""
    return f"{passage.title}\n{passage.text}"


def _stretches(pieces: Iterable[_Piece]) -> Iterator[tuple[int, int]]:
    group: list[_Piece] = []
    fresh = 0
    for piece in pieces:
        if fresh and sum(member.words for member in group) + piece.words > PASSAGE_WORDS:
            yield group[0].start, group[-1].end
            group = [group[-1]] if group[-1].words <= _OVERLAP_WORDS else []
            fresh = 0
        group.append(piece)
        fresh += 1
    if group:
        yield group[0].start, group[-1].end


def _pieces(text: str) -> Iterator[_Piece]:
    for sentence in split_sentences(text):
        words = word_spans(sentence.text)
        starts = [start for start, _ in words[PASSAGE_WORDS::PASSAGE_WORDS]]
        edges = [0, *starts, len(sentence.text)]
        for number, (start, end) in enumerate(pairwise(edges)):
            piece = sentence.text[start:end].rstrip()
            size = min(PASSAGE_WORDS, len(words) - number * PASSAGE_WORDS)
            yield _Piece(sentence.start + start, sentence.start + start + len(piece), size)
