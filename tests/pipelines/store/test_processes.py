"""Several threads and processes on one database, and runs that a dead process left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.run.events import ModelCalled
from pipelines.store import RunStore
from tests.pipelines.store import examples
from tests.pipelines.store.writer import record

ROOT = Path(__file__).parents[3]
LIMIT_SECONDS = 60

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    """Starts `writer.py` on the database; whatever still runs at the end is killed."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.pipelines.store.writer", url, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def recover(store: RunStore) -> int:
    """Recover as soon as there is something to: a server may notice a death a moment later."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        if count := store.recover():
            return count
    return 0


def check_whole(store: RunStore, run: str, calls: int) -> None:
    events = store.load(run, "me").events
    assert [event.seq for event in events] == list(range(calls + 2))
    assert all(event.run == run for event in events)
    assert sum(isinstance(event, ModelCalled) for event in events) == calls
    assert events[-1] == examples.finished(run, calls + 1)


def test_many_threads_append_at_the_same_time(store: RunStore):
    runs = [f"r{number}" for number in range(8)]

    def write(run: str) -> None:
        store.create(run, "me", examples.started(run))
        record(store, run, 12)

    def read(_: int) -> None:
        for summary in store.list("me"):
            events = store.load(summary.id, "me").events
            assert [event.seq for event in events] == list(range(len(events)))

    with ThreadPoolExecutor(12) as pool:
        written = [pool.submit(write, run) for run in runs]
        looked = [pool.submit(read, number) for number in range(20)]
        for future in (*written, *looked):
            future.result(timeout=LIMIT_SECONDS)
    for run in runs:
        check_whole(store, run, 12)
    assert {run.model_calls for run in store.list("me")} == {12}


def test_threads_that_append_to_one_run_do_not_tear_it(store: RunStore):
    store.create("r1", "me", examples.started("r1"))

    def append(seq: int) -> bool:
        try:
            store.append("r1", [examples.called("r1", seq)])
        except ValueError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(append, [1] * 8))
    assert accepted.count(True) == 1
    assert len(store.load("r1", "me").events) == 2


def test_processes_share_one_database_from_its_creation_on(url: str, start: Start):
    others = [start("record", f"p{number}", "15") for number in range(3)]
    with closing(RunStore(url)) as store:
        store.create("mine", "me", examples.started("mine"))
        record(store, "mine", 15)
        assert [process.wait(LIMIT_SECONDS) for process in others] == [0, 0, 0]
        for run in ("mine", "p0", "p1", "p2"):
            check_whole(store, run, 15)


def test_a_dead_processs_run_is_ended_and_a_living_ones_is_not(url: str, start: Start):
    alive, dead = start("begin", "alive"), start("begin", "dead")
    wait_until_ready(alive)
    wait_until_ready(dead)
    with closing(RunStore(url)) as store:
        store.create("mine", "me", examples.started("mine"))
        assert store.recover() == 0
        dead.kill()
        dead.wait()
        assert recover(store) == 1
        assert store.recover() == 0
        statuses = {run.id: run.status for run in store.list("me")}
        assert statuses == {"mine": "running", "alive": "running", "dead": "cancelled"}
        record(store, "mine", 1)


def test_a_recovered_run_keeps_what_it_had(url: str):
    first = RunStore(url)
    first.create("r1", "me", examples.started("r1"))
    first.append("r1", examples.steps("r1"))
    first.close()
    with closing(RunStore(url)) as store:
        assert store.recover() == 1
        *kept, end = store.load("r1", "me").events
        assert kept == [examples.started("r1"), *examples.steps("r1")]
        assert end.model_dump() == {
            "kind": "run_cancelled",
            "run": "r1",
            "span": "s0",
            "parent": None,
            "seq": 10,
            "time": 9.0,
            "reason": "interrupted",
        }
        assert store.list("me")[0].status == "cancelled"
        assert store.list("me")[0].duration == 9.0


def test_what_a_dead_process_left_beside_the_file_is_cleared(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/runs.db"
    with closing(RunStore(url)) as store:
        store.create("r1", "me", examples.started("r1"))
        (tmp_path / "runs.db-writer-0123456789abcdef").touch()
        with closing(RunStore(url)) as other:
            left = [path for path in tmp_path.iterdir() if "-writer-" in path.name]
            # Those of the two that are open.
            assert len(left) == 2
            assert other.recover() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db"]
