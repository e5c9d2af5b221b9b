"""Annotation sessions: people, links, items, claims and what was labelled.

Revision: 0005, after 0004.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SESSIONS = "annotation_sessions"


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        _SESSIONS,
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        _time("created"),
        _time("closed", nullable=True),
        sa.Column("seed", sa.String(32), nullable=False),
        _number("overlap"),
        _number("guidelines"),
        _number("events"),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{_SESSIONS}"),
    )
    op.create_index("ix_annotation_sessions_owner_created", _SESSIONS, ["owner", "created"])
    _create(
        "annotation_guidelines",
        ["version"],
        _number("version"),
        sa.Column("text", sa.String(), nullable=False),
        _time("created"),
    )
    _create(
        "annotators",
        ["number"],
        _number("number"),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        _time("joined"),
        sa.UniqueConstraint("session", "name", name="uq_annotators_session_name"),
    )
    op.create_table(
        "annotation_links",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("session", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("annotator", sa.Integer(), nullable=True),
        sa.Column("digest", sa.String(64), nullable=False),
        _time("created"),
        _time("expires", nullable=True),
        _time("revoked", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_annotation_links"),
        _of_session("annotation_links"),
    )
    op.create_index("ix_annotation_links_session", "annotation_links", ["session"])
    op.create_table(
        "annotation_failed_links",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        _time("at"),
        sa.PrimaryKeyConstraint("id", name="pk_annotation_failed_links"),
    )
    for columns in (["subject", "at"], ["at"]):
        name = "_".join(["ix_annotation_failed_links", *columns])
        op.create_index(name, "annotation_failed_links", columns)
    _create(
        "annotation_items",
        ["number"],
        _number("number"),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("task", sa.String(16), nullable=False),
        _number("labels"),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("gold", sa.JSON(), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("hidden", sa.JSON(), nullable=False),
        sa.UniqueConstraint("session", "key", name="uq_annotation_items_session_key"),
    )
    _create(
        "annotation_claims",
        ["item", "annotator"],
        _number("item"),
        _number("annotator"),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        _time("taken"),
        _time("expires"),
        sa.Column("revealed", sa.Boolean(), nullable=False),
        sa.UniqueConstraint(
            "session", "item", "slot", name="uq_annotation_claims_session_item_slot"
        ),
    )
    op.create_index(
        "ix_annotation_claims_session_annotator_state",
        "annotation_claims",
        ["session", "annotator", "state"],
    )
    _create(
        "annotation_events",
        ["seq"],
        _number("seq"),
        _number("item"),
        _number("annotator"),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        _time("at"),
        _number("guidelines"),
        _number("overlap"),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("fast", sa.Boolean(), nullable=False),
        sa.Column("revealed", sa.Boolean(), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.UniqueConstraint(
            "session", "annotator", "client", name="uq_annotation_events_session_annotator_client"
        ),
    )
    op.create_index("ix_annotation_events_session_item", "annotation_events", ["session", "item"])


def downgrade() -> None:
    """Go back to revision 0004."""
    for table in ("events", "claims", "items", "failed_links", "links", "guidelines"):
        op.drop_table(f"annotation_{table}")
    op.drop_table("annotators")
    op.drop_table(_SESSIONS)


def _create(table: str, key: list[str], *parts: sa.Column[Any] | sa.UniqueConstraint) -> None:
    """Create a table of what belongs to a session, whose id begins the primary key."""
    op.create_table(
        table,
        sa.Column("session", sa.String(64), nullable=False),
        *parts,
        sa.PrimaryKeyConstraint("session", *key, name=f"pk_{table}"),
        _of_session(table),
    )


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _of_session(table: str) -> sa.ForeignKeyConstraint:
    """Return what belongs to a session is deleted with it."""
    return sa.ForeignKeyConstraint(
        ["session"],
        [f"{_SESSIONS}.id"],
        name=f"fk_{table}_session_{_SESSIONS}",
        ondelete="CASCADE",
    )
