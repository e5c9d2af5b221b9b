"""An evaluation on a real Ray cluster of several nodes equals that of one process."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Passage
from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, UnreachableError
from pipelines.evaluation import ray as ray_module
from pipelines.evaluation.plan import Budget, EvaluationSpec, Item, System, code_version
from pipelines.evaluation.ray import RayCluster
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.runner import EvaluationProgress, Runner
from pipelines.evaluation.scoring import read_results
from pipelines.models.providers import ModelSpec
from pipelines.run.events import MethodSpec
from tests import network
from tests.pipelines.evaluation.bench import carried_out, create
from tests.scripted.wire import (
    Handler,
    Seen,
    Wire,
    chunk,
    completion,
    says,
    serve,
    streams,
    usage_chunk,
)

pytestmark = pytest.mark.verify

KEY = "sk-never-stored-0123456789abcdef"
ITEMS = [
    Item(
        id=f"q{number}",
        question=f"Who was number {number}?",
        answers=(f"Answer {number % 7}",),
        passages=(
            Passage(id="p", title="", text=f"Number {number} was a painter.", source="made up"),
        ),
    )
    for number in range(12)
]


class Holding(Handler):
    """Answers each question in its own way; from the request `hold` on it waits for `go`.

    `held` is set once so `many` requests wait at the same time.
    """

    hold: int | None = None
    many: int = 1
    waiting: int = 0
    held = threading.Event()
    go = threading.Event()

    def answer(self, seen: Seen) -> None:
        with self.wire.lock:
            self.wire.seen.append(seen)
            waits = self.hold is not None and len(self.wire.seen) >= self.hold
            type(self).waiting += waits
            if waits and self.waiting >= self.many:
                self.held.set()
        if waits:
            self.go.wait(60)
        asked = json.dumps([seen.body["messages"], seen.body.get("seed")])
        digest = hashlib.sha256(asked.encode()).digest()
        reply = f"Answer {digest[0] % 7}"
        if seen.body.get("stream"):
            streams(chunk(reply), chunk(finish="stop"), usage_chunk(7, 3))(self)
        else:
            says(completion(reply))(self)


@pytest.fixture
def model_server() -> Iterator[tuple[Wire, type[Holding]]]:
    handler = type("Held", (Holding,), {"held": threading.Event(), "go": threading.Event()})
    with serve(handler) as wire:
        yield wire, handler
        handler.go.set()


class Nodes:
    """A cluster on this machine: a head without processors, and nodes with one each."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        small: dict[str, Any] = {"object_store_memory": 80 * 2**20}
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, **small},
        )
        self._nodes = [self._cluster.add_node(num_cpus=1, **small) for _ in range(count)]
        self._cluster.wait_for_nodes()
        self.address = str(self._cluster.address)

    def kill(self) -> None:
        """One node is gone at once, with all its processes."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(autouse=True)
def nothing_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """As everywhere, but that Ray connects nodes by this machine's own address."""
    home = tmp_path_factory.mktemp("home")
    # Ray would ask the network what cloud this is, and tell its makers that it tells nothing.
    (home / "ray_bootstrap_config.yaml").write_text("provider: {type: local}")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_REPORT_URL", "http://127.0.0.1:1/")
    yield
    own = importlib.import_module("ray.util").get_node_ip_address()
    found = network.noted(Path(os.environ[network.LOG]))
    assert [line for line in found if f"'{own}'" not in line] == []


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    cluster = Nodes(2)
    yield cluster
    cluster.close()


def asked(url: str, **options: Any) -> EvaluationSpec:
    server = ModelSpec(kind="openai", name="served", model="m", base_url=url)
    systems = tuple(
        System(name=name, method=MethodSpec(name=name), models={"main": server}, evidence=None)
        for name in ("direct", "rag", "chain_of_thought")
    )
    return EvaluationSpec(
        data="mine", data_hash="h", code=code_version(), systems=systems, **options
    )


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Service]:
    service = Service(folder, libraries=Libraries(folder / "index", find_embedder=lambda: None))
    async with aclosing(service):
        yield service


async def alone(folder: Path, spec: EvaluationSpec) -> Evaluation:
    """The results of one process."""
    async with opened(folder) as service:
        name = create(service, spec, items=ITEMS)
        last = await carried_out(Runner(service, name, owner="me", keys={"served": KEY}))
        assert last.reason == "done", last
        return read_results(service.store.evaluations, name, "me")[1]


def without_times(found: Evaluation) -> list[dict[str, Any]]:
    """The scores without what differs between any two runs."""
    rows = [score.model_dump(exclude={"run"}) for score in found.scores]
    for row in rows:
        row["cost"].pop("seconds")
    return rows


async def on(
    nodes: Nodes, folder: Path, spec: EvaluationSpec, **options: Any
) -> tuple[EvaluationProgress, Evaluation]:
    """The same on the workers of `nodes`; how it ended, and its results."""
    async with opened(folder) as service:
        name = create(service, spec, items=ITEMS)
        cluster = await RayCluster.connect(
            nodes.address, service.store, owner="me", keys={"served": KEY}
        )
        async with aclosing(cluster):
            runner = Runner(service, name, owner="me", answering=cluster, at_once=6, **options)
            last = await carried_out(runner)
        results = read_results(service.store.evaluations, name, "me")[1]
        for score in results.scores:
            assert (await service.load(score.run, owner="me")).terminal is not None
        return last, results


