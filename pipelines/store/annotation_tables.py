"""The tables of annotation sessions. Every one of them belongs to a session and goes with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from pipelines.store.tables import Base, CleanText, UtcDateTime


class AnnotationSessionRow(Base):
    """A session. `spec` is a `pipelines.annotation.types` SessionSpec.

    `overlap` is how many people label an item, `guidelines` the newest version of the guidelines,
    both as they are now. `seed` decides the order in which each person gets the items. `events`
    counts the events, hence is the next sequence number. `closed` is when it was closed.
    """

    __tablename__ = "annotation_sessions"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    name: Mapped[str] = mapped_column(CleanText(200))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    closed: Mapped[datetime | None] = mapped_column(UtcDateTime())
    seed: Mapped[str] = mapped_column(CleanText(32))
    overlap: Mapped[int]
    guidelines: Mapped[int]
    events: Mapped[int]
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "owner", "created"),)


class _OfSession:
    """The first column of the key of what belongs to a session."""

    @declared_attr
    def session(self) -> Mapped[str]:
        return mapped_column(
            CleanText(64),
            ForeignKey("annotation_sessions.id", ondelete="CASCADE"),
            primary_key=True,
            sort_order=-1,
        )


class GuidelinesRow(_OfSession, Base):
    """One version of the guidelines, in Markdown; versions count from 1."""

    __tablename__ = "annotation_guidelines"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(CleanText())
    created: Mapped[datetime] = mapped_column(UtcDateTime())


class AnnotatorRow(_OfSession, Base):
    """Somebody whose labels the session holds. Numbers count from 0; a name is unique.

    `kind` is "person", "lead" (who adjudicates too) or "imported".
    """

    __tablename__ = "annotators"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(CleanText(200))
    kind: Mapped[str] = mapped_column(CleanText(16))
    joined: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (UniqueConstraint("session", "name", name="uq_annotators_session_name"),)


class LinkRow(Base):
    """A secret link. `digest` is the SHA-256 of its secret, which is stored nowhere.

    `annotator` is whose link it is; None for one with which people join, and for a lead's.
    """

    __tablename__ = "annotation_links"

    id: Mapped[str] = mapped_column(CleanText(32), primary_key=True)
    session: Mapped[str] = mapped_column(
        CleanText(64), ForeignKey("annotation_sessions.id", ondelete="CASCADE")
    )
    role: Mapped[str] = mapped_column(CleanText(16))
    annotator: Mapped[int | None]
    digest: Mapped[str] = mapped_column(CleanText(64))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    expires: Mapped[datetime | None] = mapped_column(UtcDateTime())
    revoked: Mapped[datetime | None] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "session"),)


class FailedLinkRow(Base):
    """A secret that was tried and was wrong; `subject` is the hash of who tried it, or on what."""

    __tablename__ = "annotation_failed_links"

    id: Mapped[str] = mapped_column(CleanText(32), primary_key=True)
    subject: Mapped[str] = mapped_column(CleanText(64))
    at: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "subject", "at"), Index(None, "at"))


class AnnotationItemRow(_OfSession, Base):
    """An item to label, at its number from 0; `body` is a `pipelines.annotation.types` ItemBody.

    `key` is the same for the same item in every session. `hidden` is what models said of it, kept
    apart from what annotators get. `gold` is the right label of a control item. `probability` is
    that with which it was drawn, None where it was chosen otherwise. `labels` counts the people
    whose label stands, without control items.
    """

    __tablename__ = "annotation_items"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(CleanText(64))
    task: Mapped[str] = mapped_column(CleanText(16))
    labels: Mapped[int]
    probability: Mapped[float | None]
    gold: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    hidden: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (UniqueConstraint("session", "key", name="uq_annotation_items_session_key"),)


class ClaimRow(_OfSession, Base):
    """That somebody was given an item, which the key allows once.

    `slot` is which of the item's places (0 to overlap - 1) is taken; the database refuses that two
    people take the same. It is None for control items, and where the place was given back or
    passed on. `state` is "open", "labelled", "skipped" or "lost". An open claim whose lease
    expired keeps its slot until somebody else needs it. `revealed`: what models said was shown.
    """

    __tablename__ = "annotation_claims"

    item: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    annotator: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int | None]
    state: Mapped[str] = mapped_column(CleanText(16))
    taken: Mapped[datetime] = mapped_column(UtcDateTime())
    expires: Mapped[datetime] = mapped_column(UtcDateTime())
    revealed: Mapped[bool]

    __table_args__ = (
        UniqueConstraint("session", "item", "slot", name="uq_annotation_claims_session_item_slot"),
        Index(None, "session", "annotator", "state"),
    )


class AnnotationEventRow(_OfSession, Base):
    """Something that somebody did to an item; never changed or deleted.

    `client` is the page's own name of the request, once for each person. `guidelines` is the
    version by which a label was given, `overlap` that of the session at the time, `seconds` the
    active time, `fast` that it was too short, `revealed` that what models said of the item's text
    had been shown before. `run` is the run that was labelled.
    """

    __tablename__ = "annotation_events"

    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    item: Mapped[int]
    annotator: Mapped[int]
    client: Mapped[str] = mapped_column(CleanText(64))
    kind: Mapped[str] = mapped_column(CleanText(16))
    at: Mapped[datetime] = mapped_column(UtcDateTime())
    guidelines: Mapped[int]
    overlap: Mapped[int]
    seconds: Mapped[float | None]
    fast: Mapped[bool]
    revealed: Mapped[bool]
    run: Mapped[str] = mapped_column(CleanText(64))
    value: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (
        UniqueConstraint(
            "session", "annotator", "client", name="uq_annotation_events_session_annotator_client"
        ),
        Index(None, "session", "item"),
    )
