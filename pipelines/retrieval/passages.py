"""Documents cut into passages of about a hundred words.

Passages of 100 tokens are what the retrieval of DRAD and FLARE works with; here they begin and end
with a sentence, and each repeats the last sentence of the one before, so that a pronoun keeps its
antecedent and a fact stated in two sentences stays in one passage.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import log
from typing import NamedTuple

from pipelines.errors import failure
from pipelines.retrieval.base import Retriever, ranked
from pipelines.retrieval.bm25 import BM25Index, content_terms, terms, word_spans
from pipelines.retrieval.documents import Document
from pipelines.text import Span, detect_language, split_sentences, text_key
from pipelines.types import Passage

CUTTING_RULES = 1
"""Version of the rules below. A stored index with another number is rebuilt."""

PASSAGE_WORDS = 100
"""A passage takes in sentences as long as it holds no more words than this."""

_OVERLAP_WORDS = PASSAGE_WORDS // 2
"""A last sentence longer than this is not repeated: little room would be left for new text."""


_EMPTY_LINES = re.compile(r"\n\s*\n")


class _Piece(NamedTuple):
    """A sentence, or a part of an overlong one, at `[start, end)` of the document."""

    start: int
    end: int
    words: int


def cut_document(document: Document) -> list[Passage]:
    """Return the passages of `document` in order: `document.text[p.start:p.end] == p.text`
    for each.

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
    """Return what retrievers index: the title goes first, because a passage seldom names its
    subject.
    """
    return f"{passage.title}\n{passage.text}"


def passage_key(passage: Passage) -> str:
    """Return what two passages share exactly when they say the same words; without words it
    is the id.
    """
    return text_key(passage.text) or passage.id


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


class TextRetriever(Retriever):
    """The passages of a text, those that share most with the query (BM25) first.

    Empty lines separate its sources, which are counted from 1 in the ids of passages. Those without
    a common word come last, because the whole text was given as evidence. Raises
    InvalidInputError for a text without a word.
    """

    name = "given"

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not terms(text):
            raise failure("search.no_text")
        blocks = [block.strip() for block in _EMPTY_LINES.split(text)]
        self._passages = [
            passage
            for number, block in enumerate(blocks, start=1)
            for passage in cut_document(
                Document(
                    # A passage holds nothing of two sources.
                    id="given" if len(blocks) == 1 else f"given-{number}",
                    title="",
                    language=detect_language(block),
                    text=block,
                    source="given",
                )
            )
        ]
        self._index = BM25Index.build(passage.text for passage in self._passages)

    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages."""
        scores = self._index.scores(query).tolist()
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: max(k, 0)]
        return ranked(self._passages, ((at, scores[at], {"bm25": scores[at]}) for at in order))


def best_sentence(passage_text: str, target_text: str) -> Span | None:
    """Return the sentence of `passage_text` nearest in words to `target_text`, a claim or
    an answer.

    The score of a sentence is the sum of the weights of the different content terms it shares with
    the target. A term that occurs in `df` of the passage's `n` sentences has the weight
    `ln(1 + n / df)`, so that the subject of the whole passage counts less than what only one
    sentence says. Of equal sentences the shorter wins, then the earlier. None when no sentence
    shares a content term.

    Offsets are those in `passage_text`. English, Chinese and mixed texts.
    """
    wanted = set(content_terms(target_text))
    sentences = split_sentences(passage_text)
    shared = [wanted.intersection(content_terms(sentence.text)) for sentence in sentences]
    counts = Counter(term for found in shared for term in found)
    weights = {term: log(1 + len(sentences) / count) for term, count in counts.items()}
    scores = [sum(weights[term] for term in sorted(found)) for found in shared]
    sharing = [pair for pair in zip(scores, sentences, strict=True) if pair[0] > 0]
    best = max(sharing, key=lambda pair: (pair[0], -len(pair[1].text)), default=None)
    return best and best[1]
