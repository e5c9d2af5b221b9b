"""Stores to test: in a SQLite file, and (long tests) in a private PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import chown, copytree
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from pipelines.store import RunStore
from tests.postgresql import require_postgresql

ON_BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.verify)]


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a server's maintenance database; the server listens on a socket in a private folder.

    Its programs refuse to run as root, who therefore borrows another account.
    """
    programs = require_postgresql()
    account = _account()
    with TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        if account is not None:
            chown(folder, account)
            if programs.is_relative_to(sys.prefix):
                # The other account may be unable to read where packages are installed.
                copytree(programs.parent, Path(folder) / "programs", symlinks=True)
                programs = Path(folder) / "programs" / programs.name
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

        run("initdb", "--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run("pg_ctl", "start", "--wait", "--options", options)
        try:
            yield f"postgresql+psycopg://tester@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate")


def _account() -> str | None:
    if os.geteuid() != 0:
        return None
    accounts = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in accounts else "nobody"


@pytest.fixture
def new_postgresql(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Creates an empty PostgreSQL database and gives its URL; the server starts when first used."""

    def create() -> str:
        server: str = request.getfixturevalue("postgresql_server")
        name = f"runs_{uuid4().hex}"
        engine = create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return server.replace("/postgres?", f"/{name}?")

    return create


@pytest.fixture(params=ON_BOTH)
def url(request: pytest.FixtureRequest, tmp_path: Path, new_postgresql: Callable[[], str]) -> str:
    """The URL of a database that nothing was written to yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/private/runs.db"
    return new_postgresql()


@pytest.fixture
def store(url: str) -> Iterator[RunStore]:
    """An open store with nothing in it."""
    with closing(RunStore(url)) as store:
        yield store
