"""Items of annotation sessions are found by indexes: which come first, and which share a text.

Revision: 0010, after 0009.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_AT_ONCE = 500
_ADDED = (
    sa.Column("priority", sa.Integer(), nullable=True),
    sa.Column("place", sa.Integer(), nullable=True),
    sa.Column("first", sa.String(32), nullable=True),
    sa.Column("second", sa.String(32), nullable=True),
)
_INDEXES = {
    "annotation_items": (
        ("session", "priority", "place"),
        ("session", "first"),
        ("session", "second"),
    ),
    "annotation_claims": (("session", "state", "expires"),),
}
_PRIORITIES = """
UPDATE annotation_items SET priority = (
    SELECT CASE
        WHEN taken >= overlap THEN NULL
        WHEN taken = 0 THEN 1000000
        ELSE annotation_items.labels END
    FROM (
        SELECT s.overlap AS overlap, annotation_items.labels + (
            SELECT count(*) FROM annotation_claims c
            WHERE c.session = annotation_items.session AND c.item = annotation_items.number
                AND c.slot IS NOT NULL AND c.state = 'open') AS taken
        FROM annotation_sessions s WHERE s.id = annotation_items.session) AS counted)
WHERE gold IS NULL
"""


def upgrade() -> None:
    """Upgrade to this revision."""
    with op.batch_alter_table("annotation_items") as batch:
        for column in _ADDED:
            batch.add_column(column)
    _fill(op.get_bind())
    with op.batch_alter_table("annotation_items") as batch:
        for column in _ADDED[1:]:
            batch.alter_column(column.name, existing_type=column.type, nullable=False)
    for table, indexes in _INDEXES.items():
        for names in indexes:
            op.create_index(f"ix_{table}_{'_'.join(names)}", table, list(names))


def _fill(connection: sa.Connection) -> None:
    """Store where each item stands: control items at -1, untouched ones behind those begun."""
    items = sa.table(
        "annotation_items",
        *(sa.column(name) for name in ("session", "number", "key", "priority", "place")),
        sa.column("first"),
        sa.column("second"),
        sa.column("body", sa.JSON()),
    )
    key = (items.c.session, items.c.number)
    names = ("place", "first", "second")
    statement = (
        sa.update(items)
        .where(items.c.session == sa.bindparam("of"), items.c.number == sa.bindparam("at"))
        .values({name: sa.bindparam(f"new_{name}") for name in names})
    )
    known: Any = sa.select(*key, items.c.key, items.c.body).order_by(*key).limit(_AT_ONCE)
    found = connection.execute(known).all()
    while found:
        changes: list[dict[str, Any]] = []
        for one in found:
            texts = sorted(_digests(one.body))
            values = (_place(one.key), *texts[:2], *[""] * (2 - len(texts)))
            named = {f"new_{name}": value for name, value in zip(names, values, strict=True)}
            changes.append({"of": one.session, "at": one.number, **named})
        connection.execute(statement, changes)
        last = found[-1]
        behind = sa.or_(
            key[0] > last.session, sa.and_(key[0] == last.session, key[1] > last.number)
        )
        found = connection.execute(known.where(behind)).all()
    connection.execute(sa.text(_PRIORITIES))
    connection.execute(sa.text("UPDATE annotation_items SET priority = -1 WHERE gold IS NOT NULL"))


def _digests(body: dict[str, Any]) -> set[str]:
    texts = (text for name in ("text", "other") if (text := body.get(name)))
    return {blake2b(text.encode(errors="replace"), digest_size=16).hexdigest() for text in texts}


def _place(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=4).digest(), "big") >> 1
