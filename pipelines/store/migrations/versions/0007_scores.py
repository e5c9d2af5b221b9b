"""Scores that were computed of what an evaluation has answered.

Revision: 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "evaluation_scores",
        sa.Column("evaluation", sa.String(64), nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation", "block", name="pk_evaluation_scores"),
        sa.ForeignKeyConstraint(
            ["evaluation"],
            ["evaluations.id"],
            name="fk_evaluation_scores_evaluation_evaluations",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Go back to revision 0006."""
    op.drop_table("evaluation_scores")
