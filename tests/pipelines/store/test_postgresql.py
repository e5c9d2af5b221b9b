"""What only a server can do to a store: drop its connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text

from pipelines.store import RunStore
from tests.pipelines.store import examples

pytestmark = pytest.mark.verify


@pytest.fixture
def url(new_postgresql: Callable[[], str]) -> str:
    return new_postgresql()


def drop_connections(url: str) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()


def test_a_store_goes_on_after_its_connections_were_dropped(url: str):
    with closing(RunStore(url)) as store, closing(RunStore(url)) as other:
        store.create("r1", "me", examples.started("r1"))
        drop_connections(url)
        store.create("r2", "me", examples.started("r2"))
        store.append("r1", examples.complete("r1")[1:])
        assert store.load("r1", "me").events == tuple(examples.complete("r1"))
        # Beginning a run took the lock again, so others still see its writer alive.
        assert other.recover() == 0
        assert {run.status for run in other.list("me")} == {"running", "finished"}


def test_a_store_whose_connections_were_dropped_can_be_closed(url: str):
    store = RunStore(url)
    store.create("r1", "me", examples.started("r1"))
    drop_connections(url)
    store.close()
    with closing(RunStore(url)) as other:
        assert other.recover() == 1
