"""The walkthroughs of the page: played once, served as a file, and found by their address."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.public import walkthrough
from app.public.walkthrough import Walkthroughs
from pipelines.engine.libraries import Libraries
from pipelines.engine.thread import Engine
from pipelines.errors import NotFoundError
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


@pytest.mark.verify
async def test_its_address_is_that_of_a_run(found: Walkthroughs):
    watched = await found.open("walkthrough-1-en-curie")
    assert watched is not None
    assert watched.view.status == "finished"
    assert watched.trace.terminal is not None
    assert await found.open("sample-en-001") is None
    with pytest.raises(NotFoundError):
        await found.open("walkthrough-none")
