"""The tables of the store: runs, their events, and saved model configurations.

Timestamps are UTC. No table has a place for a key. After changing a table, write the migration
with `python -m pipelines.store.revise "what changed"`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, ForeignKey, Index, MetaData, String
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from pipelines.store.encoding import clean_text


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, kept in UTC also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CleanText(TypeDecorator[str]):
    """Text in which characters that not every database accepts are replaced."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else clean_text(value)


class Base(DeclarativeBase):
    """Base of the tables. Constraints have fixed names, so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class RunRow(Base):
    """A run. `created` is when it entered this store, which for an imported run is the import.

    `length` counts its events, hence is the next sequence number; `writer` names the store object
    that writes them (see `pipelines.store.presence`); `summary` is a `pipelines.store.summary`
    Tally.
    """

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    question: Mapped[str] = mapped_column(CleanText())
    language: Mapped[str] = mapped_column(CleanText(8))
    status: Mapped[str] = mapped_column(CleanText(16))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    finished: Mapped[datetime | None] = mapped_column(UtcDateTime())
    writer: Mapped[str] = mapped_column(CleanText(64))
    length: Mapped[int]
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    summary: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (
        Index(None, "owner", "created", "id"),
        Index(None, "status"),
        Index(None, "created"),
    )


class EventRow(Base):
    """An event of a run; `body` holds the fields that are not columns here."""

    __tablename__ = "events"

    run_id: Mapped[str] = mapped_column(
        CleanText(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(CleanText(32))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class ModelRow(Base):
    """A model configuration under the name its owner sees."""

    __tablename__ = "models"

    owner: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200), primary_key=True)
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    saved: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "saved"),)
