"""The tables of collections and their documents; the files are in the data folder."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pipelines.store.tables import Base, CleanText, UtcDateTime


class CollectionRow(Base):
    """A collection. `embedder` is a `pipelines.retrieval.embedders` EmbedderSpec."""

    __tablename__ = "collections"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    name: Mapped[str] = mapped_column(CleanText(200))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    embedder: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (UniqueConstraint("owner", "name", name="uq_collections_owner_name"),)


class CollectionDocumentRow(Base):
    """A document of a collection, the `number`th that was added to it.

    `digest` is that of the file's content, or of the address of a page not fetched yet; `body`
    holds the other fields, see DocumentFacts in `pipelines.store.collections`.
    """

    __tablename__ = "collection_documents"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    collection: Mapped[str] = mapped_column(
        CleanText(64), ForeignKey("collections.id", ondelete="CASCADE")
    )
    number: Mapped[int]
    name: Mapped[str] = mapped_column(CleanText())
    digest: Mapped[str] = mapped_column(CleanText(64))
    size: Mapped[int] = mapped_column(BigInteger())
    added: Mapped[datetime] = mapped_column(UtcDateTime())
    state: Mapped[str] = mapped_column(CleanText(16))
    passages: Mapped[int]
    body: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "collection", "number"),)
