"""What a run works with: loaded models by role, where to search, what compares texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.retrieval.base import Retriever
from pipelines.retrieval.similarity import Similarity
from pipelines.run.pool import Slot

__all__ = ["Materials"]


@dataclass(frozen=True)
class Materials:
    """Models and evidence of one run.

    `retriever` searches the chosen evidence, None when no method needs any. `by_meaning` searches
    the same evidence by vectors where that can be done in the question's language; elsewhere the
    chosen search stands in. `similarity` compares texts in the question's language.
    """

    slots: Mapping[str, Slot]
    retriever: Retriever | None = None
    by_meaning: Retriever | None = None
    similarity: Similarity | None = None
