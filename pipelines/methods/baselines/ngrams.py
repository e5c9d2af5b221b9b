"""How improbable the words of a sentence are to an n-gram model of the answer and its samples.

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 5.3. The model counts n-grams
in the samples and in the answer itself, so that every n-gram of the answer has a probability above
0. It approximates the model that wrote them: the more samples there are, the better. Words are
those of retrieval, in lower case, without punctuation (ours; the authors' code counts punctuation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from pipelines.retrieval.bm25 import word_spans
from pipelines.text import split_sentences

_START = "\0"
"""Stands before a sentence, where fewer words precede a word than the model looks at."""


def words_of(text: str) -> list[str]:
    """Return the words of `text` in lower case, in order; Chinese ones as a segmenter cuts them."""
    return [text[start:end].casefold() for start, end in word_spans(text)]


class NgramModel:
    """Maximum-likelihood n-gram model of order `order` (1: unigrams) over the given texts.

    p(w | h) = count(h w) / count(h), where h are the `order` - 1 words before w in its sentence.
    """

    def __init__(self, order: int, texts: Iterable[str]) -> None:
        self._order = order
        self._grams: Counter[tuple[str, ...]] = Counter()
        self._histories: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            for sentence in split_sentences(text):
                for gram in self._grams_of(sentence.text):
                    self._grams[gram] += 1
                    self._histories[gram[:-1]] += 1

    def surprisals(self, sentence: str) -> list[float]:
        """Return -log p of every word of a sentence of the texts, in nats, at least 0."""
        return [
            log(self._histories[gram[:-1]] / self._grams[gram]) for gram in self._grams_of(sentence)
        ]

    def _grams_of(self, sentence: str) -> Sequence[tuple[str, ...]]:
        before = self._order - 1
        words = [_START] * before + words_of(sentence)
        return [tuple(words[at - before : at + 1]) for at in range(before, len(words))]
