"""Retrieval by words: search terms, BM25 over them, and vectors made of word counts.

A run of Chinese characters is cut by jieba, everything else at white space and punctuation. Terms,
what BM25 counts, are normalised words: compatibility forms unified, accents and case dropped,
English plurals made singular. Chinese words are taken in jieba's search mode, which adds the
shorter words inside long ones.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from zlib import crc32

import bm25s
import numpy as np
from bm25s.stopwords import STOPWORDS_EN
from numpy.typing import NDArray

from pipelines.text.languages import HAN
from pipelines.text.lexicon import words
from pipelines.text.segmentation import chinese_tokenizer
from pipelines.types import Language

TERM_RULES = 1
"""Version of what `terms` returns. A stored index with another number is rebuilt."""

# A date's unit is a word of its own: left in the run, jieba reads 19日出生 as 日出 and 生.
_WORD = re.compile(rf"(?P<unit>(?<=\d)[年月日号])|(?P<han>[{HAN}]+)|(?P<word>[^\W_{HAN}]+)")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ACCENTS = re.compile("[\u0300-\u036f]")

_STOP_WORDS = frozenset(STOPWORDS_EN) | words("stop_words", "english", "chinese")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the words of `text` as half-open offsets, in order, without punctuation."""
    spans: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        if found.lastgroup == "han":
            cut = chinese_tokenizer().tokenize(found.group())
            spans += [(found.start() + start, found.start() + end) for _, start, end in cut]
        else:
            spans.append(found.span())
    return spans


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, repeated ones repeated; empty for mere punctuation."""
    found: list[str] = []
    for match in _WORD.finditer(_normalised(text)):
        word = match.group()
        if match.lastgroup == "han":
            found += chinese_tokenizer().cut_for_search(word)
        else:
            found.append(word if word in _STOP_WORDS else _singular(word))
    return found


def query_terms(text: str) -> list[str]:
    """Return the terms to search for: without stop words, unless nothing else would be left.

    Documents keep their stop words, so that "The Who" can still be found.
    """
    return content_terms(text) or terms(text)


def content_terms(text: str) -> list[str]:
    """Return the terms of `text` that are no stop words."""
    return [term for term in terms(text) if term not in _STOP_WORDS]


def _normalised(text: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    folded = unicodedata.normalize("NFC", bare).casefold()
    return _THOUSANDS.sub("", _POSSESSIVE.sub("", folded))


def _singular(word: str) -> str:
    """Return Harman's S-stemmer ("How effective is suffixing?", 1991), which changes
    plurals only.
    """
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]


# It sets its own logger to DEBUG, which every handler of the application would then print.
logging.getLogger("bm25s").setLevel(logging.WARNING)

K1 = 1.2
B = 0.75


class BM25Index:
    """An inverted index with precomputed scores (bm25s; Lù, 2024).

    The variant is Lucene's (Kamphuis et al., "Which BM25 do you mean?", ECIR 2020): a term adds
    `ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))`,
    which is above 0, and a term that the query repeats adds as often.
    """

    def __init__(self, engine: bm25s.BM25) -> None:
        self._engine = engine

    @classmethod
    def build(cls, texts: Iterable[str]) -> BM25Index:
        """Index `texts`, at least one of which must hold a word."""
        vocabulary: dict[str, int] = {}
        rows = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in texts
        ]
        engine = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
        engine.index((rows, vocabulary), create_empty_token=False, show_progress=False)
        return cls(engine)

    def write(self, folder: Path) -> None:
        """Save into `folder`, which is made if need be."""
        self._engine.save(folder, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> BM25Index:
        """Open what `write` left, its postings memory-mapped; `OSError` or `ValueError` if bad."""
        engine = bm25s.BM25.load(folder, mmap=True, show_progress=False, backend="numpy")
        return cls(engine)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every text, shape [texts], 0 where it shares no term with `query`."""
        known = self._engine.get_tokens_ids(query_terms(query))
        if not known:
            return np.zeros(self._engine.scores["num_docs"], dtype=np.float32)
        return self._engine.get_scores_from_ids(known)


def best_positions(scores: NDArray[np.float32], k: int) -> list[int]:
    """Return positions of the `k` largest scores above 0, best first, equal ones in order of
    position.
    """
    order = np.argsort(-scores, kind="stable")[: max(k, 0)]
    return order[scores[order] > 0].tolist()


_DIMENSION = 4096
_HAN_RUN = re.compile(f"[{HAN}]+")
_WHOLE_WORD = re.compile(r"[^\W_]+")


class LexicalEmbedder:
    """Hashed word counts: Chinese characters and pairs of them, other scripts' whole words.

    Counts enter by their square root, so that a repeated word does not drown the others. Two texts
    without a common word have a cosine near 0, whatever they mean: it sees wording, not meaning.
    """

    name = "words"
    languages: frozenset[Language] = frozenset({"en", "zh"})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), 4096], float32; a text without a word is
        all zeros.
        """
        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for feature, count in Counter(_features(text)).items():
                # crc32 is the same in every process, unlike the built-in hash.
                vectors[row, crc32(feature.encode()) % _DIMENSION] += sqrt(count)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, np.float32(1e-12))


def _features(text: str) -> Iterator[str]:
    yield from _WHOLE_WORD.findall(_HAN_RUN.sub(" ", text.casefold()))
    for run in _HAN_RUN.findall(text):
        yield from run
        yield from (run[at : at + 2] for at in range(len(run) - 1))
