"""Names, notes and stars of runs, and the values by which runs are found.

Revision: 0009, after 0008. What recorded runs are found by is read from their events once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TOGETHER = 1_000
_LONGEST = 200


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "run_labels",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("starred", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_labels"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_run_labels_run_id_runs", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "run_facets",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("value", sa.String(200), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "kind", "value", name="pk_run_facets"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_run_facets_run_id_runs", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_run_facets_owner_kind_value", "run_facets", ["owner", "kind", "value"])
    _find_facets(op.get_bind())


def downgrade() -> None:
    """Go back to revision 0008."""
    op.drop_index("ix_run_facets_owner_kind_value", table_name="run_facets")
    op.drop_table("run_facets")
    op.drop_table("run_labels")


def _find_facets(connection: sa.Connection) -> None:
    facets = sa.table("run_facets", *map(sa.column, ("run_id", "kind", "value", "owner")))
    owners: dict[str, str] = {}
    rows: list[dict[str, str]] = []

    def write() -> None:
        if rows:
            connection.execute(sa.insert(facets), rows)
            rows.clear()

    def add(run_id: str, found: set[tuple[str, str]]) -> None:
        for kind, value in sorted(found):
            row = {"run_id": run_id, "kind": kind, "value": value, "owner": owners[run_id]}
            rows.append(row)
        if len(rows) >= _TOGETHER:
            write()

    little = {"yield_per": _TOGETHER}
    runs = sa.text("SELECT id, owner, spec FROM runs")
    for run_id, owner, spec in connection.execute(runs, execution_options=little):
        owners[run_id] = owner
        add(run_id, _asked(_json(spec)))
    for run_id, verdicts in _verdicts(connection):
        if run_id in owners:
            found = {("finding", f"{name}:{verdict}"[:_LONGEST]) for name, verdict in verdicts}
            add(run_id, found | {("verdict", verdict[:_LONGEST]) for _, verdict in verdicts})
    write()


def _asked(spec: Any) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    if not isinstance(spec, dict):
        return found
    for method in spec.get("methods") or ():
        found.add(("method", str(method.get("name", ""))[:_LONGEST]))
    for model in (spec.get("models") or {}).values():
        found.add(("model", str(model.get("name", ""))[:_LONGEST]))
        found.add(("model_id", str(model.get("model", ""))[:_LONGEST]))
    return {(kind, value) for kind, value in found if value}


def _verdicts(connection: sa.Connection) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Yield every run with the last verdict of each method on its answer, one run at a time."""
    query = sa.text(
        "SELECT run_id, kind, body FROM events WHERE kind IN ('judged', 'span_started')"
        " ORDER BY run_id, seq"
    )
    events = connection.execute(query, execution_options={"yield_per": _TOGETHER})
    for run_id, group in groupby(events, lambda event: event[0]):
        methods: dict[str, str] = {}
        last: dict[str, str] = {}
        for _, kind, body in group:
            event = _json(body)
            if kind == "span_started":
                methods[event.get("span", "")] = str(event.get("method", ""))
            elif event.get("what") == "answer" and event.get("span") in methods:
                last[methods[event["span"]]] = str(event.get("verdict", ""))
        if last:
            yield run_id, set(last.items())


def _json(value: Any) -> Any:
    # A column of JSON that is read without its type is text in SQLite, and data in PostgreSQL.
    return json.loads(value) if isinstance(value, str) else value
