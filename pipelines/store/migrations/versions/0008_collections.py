"""Collections of people's own documents.

Revision: 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "collections",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("embedder", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("owner", "name", name="uq_collections_owner_name"),
    )
    op.create_table(
        "collection_documents",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("collection", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("passages", sa.Integer(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_collection_documents"),
        sa.ForeignKeyConstraint(
            ["collection"],
            ["collections.id"],
            name="fk_collection_documents_collection_collections",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_collection_documents_collection_number",
        "collection_documents",
        ["collection", "number"],
    )


def downgrade() -> None:
    """Go back to revision 0007."""
    op.drop_index("ix_collection_documents_collection_number", "collection_documents")
    op.drop_table("collection_documents")
    op.drop_table("collections")
