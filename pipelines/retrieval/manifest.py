"""What an index on disk was made of, to tell whether it is still right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from pydantic import Field

from pipelines.retrieval.base import Embedder
from pipelines.retrieval.documents import Document
from pipelines.retrieval.passages import CUTTING_RULES
from pipelines.retrieval.tokens import TERM_RULES
from pipelines.types import Frozen, Language

__all__ = ["DocumentEntry", "Manifest", "current_rules", "digest"]

_FORMAT = 1


class DocumentEntry(Frozen):
    """A document of an index; `passages` counts its passages, which follow the entry before's.

    All of them have a vector or, when `embedded` is false, none.
    """

    id: str
    digest: str
    language: Language
    passages: int
    embedded: bool


def current_rules() -> str:
    """Names everything in the program that shapes an index. One with other rules is useless."""
    return f"format {_FORMAT}, cutting {CUTTING_RULES}, terms {TERM_RULES}"


class Manifest(Frozen):
    """What an index was made of and by which rules. `files` maps every file to its size in bytes.

    `embedder` is None for an index without vectors.
    """

    rules: str = Field(default_factory=current_rules)
    embedder: str | None
    documents: tuple[DocumentEntry, ...]
    files: dict[str, int] = Field(default_factory=dict)

    def serves(self, embedder: Embedder | None) -> bool:
        """Whether the vectors are the `embedder`'s; without one, any index will do."""
        if embedder is None:
            return True
        return self.embedder == embedder.name and all(
            entry.embedded == (entry.language in embedder.languages) for entry in self.documents
        )

    def describes(self, documents: Sequence[Document]) -> bool:
        """Whether the index holds just these documents, in this order and unchanged."""
        return [(entry.id, entry.digest) for entry in self.documents] == [
            (document.id, digest(document)) for document in documents
        ]


def digest(document: Document) -> str:
    """A hash of everything in a document."""
    content = json.dumps(document.model_dump(), sort_keys=True, ensure_ascii=False)
    return sha256(content.encode()).hexdigest()
