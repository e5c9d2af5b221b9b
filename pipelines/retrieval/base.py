"""What a retriever and an embedder are, where passages are kept, and how rankings are fused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from math import fsum
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Language, Passage
from pipelines.retrieval.lines import LineStore

Matrix = tuple[tuple[float, ...], ...]
"""Cosines in [-1, 1], one row for each text on the left."""

RetrievalMode = Literal["bm25", "dense", "hybrid"]

_RRF_K = 60
"""The constant of the paper: the larger it is, the less the first ranks differ from the others."""

T = TypeVar("T", bound=Hashable)

HYBRID_DEPTH = 100
"""Passages that BM25 and dense retrieval each contribute to a hybrid search."""

OF_A_SEARCH = {"score", "rank", "scores"}
"""Fields of a passage that a search sets, so that they are not stored with it."""

_NAME = "passages"


class Retriever(ABC):
    """Finds passages. `name` is shown beside every result."""

    name: str

    @abstractmethod
    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages, best first, ranks from 1; none is a valid outcome."""


class Embedder(Protocol):
    """Maps texts of its `languages` to vectors."""

    name: str
    languages: frozenset[Language]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape [len(texts), d], float32."""
        ...


class Similarity(ABC):
    """Compares texts of its `languages`; `name` says whose cosines these are."""

    name: str
    languages: frozenset[Language]

    @abstractmethod
    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        """Return the cosine of every text of `left` with every text of `right`.

        The first `asked` texts of `left` are questions, which some embedders embed otherwise.
        """


class PassageStore:
    """The passages of a library by position. Only requested ones are read."""

    def __init__(self, lines: LineStore) -> None:
        self._lines = lines

    @staticmethod
    def write(folder: Path, passages: Iterable[Passage]) -> None:
        """Write at least one passage into `folder`, one after the other as they come."""
        lines = (passage.model_dump_json(exclude=OF_A_SEARCH) for passage in passages)
        LineStore.write(folder, _NAME, lines)

    @classmethod
    def open(cls, folder: Path) -> PassageStore:
        """Map what `write` left in `folder`. `OSError` or `ValueError` when it is unusable."""
        return cls(LineStore.open(folder, _NAME))

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, position: int) -> Passage:
        return Passage.model_validate_json(self._lines[position])


def ranked(
    passages: PassageStore | Sequence[Passage], hits: Iterable[tuple[int, float, dict[str, float]]]
) -> list[Passage]:
    """Return `passages` of `(position, score, scores by retriever)`, best first, ranked from 1."""
    return [
        passages[position].model_copy(update={"score": score, "scores": scores, "rank": rank})
        for rank, (position, score, scores) in enumerate(hits, start=1)
    ]


def reciprocal_rank_fusion(rankings: Iterable[Sequence[T]]) -> list[tuple[T, float]]:
    """Join rankings into one, best first: an item scores the sum of `1 / (60 + rank)`.

    Ranks count from 1, and a ranking without the item adds nothing. Of equal scores the item with
    the best single rank comes first, then the one that appears first. Cormack, Clarke and
    Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009.
    """
    parts: dict[T, list[float]] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            parts.setdefault(item, []).append(1 / (_RRF_K + rank))
    # fsum gives the same sum for every order of the rankings.
    scores = {item: fsum(each) for item, each in parts.items()}
    order = sorted(parts, key=lambda item: (-scores[item], -max(parts[item])))
    return [(item, scores[item]) for item in order]
