"""What only a server does to a store: it drops connections, is started again, gives few rights."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from app.cli import main as cli
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import StorageError, StorageLostError, StorageReadOnlyError
from pipelines.run.events import MethodSpec, ModelSpec, RunFinished, RunSpec
from pipelines.store import RunStore
from pipelines.store.database import AdvisoryPresence
from tests.pipelines.store import examples
from tests.postgresql import new_database, private_server
from tests.scripted.fakes import FakeModel

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


def test_a_lock_that_a_lost_connection_still_holds_is_not_waited_for(url: str):
    # Without the limit of the URL, a wait for the lock would never end.
    with closing(RunStore(f"{url}&options=-c%20lock_timeout%3D2000")) as store:
        presence = store._database.presence
        assert isinstance(presence, AdvisoryPresence)
        lost, presence._connection = presence._connection, None
        assert lost is not None
        store.create("r1", "me", examples.started("r1"))
        store.renew_presence()
        assert presence._connection is None
        assert lost.engine.pool.checkedout() == 1  # type: ignore[attr-defined]
        with closing(RunStore(url)) as other:
            assert other.recover() == 0
            # A server ends a connection when it gets to it; this frees the lock at once.
            lost.execute(text("SELECT pg_advisory_unlock_all()"))
            lost.invalidate()
            lost.close()
            store.renew_presence()
            assert presence._connection is not None
            assert other.recover() == 0


def test_a_connection_that_cannot_take_the_lock_is_given_back(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    with closing(RunStore(url)) as store:
        presence = store._database.presence
        assert isinstance(presence, AdvisoryPresence)
        drop_connections(url)
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.store.database._key_of", lambda _: "no number")
            with pytest.raises(StorageError):
                store.renew_presence()
        assert presence._engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_run_taken_for_abandoned_says_so(url: str):
    with closing(RunStore(url)) as store:
        store.create("r1", "me", examples.started("r1"))
        drop_connections(url)
        with closing(RunStore(url)) as other:
            assert other.recover() == 1
        with pytest.raises(StorageLostError, match="abandoned"):
            store.append("r1", examples.complete("r1")[1:])
        assert store.list("me")[0].reason == "interrupted"


def test_events_that_were_stored_without_a_word_are_not_stored_twice(url: str):
    with closing(RunStore(url)) as store:
        store.create("r1", "me", examples.started("r1"))
        store.append("r1", examples.steps("r1"))
        store.append("r1", examples.complete("r1")[1:], again=True)
        assert store.load("r1", "me").events == tuple(examples.complete("r1"))


def test_several_stores_that_save_share_and_recover_at_once_do_not_collide(url: str):
    stores = [RunStore(url) for _ in range(4)]
    spec = ModelSpec(kind="openai", name="one", model="m", base_url="https://host/v1")
    stores[0].create("r1", "me", examples.started("r1"))
    stores[0].append("r1", examples.complete("r1")[1:])

    def work(number: int) -> str:
        store = stores[number % len(stores)]
        store.models.save("me", spec.model_copy(update={"model": f"m{number}"}))
        store.recover()
        return store.share("r1", "me")

    with ThreadPoolExecutor(8) as pool:
        shared = set(pool.map(work, range(40)))
    assert len(shared) == 1
    (saved,) = stores[0].models.list("me")
    assert saved.name == "one"
    for store in stores:
        store.close()


async def test_a_server_that_is_started_again_loses_no_run(tmp_path: Path):
    model = FakeModel("one two three", gated=True)
    spec = RunSpec(question="Who wrote Hamlet?", methods=(MethodSpec(name="direct"),))
    with private_server() as server:
        url = new_database(server.url)
        service = Service(tmp_path, database=url, pool=ModelPool(lambda *_: model))
        first = await service.start(spec, owner="me")
        await model.until_asked(1)
        await asyncio.to_thread(server.stop)
        with pytest.raises(StorageError, match=r"cannot be reached.*Check that it is running"):
            await service.start(spec, owner="me")
        model.gate.set()
        # The run comes to its end without the server, and waits for it to store that.
        task = service._live[first].task
        assert task is not None
        await asyncio.wait({task})
        await asyncio.to_thread(server.start)
        events = [event async for event in service.follow(first, owner="me")]
        assert isinstance(events[-1], RunFinished)
        assert [event async for event in service.stream(spec, owner="me")]
        with closing(RunStore(url)) as other:
            assert {run.status for run in other.list("me")} == {"finished"}
            stored = other.load(first, "me").events
        assert stored == tuple(event for event in events if event.kind != "token")
        await service.aclose()


@pytest.fixture
def reader(url: str) -> str:
    """The URL of an account that may only read."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with closing(RunStore(url)) as store, engine.connect() as connection:
        store.create("r1", "me", examples.started("r1"))
        name = f"reader_{os.urandom(4).hex()}"
        connection.execute(text(f"CREATE ROLE {name} LOGIN"))
        connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}"))
    engine.dispose()
    return url.replace("tester@", f"{name}@")


def test_an_account_that_may_only_read_reads(reader: str, tmp_path: Path):
    service = Service(tmp_path, database=reader)
    with closing(service.store) as store:
        assert [run.status for run in store.list("me")] == ["cancelled"]
        assert len(store.load("r1", "me").events) == 2
        with pytest.raises(StorageReadOnlyError, match="none can be stored"):
            store.create("r2", "me", examples.started("r2"))


def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """The command line in a process of its own: status, standard output and error."""
    done = subprocess.run(
        [sys.executable, "-m", "pipelines", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_keeps_its_runs_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script = {"name": "s", "replies": [{"contains": "", "tokens": [["Hope.", 0.9]]}]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    data = ("--data", str(tmp_path / "data"))
    model = ("--profile", "scripted", "--model", str(tmp_path / "script.json"))
    ask = ("ask", "Where was he born?", "--method", "direct", *model)
    monkeypatch.setenv("VERISCOPE_DATABASE_URL", url)
    assert cli.main([*data, *ask]) == 0
    monkeypatch.delenv("VERISCOPE_DATABASE_URL")
    assert cli.main([*data, "--database", url, "list"]) == 0
    assert "Where was he born?" in capsys.readouterr().out
    assert not (tmp_path / "data" / "veriscope.db").exists()
    monkeypatch.setenv("VERISCOPE_DATABASE_URL", "postgresql://nobody@/elsewhere")
    assert cli.main([*data, "--database", url, "list"]) == 0
    assert "Where was he born?" in capsys.readouterr().out


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@127.0.0.1:1/runs",
        "postgresql://me:hunter2@localhost:port/runs",
        "mysql://me:hunter2@host/runs",
        "hunter2",
    ],
)
def test_no_password_is_printed(tmp_path: Path, address: str):
    status, out, err = command(
        "--data", str(tmp_path), "list", VERISCOPE_DATABASE_URL=address, PYTHONWARNINGS="error"
    )
    assert status in (1, 2)
    assert out == ""
    assert err.startswith("veriscope: ")
    assert "hunter2" not in err
    assert "Traceback" not in err
