"""Begins a migration: `python -m pipelines.store.migrations "what changed"`.

Compares `tables.py` with the schema that the existing revisions build and writes the difference as
the next file in `migrations/versions/`. Read and correct it before use: a renamed column, say,
shows up as one dropped and one added.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alembic import command
from alembic.operations.ops import MigrationScript
from alembic.script import Script, ScriptDirectory
from sqlalchemy import NullPool, create_engine

from pipelines.store.migrations import FOLDER, alembic_config


def revise(message: str, folder: Path = FOLDER) -> Path | None:
    """Write the next revision into `folder`; None if tables and revisions agree already."""
    with create_engine("sqlite://", poolclass=NullPool).begin() as connection:
        config = alembic_config(connection, folder)
        command.upgrade(config, "head")
        newest = ScriptDirectory.from_config(config).get_current_head() or "0"
        script = command.revision(
            config,
            message,
            autogenerate=True,
            rev_id=f"{int(newest) + 1:04}",
            process_revision_directives=_drop_if_empty,
        )
    return Path(script.path) if isinstance(script, Script) else None


def _drop_if_empty(context: Any, revision: Any, directives: Iterable[Any]) -> None:
    assert isinstance(directives, list)
    (script,) = directives
    assert isinstance(script, MigrationScript)
    if script.upgrade_ops is not None and script.upgrade_ops.is_empty():
        directives.clear()


def main(arguments: list[str]) -> int:
    """Run the command. Returns the exit status."""
    if len(arguments) != 1:
        print('usage: python -m pipelines.store.migrations "what changed"', file=sys.stderr)
        return 2
    path = revise(arguments[0])
    print("Nothing to write: tables and revisions agree." if path is None else f"Wrote {path}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
