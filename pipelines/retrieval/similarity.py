"""How near texts are in meaning: cosines between an embedder's vectors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from pipelines.retrieval.base import Embedder
from pipelines.types import Language

__all__ = ["EmbedderSimilarity", "Matrix", "Similarity"]

Matrix = tuple[tuple[float, ...], ...]
"""Cosines in [-1, 1], one row for each text on the left."""


class Similarity(ABC):
    """Compares texts of its `languages`; `name` tells whose cosines these are."""

    name: str
    languages: frozenset[Language]

    @abstractmethod
    async def compare(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        """The cosine of every text of `left` with every text of `right`."""


class EmbedderSimilarity(Similarity):
    """Cosines of an embedder's vectors, computed on a thread of their own."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.languages = embedder.languages
        self._embedder = embedder

    async def compare(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        return await asyncio.to_thread(self._compare, tuple(left), tuple(right))

    def _compare(self, left: tuple[str, ...], right: tuple[str, ...]) -> Matrix:
        if not left or not right:
            return tuple(() for _ in left)
        texts = list(dict.fromkeys((*left, *right)))
        vectors = dict(zip(texts, self._embedder.embed(texts), strict=True))
        rows = np.stack([vectors[text] for text in left])
        columns = np.stack([vectors[text] for text in right])
        cosines = np.clip(rows @ columns.T, -1.0, 1.0)
        # Six digits: what is recorded is what is computed with, and more are noise of the hardware.
        return tuple(tuple(round(float(one), 6) for one in row) for row in cosines)
