"""The walkthroughs of the page: played once, served as a file, and found by their address."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.public import walkthrough
from app.public.walkthrough import Walkthroughs
from pipelines.engine.library import Libraries
from pipelines.engine.service import Engine
from pipelines.errors import NotFoundError, UnreachableError
from pipelines.samples.walkthroughs import walkthroughs

if TYPE_CHECKING:
    from app.engine import Watched


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walkthroughs]:
    folder = tmp_path_factory.mktemp("data")
    libraries = Libraries(folder / "index", find_embedder=lambda: None)
    engine = Engine(folder, libraries=libraries)
    yield Walkthroughs(engine)
    engine.close()


@pytest.fixture(scope="module")
def client(found: Walkthroughs) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=[found.route])) as client:
        yield client


@pytest.mark.verify
def test_it_is_one_file_for_everybody_that_a_browser_may_keep(client: TestClient):
    reply = client.get("/walkthrough/en")
    assert reply.headers["content-encoding"] == "gzip"
    assert "max-age" in reply.headers["cache-control"]
    file = reply.json()
    assert file["lang"] == "en"
    assert len(file["frames"]) > 20
    assert "Marie Curie" in "".join(file["pieces"])
    assert len(gzip.compress(json.dumps(file).encode())) < 200_000
    again = client.get("/walkthrough/en", headers={"If-None-Match": reply.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    plain = client.get("/walkthrough/en", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == file


@pytest.mark.parametrize("language", ["fr", "", "../en"])
def test_another_language_has_none(client: TestClient, language: str):
    assert client.get(f"/walkthrough/{language}").status_code == 404


async def test_all_who_wait_get_the_one_that_is_computed(
    found: Walkthroughs, monkeypatch: pytest.MonkeyPatch
):
    computed: list[str] = []
    played = walkthrough.Played(cast("Watched", None), b"", "")

    def count(sample: walkthrough.Walkthrough, *_: object) -> walkthrough.Played:
        computed.append(sample.id)
        return played

    monkeypatch.setattr(walkthrough, "_computed", count)
    fresh = Walkthroughs(found._engine)
    many = [asyncio.create_task(fresh.get("en")) for _ in range(20)]
    await asyncio.sleep(0)
    # Who leaves takes nothing from the others.
    many.pop(0).cancel()
    assert all(one is played for one in await asyncio.gather(*many))
    assert computed == [walkthroughs()[0].id]


def test_pictures_that_nobody_waits_for_give_way_to_runs(
    found: Walkthroughs, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(walkthrough, "_GIVES_WAY", 0.0)
    working = [True, True, False]
    at_work = property(lambda _: working.pop(0))
    monkeypatch.setattr(type(found._engine.service), "at_work", at_work)
    fresh, closed = Walkthroughs(found._engine), Walkthroughs(found._engine)
    assert fresh._goes_on(None)
    assert working == []
    fresh.held = 1
    monkeypatch.setattr(walkthrough, "_GIVES_WAY", 60.0)
    looked = iter([False, True])
    monkeypatch.setattr(fresh._closing, "wait", lambda _: next(looked))
    monkeypatch.setattr(type(found._engine.service), "at_work", False)
    assert fresh._goes_on(None)
    assert next(looked, None) is None
    monkeypatch.setattr(type(found._engine.service), "at_work", True)
    fresh._wanted.set()
    assert fresh._goes_on(None)
    closed.close()
    assert not closed._goes_on(None)


@pytest.mark.verify
async def test_its_address_is_that_of_a_run(found: Walkthroughs):
    watched = await found.open("walkthrough-1-en-curie")
    assert watched is not None
    assert watched.view.status == "finished"
    assert watched.trace.terminal is not None
    assert await found.open("sample-en-001") is None
    with pytest.raises(NotFoundError):
        await found.open("walkthrough-none")


class Broken:
    """What fails as often as it is tried, while it `fails`; and a clock."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.fails = {"en"}
        self.tried: list[str] = []
        self.now = 0.0

    def __call__(self, sample: walkthrough.Walkthrough, *_: object) -> walkthrough.Played:
        self.tried.append(sample.language)
        if sample.language in self.fails:
            raise self.error
        return walkthrough.Played(cast("Watched", None), gzip.compress(b"{}"), '"mark"')


ERRORS = [
    UnreachableError("No index.", remedy="Wait."),
    ZeroDivisionError("a secret of the server"),
]


@pytest.mark.parametrize("error", ERRORS)
async def test_what_failed_is_not_tried_again_at_every_view(
    found: Walkthroughs, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    broken = Broken(error)
    monkeypatch.setattr(walkthrough, "_computed", broken)
    fresh = Walkthroughs(found._engine, lambda: broken.now)
    transport = httpx.ASGITransport(Starlette(routes=[fresh.route]))
    async with httpx.AsyncClient(transport=transport, base_url="http://space") as client:
        for _ in range(5):
            reply = await client.get("/walkthrough/en")
            # The browser does not ask again for what is not there.
            assert (reply.status_code, reply.content) == (404, b"")
        assert broken.tried == ["en"]
        broken.now, broken.fails = 299.0, set()
        assert (await client.get("/walkthrough/en")).status_code == 404
        broken.now = 300.0
        assert (await client.get("/walkthrough/en")).status_code == 200
    assert broken.tried == ["en", "en"]


@pytest.mark.parametrize("error", ERRORS)
async def test_one_language_that_fails_is_logged_once_and_the_other_is_prepared(
    found: Walkthroughs,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
):
    broken = Broken(error)
    monkeypatch.setattr(walkthrough, "_computed", broken)
    fresh = Walkthroughs(found._engine)
    await fresh.prepare()
    assert sorted(broken.tried) == ["en", "zh"]
    assert "zh" in fresh._played
    (line,) = [record for record in caplog.records if record.name == walkthrough.__name__]
    assert "walkthrough" in line.message
    # Of what nobody expected, where it happened.
    assert (line.exc_info is not None) == isinstance(error, ZeroDivisionError)
