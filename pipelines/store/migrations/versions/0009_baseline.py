"""All tables of the first release.

Revision: 0009, the first. Databases that were made before the release went through nine revisions.
Those at the ninth have exactly these tables and are used as they are; `upgrade` of
`pipelines.store.migrations` refuses the others. Nothing leads back: before it there is no table.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    _runs()
    _evaluations()
    _annotations()
    _collections()


def _runs() -> None:
    _table(
        "runs",
        ["id"],
        _text("id", 64),
        _text("owner", 64),
        _text("question"),
        _text("language", 8),
        _text("status", 16),
        _time("created"),
        _time("finished", nullable=True),
        _text("writer", 64),
        _number("length"),
        _number("size"),
        _json("spec"),
        _json("summary"),
    )
    _index("runs", "owner", "created", "id")
    _index("runs", "status")
    _index("runs", "created")
    _table(
        "run_labels",
        ["run_id"],
        _text("run_id", 64),
        _text("name", 200),
        _text("note"),
        _truth("starred"),
        of="runs",
    )
    _table(
        "run_facets",
        ["run_id", "kind", "value"],
        _text("run_id", 64),
        _text("kind", 16),
        _text("value", 200),
        _text("owner", 64),
        of="runs",
    )
    _index("run_facets", "owner", "kind", "value")
    _table(
        "events",
        ["run_id", "seq"],
        _text("run_id", 64),
        _number("seq"),
        _text("kind", 32),
        _json("body"),
        of="runs",
    )
    for table, held in (("models", "spec"), ("profiles", "body")):
        of_owner = (_text("owner", 64), _text("name", 200))
        _table(table, ["owner", "name"], *of_owner, _json(held), _time("saved"))
    _index("models", "saved")


def _evaluations() -> None:
    _table(
        "evaluations",
        ["id"],
        _text("id", 64),
        _text("owner", 64),
        _text("name", 200),
        _time("created"),
        _json("spec"),
    )
    _index("evaluations", "owner", "created")
    _table(
        "evaluation_items",
        ["evaluation", "position"],
        _text("evaluation", 64),
        _number("position"),
        _text("item"),
        _json("body"),
        of="evaluations",
    )
    _table(
        "evaluation_tasks",
        ["evaluation", "number"],
        _text("evaluation", 64),
        _number("number"),
        _number("position"),
        _number("system"),
        _number("repeat"),
        _text("key", 64),
        _truth("done"),
        of="evaluations",
    )
    _index("evaluation_tasks", "evaluation", "done", "number")
    _table(
        "evaluation_attempts",
        ["run"],
        _text("run", 64),
        _text("evaluation", 64),
        _number("number"),
        _truth("counted"),
        _json("spent"),
        of="evaluations",
    )
    _index("evaluation_attempts", "evaluation", "counted")
    _index("evaluation_attempts", "evaluation", "number")
    _table(
        "evaluation_scores",
        ["evaluation", "block"],
        _text("evaluation", 64),
        _number("block"),
        _text("code", 64),
        _json("body"),
        of="evaluations",
    )
    _table(
        "evaluation_judges",
        ["evaluation", "judge"],
        _text("evaluation", 64),
        _text("judge", 64),
        _time("created"),
        _json("spec"),
        _json("calibration"),
        of="evaluations",
    )
    _table(
        "evaluation_judgements",
        ["evaluation", "judge", "number"],
        _text("evaluation", 64),
        _text("judge", 64),
        _number("number"),
        _text("key", 64),
        of="evaluations",
    )
    _table(
        "judging_costs",
        ["id"],
        _text("id", 64),
        _text("evaluation", 64),
        _text("judge", 64),
        _json("spent"),
        of="evaluations",
    )
    _index("judging_costs", "evaluation", "judge")
    for table, more in (("outcomes", [_text("run", 64)]), ("judgements", [])):
        of_owner = (_text("owner", 64), _text("key", 64))
        _table(table, ["owner", "key"], *of_owner, *more, _time("created"), _json("body"))


def _annotations() -> None:
    _table(
        "annotation_sessions",
        ["id"],
        _text("id", 64),
        _text("owner", 64),
        _text("name", 200),
        _time("created"),
        _time("closed", nullable=True),
        _text("seed", 32),
        _number("overlap"),
        _number("guidelines"),
        _number("events"),
        _json("spec"),
    )
    _index("annotation_sessions", "owner", "created")
    _table(
        "annotation_guidelines",
        ["session", "version"],
        _text("session", 64),
        _number("version"),
        _text("text"),
        _time("created"),
        of="annotation_sessions",
    )
    _table(
        "annotators",
        ["session", "number"],
        _text("session", 64),
        _number("number"),
        _text("name", 200),
        _text("kind", 16),
        _time("joined"),
        of="annotation_sessions",
        unique=["session", "name"],
    )
    _table(
        "annotation_links",
        ["id"],
        _text("id", 32),
        _text("session", 64),
        _text("role", 16),
        _number("annotator", nullable=True),
        _text("digest", 64),
        _time("created"),
        _time("expires", nullable=True),
        _time("revoked", nullable=True),
        of="annotation_sessions",
    )
    _index("annotation_links", "session")
    _table(
        "annotation_items",
        ["session", "number"],
        _text("session", 64),
        _number("number"),
        _text("key", 64),
        _text("task", 16),
        _number("labels"),
        sa.Column("probability", sa.Double(), nullable=True),
        _json("gold", nullable=True),
        _json("body"),
        _json("hidden"),
        of="annotation_sessions",
        unique=["session", "key"],
    )
    _table(
        "annotation_claims",
        ["session", "item", "annotator"],
        _text("session", 64),
        _number("item"),
        _number("annotator"),
        _number("slot", nullable=True),
        _text("state", 16),
        _time("taken"),
        _time("expires"),
        _truth("revealed"),
        of="annotation_sessions",
        unique=["session", "item", "slot"],
    )
    _index("annotation_claims", "session", "annotator", "state")
    _table(
        "annotation_events",
        ["session", "seq"],
        _text("session", 64),
        _number("seq"),
        _number("item"),
        _number("annotator"),
        _text("client", 64),
        _text("kind", 16),
        _time("at"),
        _number("guidelines"),
        _number("overlap"),
        sa.Column("seconds", sa.Double(), nullable=True),
        _truth("fast"),
        _truth("revealed"),
        _text("run", 64),
        _json("value"),
        of="annotation_sessions",
        unique=["session", "annotator", "client"],
    )
    _index("annotation_events", "session", "item")
    failed = (_text("id", 32), _text("subject", 64), _time("at"))
    _table("annotation_failed_links", ["id"], *failed)
    _index("annotation_failed_links", "subject", "at")
    _index("annotation_failed_links", "at")


def _collections() -> None:
    _table(
        "collections",
        ["id"],
        _text("id", 64),
        _text("owner", 64),
        _text("name", 200),
        _time("created"),
        _json("embedder"),
        unique=["owner", "name"],
    )
    _table(
        "collection_documents",
        ["id"],
        _text("id", 64),
        _text("collection", 64),
        _number("number"),
        _text("name"),
        _text("digest", 64),
        sa.Column("size", sa.BigInteger(), nullable=False),
        _time("added"),
        _text("state", 16),
        _number("passages"),
        _json("body"),
        of="collections",
    )
    _index("collection_documents", "collection", "number")


_PARENT_COLUMNS = {
    "runs": "run_id",
    "evaluations": "evaluation",
    "annotation_sessions": "session",
    "collections": "collection",
}


def _table(
    name: str,
    key: list[str],
    *columns: sa.Column[Any],
    of: str = "",
    unique: list[str] | None = None,
) -> None:
    """Create a table; its rows go with the row of the table `of` that they belong to."""
    constraints: list[Any] = [sa.PrimaryKeyConstraint(*key, name=f"pk_{name}")]
    if of:
        column = _PARENT_COLUMNS[of]
        foreign = f"fk_{name}_{column}_{of}"
        constraints.append(
            sa.ForeignKeyConstraint([column], [f"{of}.id"], name=foreign, ondelete="CASCADE")
        )
    if unique:
        constraints.append(sa.UniqueConstraint(*unique, name="_".join(["uq", name, *unique])))
    op.create_table(name, *columns, *constraints)


def _index(table: str, *columns: str) -> None:
    op.create_index("_".join(["ix", table, *columns]), table, list(columns))


def _text(name: str, longest: int | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.String(longest), nullable=False)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), autoincrement=False, nullable=nullable)


def _truth(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(), nullable=nullable)
