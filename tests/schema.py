"""New databases of tests get the schema that all migrations lead to at once, not step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import Engine

from pipelines.store import migrations, runs
from pipelines.store.database import file_url, open_engine

_REVISION = "SELECT version_num FROM alembic_version"
_WRITTEN = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"


@cache
def _newest() -> tuple[tuple[str, ...], str]:
    """The statements that make the schema, and its revision, from a database that was migrated."""
    with TemporaryDirectory() as folder:
        engine = open_engine(file_url(Path(folder)))
        migrations.upgrade(engine)
        with engine.connect() as connection:
            made = connection.exec_driver_sql(f"{_WRITTEN} ORDER BY rowid").scalars().all()
            revision = connection.exec_driver_sql(_REVISION).scalar_one()
        engine.dispose()
    return tuple(made), revision


def upgrade(engine: Engine) -> None:
    """Do what migrations do; the newest schema is written as it is where there is none yet."""
    if engine.dialect.name == "sqlite":
        statements, revision = _newest()
        with migrations.migrating(engine) as connection:
            held = connection.exec_driver_sql(_WRITTEN).scalars().all()
            if not held:
                for statement in statements:
                    connection.exec_driver_sql(statement)
                kept = f"INSERT INTO alembic_version VALUES ('{revision}')"
                connection.exec_driver_sql(kept)
                return
            if set(held) == set(statements):
                found = connection.exec_driver_sql(_REVISION).scalars().all()
                if found == [revision]:
                    return
    migrations.upgrade(engine)


@contextmanager
def made_at_once() -> Iterator[None]:
    """Within it, stores that are opened do not go through the migrations one by one."""
    # Before any test makes disks full or read-only.
    _newest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "upgrade", upgrade)
        yield


@contextmanager
def migrated() -> Iterator[None]:
    """Within it they do, as those of the product."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "upgrade", migrations.upgrade)
        yield
