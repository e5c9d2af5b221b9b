"""Evaluations: their items, tasks and attempts, and what was answered.

Revision: 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
    )
    op.create_index("ix_evaluations_owner_created", "evaluations", ["owner", "created"])
    op.create_table(
        "evaluation_items",
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation", "position", name="pk_evaluation_items"),
        _of_evaluation("evaluation_items"),
    )
    op.create_table(
        "evaluation_tasks",
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("system", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation", "number", name="pk_evaluation_tasks"),
        _of_evaluation("evaluation_tasks"),
    )
    op.create_index(
        "ix_evaluation_tasks_evaluation_done_number",
        "evaluation_tasks",
        ["evaluation", "done", "number"],
    )
    op.create_table(
        "evaluation_attempts",
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("spent", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("run", name="pk_evaluation_attempts"),
        _of_evaluation("evaluation_attempts"),
    )
    for last in ("counted", "number"):
        op.create_index(
            f"ix_evaluation_attempts_evaluation_{last}", "evaluation_attempts", ["evaluation", last]
        )
    op.create_table(
        "outcomes",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_outcomes"),
    )


def downgrade() -> None:
    """Go back to revision 0002."""
    for table in ("outcomes", "evaluation_attempts", "evaluation_tasks", "evaluation_items"):
        op.drop_table(table)
    op.drop_table("evaluations")


def _of_evaluation(table: str) -> sa.ForeignKeyConstraint:
    """Return what belongs to an evaluation is deleted with it."""
    return sa.ForeignKeyConstraint(
        ["evaluation"],
        ["evaluations.id"],
        name=f"fk_{table}_evaluation_evaluations",
        ondelete="CASCADE",
    )