async def test_two_nodes_find_what_one_process_finds(
    tmp_path: Path, nodes: Nodes, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, _ = model_server
    spec = asked(wire.url, repeats=2)
    wanted = await alone(tmp_path / "alone", spec)
    calls = len(wire.seen)
    last, found = await on(nodes, tmp_path / "cluster", spec)
    assert (last.answered, last.reason) == (72, "done")
    assert without_times(found) == without_times(wanted)
    whole, other = (results_table(one) for one in (found, wanted))
    assert whole.differences == other.differences
    assert [row.metrics for row in whole.rows] == [row.metrics for row in other.rows]
    # Nothing is asked that one process would not ask.
    assert len(wire.seen) == 2 * calls
    assert {seen.headers["authorization"] for seen in wire.seen} == {f"Bearer {KEY}"}
    for file in (tmp_path / "cluster").rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


async def test_a_node_that_dies_on_the_way_costs_no_answer(
    tmp_path: Path, nodes: Nodes, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, handler = model_server
    spec = asked(wire.url)
    wanted = await alone(tmp_path / "alone", spec)
    calls = len(wire.seen)
    handler.hold, handler.many = calls + 15, 6

    def kill() -> None:
        # Six answers are under way by now; on both nodes, unless one is slow to begin.
        assert handler.held.wait(60)
        nodes.kill()
        handler.go.set()

    killing = asyncio.create_task(asyncio.to_thread(kill))
    last, found = await on(nodes, tmp_path / "cluster", spec)
    await killing
    assert (last.answered, last.failed, last.reason) == (36, 0, "done")
    assert without_times(found) == without_times(wanted)
    # Only what was under way on that node is asked again.
    assert calls <= len(wire.seen) - calls <= calls + 6


async def test_a_budget_stops_the_workers(
    tmp_path: Path, nodes: Nodes, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, _ = model_server
    last, found = await on(nodes, tmp_path, asked(wire.url), budget=Budget(calls=10))
    assert last.reason == "budget"
    # Six answers of two calls each may have been under way.
    assert 10 <= last.spent.calls == len(wire.seen) < 10 + 6 * 2
    assert len(found.scores) == last.answered


async def test_it_is_stopped_and_goes_on_with_the_replies_that_it_has(
    tmp_path: Path, nodes: Nodes, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, handler = model_server
    handler.hold = 10
    spec = asked(wire.url)
    async with opened(tmp_path) as service:
        name = create(service, spec, items=ITEMS)

        async def work(stopping: bool) -> EvaluationProgress:
            cluster = await RayCluster.connect(
                nodes.address, service.store, owner="me", keys={"served": KEY}
            )
            async with aclosing(cluster):
                runner = Runner(service, name, owner="me", answering=cluster, at_once=4)
                if stopping:
                    watching = asyncio.create_task(asyncio.to_thread(handler.held.wait, 60))
                    watching.add_done_callback(lambda _: runner.stop())
                return await carried_out(runner)

        stopped = await work(stopping=True)
        assert stopped.reason == "stopped"
        ends = [run.status for run in service.store.list("me", limit=100)]
        assert set(ends) == {"finished", "cancelled"}
        handler.hold = None
        handler.go.set()
        done = await work(stopping=False)
        assert (done.reason, done.answered) == ("done", 36)


async def test_a_machine_that_lacks_something_is_named_and_nothing_begins(
    tmp_path: Path,
    nodes: Nodes,
    model_server: tuple[Wire, type[Holding]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire, _ = model_server
    proof = ray_module.proof_of
    # This machine has a package that the workers do not have.
    monkeypatch.setattr(ray_module, "proof_of", lambda *given: proof(*given) | {"gt-mine": "1.0"})
    async with opened(tmp_path) as service:
        with pytest.raises(InvalidInputError, match=r"gt-mine: missing instead of 1\.0"):
            await RayCluster.connect(
                nodes.address, service.store, owner="me", keys={}, spec=asked(wire.url)
            )
    assert wire.seen == []


async def test_workers_are_counted_once(
    tmp_path: Path, nodes: Nodes, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, _ = model_server
    async with opened(tmp_path) as service:
        cluster = await RayCluster.connect(
            nodes.address, service.store, owner="me", keys={}, spec=asked(wire.url)
        )
        async with aclosing(cluster):
            assert cluster.workers == 2


async def test_what_is_no_cluster_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        with pytest.raises(UnreachableError, match=r"no Ray cluster at 127\.0\.0\.1:1 "):
            await RayCluster.connect("127.0.0.1:1", service.store, owner="me", keys={})
        with pytest.raises(InvalidInputError, match="ray://"):
            await RayCluster.connect("ray://here:1", service.store, owner="me", keys={})


async def test_a_cluster_of_another_version_is_told(
    tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("ray"), "__version__", "0.0.1")
    async with opened(tmp_path) as service:
        with pytest.raises(InvalidInputError, match=r"another version of Python or Ray.*0\.0\.1"):
            await RayCluster.connect(nodes.address, service.store, owner="me", keys={})


def in_home() -> list[Path]:
    return sorted(Path(os.environ["HOME"]).rglob("*"))


async def test_a_cluster_of_its_own_leaves_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_server: tuple[Wire, type[Holding]]
) -> None:
    wire, _ = model_server
    # What it puts there is taken away with the test.
    monkeypatch.setenv("RAY_AUTH_TOKEN", "")
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    before = in_home()
    async with opened(tmp_path) as service:
        cluster = await RayCluster.connect(
            "local", service.store, owner="me", keys={}, workers=1, spec=asked(wire.url)
        )
        await cluster.aclose()
    assert in_home() == before
