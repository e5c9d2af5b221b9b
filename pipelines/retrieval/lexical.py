"""Vectors from words alone: a stand-in where no embedding model reads the language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pipelines.types import Language

__all__ = ["LexicalEmbedder"]

_DIMENSION = 4096
_HAN = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[^\W_]+")


class LexicalEmbedder:
    """Hashed word counts: Chinese characters and pairs of them, other scripts' whole words.

    Counts enter by their square root, so that a repeated word does not drown the others. Two texts
    without a common word have a cosine near 0, whatever they mean: it sees wording, not meaning.
    """

    name = "words"

    def __init__(self) -> None:
        self.languages: frozenset[Language] = frozenset({"en", "zh"})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), 4096], float32; a text without a word is all zeros."""
        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for feature, count in Counter(_features(text)).items():
                # crc32 is the same in every process, unlike the built-in hash.
                vectors[row, crc32(feature.encode()) % _DIMENSION] += sqrt(count)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(norms, np.float32(1e-12))


def _features(text: str) -> Iterator[str]:
    yield from _WORD.findall(_HAN.sub(" ", text.casefold()))
    for run in _HAN.findall(text):
        yield from run
        yield from (run[at : at + 2] for at in range(len(run) - 1))
