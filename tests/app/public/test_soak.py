"""An hour's mixed use in two minutes: nothing grows once everything has been used a few times.

What is counted: memory, threads, tasks of the event loops, open files and sockets, runs under way,
and the entries of whatever is remembered of visitors. Run it with `-s` to see the numbers.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from gradio_client import Client

from app.public.serving import Space
from app.public.visitors import VisitorLimits
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.models.providers import build_model
from pipelines.run.events import ModelSpec
from tests.app.public.visiting import opened
from tests.scripted.fakes import FakeModel

WARM_UP = 3
ROUNDS = 12
PAGES = 10
SESSIONS = 20
"""Sessions that are kept here, so that their number does not grow during the test."""

MOST_MEMORY = 48 * 1024**2
"""Bytes that memory may differ by between two rounds, in which thousands of objects come and go."""

_numbers = count(1)


@pytest.fixture
def space(tmp_path: Path) -> Iterator[tuple[Space, str]]:
    """A Space in this process, on a model that answers at once."""
    model = FakeModel("In Hope, Arkansas.")

    def build(spec: ModelSpec, key: str | None, progress: Any) -> Any:
        return model if spec.kind == "embedded" else build_model(spec, None, progress)

    space = Space(
        tmp_path,
        VisitorLimits(runs_per_hour=0, address_runs_per_hour=0, visitor_megabytes=0.05),
        pool=ModelPool(build),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _, url, _ = space.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        state_session_capacity=SESSIONS,
    )
    yield space, url.rstrip("/")
    space.page.close()


async def visit(url: str) -> None:
    """One visitor: looks, clicks an example, asks, shares, asks again and goes away meanwhile."""
    number = next(_numbers)
    async with opened(url, number) as page:
        await page.load()
        if number % 2:
            await page.click_example(number % 5)
        async for _ in page.ask(f"What happened in the year {number}?"):
            pass
        if number % 3 == 0:
            assert await page.share()
        if number % 4 == 0:
            async with aclosing(page.ask(f"Who lived in the year {number}?")) as frames:
                async for _ in frames:
                    break


async def round_of(url: str) -> None:
    """Ten visitors at once."""
    async with asyncio.timeout(120):
        await asyncio.gather(*(visit(url) for _ in range(PAGES)))


def program(url: str) -> None:
    """What programs do: ask, and ask without waiting for the answer."""
    client = Client(url, verbose=False)
    try:
        assert client.predict(api_name="/list_methods")
        question = f"Where was number {next(_numbers)} born?"
        assert client.predict(question, "direct", api_name="/ask")
        job: Any = client.submit(f"Who was number {next(_numbers)}?", "direct", api_name="/ask")
        job.cancel()
    finally:
        client.close()


def tasks() -> int:
    """Tasks of all event loops that are not over."""
    # Not isinstance: some objects of libraries warn when they are asked for their class.
    found = (one for one in gc.get_objects() if issubclass(type(one), asyncio.Task))
    return sum(not one.done() for one in found)


def counted(space: Space) -> dict[str, int]:
    """What could grow, once what was asked last is over."""
    engine, page = space.engine, space.page
    engine.call(until_idle(space))
    gc.collect()
    process = psutil.Process()
    return {
        "memory": process.memory_info().rss,
        "threads": process.num_threads(),
        "files": len(process.open_files()),
        "sockets": len(process.net_connections()),
        "tasks": tasks(),
        "background": len(engine.service._background),
        "queue": len(space.runs._admission._queue) + len(space.runs._admission._running),
        "models": len(engine.service.pool._slots),
        "drawings": len(space.visits.frames.drawing._kept),
        "rates": len(space.runs._rates),
        "visits": len(space.visits._visits),
        "sessions": len(page.state_holder.session_data),
        "gradio events": len(page._queue.event_analytics),
        "gradio waiting": len(page._queue.pending_event_ids_session),
    }


async def until_idle(space: Space) -> None:
    """Wait until no run goes on."""
    async with asyncio.timeout(60):
        while space.engine.service._live:  # noqa: ASYNC110 - it lives in another thread
            await asyncio.sleep(0.05)
        # Connections of pages that were closed are noticed to be, and what hangs on them ends.
        await asyncio.sleep(2.0)


@pytest.mark.verify
@pytest.mark.alone
def test_an_hour_of_mixed_use_leaves_nothing_behind(space: tuple[Space, str]):
    served, url = space
    found: list[dict[str, int]] = []
    with ThreadPoolExecutor(1) as elsewhere:
        for _ in range(WARM_UP + ROUNDS):
            elsewhere.submit(asyncio.run, round_of(url)).result()
            elsewhere.submit(program, url).result()
            found.append(counted(served))
    for name in found[0]:
        print(f"{name:>15}", *(one[name] // (2**20 if name == "memory" else 1) for one in found))
    # Threads of pools come and go from round to round. What leaks is more in each of the last
    # rounds than it ever was in the first ones.
    first = {name: max(one[name] for one in found[WARM_UP - 1 : WARM_UP + 2]) for name in found[0]}
    last = {name: min(one[name] for one in found[-3:]) for name in found[0]}
    assert last["memory"] - first["memory"] < MOST_MEMORY
    assert last["sessions"] <= SESSIONS
    assert last["gradio events"] <= 100
    assert last["drawings"] <= 64
    assert last["queue"] == last["rates"] == 0
    # Two of each round's program: nobody is told when a program is gone.
    assert last["gradio waiting"] <= 2 * (WARM_UP + ROUNDS) + 2
    for name in ("threads", "files", "sockets", "tasks", "background", "models", "visits"):
        assert last[name] <= first[name] + 4, name
