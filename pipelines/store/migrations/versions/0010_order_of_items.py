"""Items of annotation sessions are found by indexes: which come first, and which share a text.

Revision: 0010, after 0009.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
import sqlalchemy.orm
from alembic import op

from pipelines.store.annotations import set_priorities
from pipelines.store.tables import item_order

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_AT_ONCE = 500


def upgrade() -> None:
    """Upgrade to this revision."""
    added = (
        sa.Column("priority", sa.Integer(), nullable=True),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("first", sa.String(32), nullable=True),
        sa.Column("second", sa.String(32), nullable=True),
    )
    with op.batch_alter_table("annotation_items") as batch:
        for column in added:
            batch.add_column(column)
    _fill()
    with op.batch_alter_table("annotation_items") as batch:
        for column in added[1:]:
            batch.alter_column(column.name, existing_type=column.type, nullable=False)
        for names in (("priority", "place"), ("first",), ("second",)):
            together = "_".join(("session", *names))
            batch.create_index(f"ix_annotation_items_{together}", ["session", *names])
    with op.batch_alter_table("annotation_claims") as batch:
        batch.create_index(
            "ix_annotation_claims_session_state_expires", ["session", "state", "expires"]
        )


def _fill() -> None:
    connection = op.get_bind()
    items = sa.table(
        "annotation_items",
        *(sa.column(name) for name in ("session", "number", "key", "place", "first", "second")),
        sa.column("gold", sa.JSON(none_as_null=True)),
        sa.column("body", sa.JSON()),
        sa.column("priority"),
    )
    key = sa.tuple_(items.c.session, items.c.number)
    statement = (
        sa.update(items)
        .where(items.c.session == sa.bindparam("of"), items.c.number == sa.bindparam("at"))
        .values({name: sa.bindparam(f"new_{name}") for name in item_order("", {}, None)})
    )
    after: tuple[Any, ...] = ("", -1)
    while True:
        query = sa.select(items.c.session, items.c.number, items.c.key, items.c.body, items.c.gold)
        query = query.where(key > sa.tuple_(*(sa.literal(one) for one in after)))
        found = connection.execute(query.order_by(*key.clauses).limit(_AT_ONCE)).all()
        if not found:
            break
        changes = [
            {"of": one.session, "at": one.number}
            | {
                f"new_{name}": value
                for name, value in item_order(one.key, one.body, one.gold).items()
            }
            for one in found
        ]
        connection.execute(statement, changes)
        after = found[-1].session, found[-1].number
    with sa.orm.Session(bind=connection) as session:
        for made in session.scalars(sa.text("SELECT id FROM annotation_sessions")).all():
            set_priorities(session, made)
        session.flush()
