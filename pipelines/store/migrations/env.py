"""Run by Alembic for every command; the connection comes from `alembic_config`."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy.types import TypeDecorator

from pipelines.store.tables import Base


def render_item(kind: str, item: Any, autogen: AutogenContext) -> str | Literal[False]:
    """Write our column types as the plain type below, so that revisions need no code of ours."""
    if kind == "type" and isinstance(item, TypeDecorator):
        return f"sa.{item.impl_instance!r}"
    return False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    render_item=render_item,
)
with context.begin_transaction():
    context.run_migrations()
