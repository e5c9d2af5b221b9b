"""Judges of evaluations: what is to be judged, what they said, and what that took.

Revision: 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "evaluation_judges",
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("judge", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("calibration", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation", "judge", name="pk_evaluation_judges"),
        _of_evaluation("evaluation_judges"),
    )
    op.create_table(
        "evaluation_judgements",
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("judge", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("evaluation", "judge", "number", name="pk_evaluation_judgements"),
        _of_evaluation("evaluation_judgements"),
    )
    op.create_table(
        "judgements",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_judgements"),
    )
    op.create_table(
        "judging_costs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("judge", sa.String(64), nullable=False),
        sa.Column("spent", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_judging_costs"),
        _of_evaluation("judging_costs"),
    )
    op.create_index("ix_judging_costs_evaluation_judge", "judging_costs", ["evaluation", "judge"])


def downgrade() -> None:
    """Go back to revision 0005."""
    for table in ("judging_costs", "judgements", "evaluation_judgements", "evaluation_judges"):
        op.drop_table(table)


def _of_evaluation(table: str) -> sa.ForeignKeyConstraint:
    """Return what belongs to an evaluation is deleted with it."""
    return sa.ForeignKeyConstraint(
        ["evaluation"],
        ["evaluations.id"],
        name=f"fk_{table}_evaluation_evaluations",
        ondelete="CASCADE",
    )
