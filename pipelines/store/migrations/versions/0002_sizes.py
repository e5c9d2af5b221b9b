"""Every run knows how much its events take.

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("runs", sa.Column("size", sa.Integer(), nullable=False, server_default="0"))
    runs, events = (
        sa.table("runs", sa.column("id"), sa.column("size", sa.Integer())),
        sa.table("events", sa.column("run_id"), sa.column("body", sa.JSON())),
    )
    size = sa.func.coalesce(sa.func.sum(sa.func.length(sa.cast(events.c.body, sa.String))), 0)
    counted = sa.select(size).where(events.c.run_id == runs.c.id).scalar_subquery()
    op.execute(runs.update().values(size=counted))
    with op.batch_alter_table("runs") as table:
        table.alter_column("size", server_default=None)


def downgrade() -> None:
    """Go back to revision 0001."""
    with op.batch_alter_table("runs") as table:
        table.drop_column("size")
