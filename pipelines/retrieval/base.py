"""What a retriever and an embedder are to the rest of the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.types import Language, Passage


class Retriever(ABC):
    """Finds passages. `name` is shown beside every result."""

    name: str

    @abstractmethod
    async def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first, ranks from 1. An empty list is a valid outcome."""


class Embedder(Protocol):
    """Maps texts of its `languages` to vectors."""

    name: str
    languages: frozenset[Language]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), d], float32."""
        ...
