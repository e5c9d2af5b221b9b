"""Stores to test: in a SQLite file, and (long tests) in a private PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.store import RunStore
from tests.postgresql import new_database, private_server

ON_BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.verify)]


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of the maintenance database of a server that all tests share."""
    with private_server() as server:
        yield server.url


@pytest.fixture
def new_postgresql(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Creates an empty PostgreSQL database and gives its URL; the server starts when first used."""

    def create() -> str:
        return new_database(request.getfixturevalue("postgresql_server"))

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
