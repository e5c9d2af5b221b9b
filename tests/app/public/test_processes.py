"""Two processes of the Space over one database: what each says of the other's runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from app.public import api as calls
from app.public.api import Api, checked
from app.public.contract import AskRequest
from app.public.http_api import http_api
from app.public.visitors import ModelCatalog, Runs
from pipelines.engine.library import Libraries
from pipelines.engine.pool import Admission, ModelPool
from pipelines.engine.service import Engine
from tests.scripted.fakes import FakeModel

ASKED = {"question": "Where was Bill Clinton born?", "method": "direct", "wait": 0}


class Process(NamedTuple):
    """One of them, called as its clients call it."""

    api: Api
    http: httpx.AsyncClient
    engine: Engine


@asynccontextmanager
async def opened(folder: Path, model: FakeModel) -> AsyncIterator[Process]:
    engine = Engine(
        folder,
        pool=ModelPool(lambda *_: model),
        libraries=Libraries(folder / "index", find_embedder=lambda: None),
    )
    api = Api(Runs(engine, Admission(1)), ModelCatalog())
    transport = httpx.ASGITransport(http_api(api))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://space") as client:
            yield Process(api, client, engine)
    finally:
        await api.aclose()
        engine.close()


class Both(NamedTuple):
    """`first` carries out `run`, whose model waits; `second` has the same database."""

    first: Process
    second: Process
    run: str
    model: FakeModel

    async def over(self) -> None:
        """Let the run end, and wait for that."""

        async def let_go() -> None:
            self.model.gate.set()

        self.first.engine.call(let_go())
        pending = self.first.api._pending[self.run]
        async for _ in pending.follow():
            pass


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    model = FakeModel("In Hope, Arkansas.")
    model.gate.clear()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(opened(tmp_path, model))
        second = await stack.enter_async_context(opened(tmp_path, model))
        pending = await first.api.ask(checked(AskRequest, ASKED), None)
        async for _ in pending.follow(leave=True):
            if pending.run_id is not None:
                break
        yield Both(first, second, pending.run, model)


async def test_a_run_of_the_other_process_goes_on_and_the_client_is_told_when_to_look_again(
    both: Both, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls, "_LOOK", 0.01)
    found = await both.second.http.get(f"/runs/{both.run}", params={"wait": 0.05})
    assert (found.status_code, found.json()["status"]) == (202, "running")
    assert found.headers["retry-after"]
    assert both.run in found.json()["next"]
    assert (await both.second.api.get(both.run)).next == found.json()["next"]


async def test_who_waits_for_a_run_of_the_other_process_gets_its_result(
    both: Both, monkeypatch: pytest.MonkeyPatch
):
    looks = 0
    get = Api.get

    async def counted(self: Api, run: str) -> object:
        nonlocal looks
        looks += 1
        if looks == 2:
            await both.over()
        return await get(self, run)

    monkeypatch.setattr(calls, "_LOOK", 0.01)
    monkeypatch.setattr(Api, "get", counted)
    found = await both.second.http.get(f"/runs/{both.run}", params={"wait": 50})
    assert (found.status_code, found.json()["status"]) == (200, "finished")
    assert found.json()["next"] == ""
    assert looks >= 2


async def test_only_the_process_that_carries_a_run_out_ends_or_deletes_it(both: Both):
    for send, path in (
        (both.second.http.post, f"/runs/{both.run}/cancel"),
        (both.second.http.delete, f"/runs/{both.run}"),
    ):
        refused = await send(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "elsewhere")
        assert refused.json()["message"]
        assert "the process that started the run" in refused.json()["remedy"]
    assert both.run in both.first.api._pending
    await both.over()
    # What is over belongs to nobody's process.
    ended = await both.second.http.post(f"/runs/{both.run}/cancel")
    assert (ended.status_code, ended.json()["status"]) == (200, "finished")
    assert (await both.second.http.delete(f"/runs/{both.run}")).status_code == 204
    assert (await both.second.http.get(f"/runs/{both.run}")).status_code == 404


async def test_the_process_that_carries_it_out_ends_it(both: Both):
    ended = await both.first.http.post(f"/runs/{both.run}/cancel")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    found = await both.second.http.get(f"/runs/{both.run}")
    assert (found.status_code, found.json()["reason"]) == (200, "stopped")
