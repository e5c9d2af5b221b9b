"""Both front ends on a real PostgreSQL server: what is asked is stored there, and in no file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from gradio_client import Client
from playwright.sync_api import Browser, expect

from app.session import COOKIE
from pipelines.store import RunStore
from tests.app.public.starting import started
from tests.app.serving import (
    QUESTION,
    ask,
    go_to,
    leave_out,
    serve_workbench,
    visiting,
    wait_for_end,
)
from tests.postgresql import new_database, private_server

pytestmark = pytest.mark.verify


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with private_server() as server:
        yield server.url


@pytest.fixture
def database(server: str) -> str:
    """The URL of an empty database."""
    return new_database(server)


def test_the_workbench_keeps_its_runs_there(
    database: str, sample_index: Path, tmp_path: Path, browser: Browser
):
    (tmp_path / "index").symlink_to(sample_index)
    with (
        serve_workbench(tmp_path, VERISCOPE_DATABASE_URL=database) as workbench,
        visiting(browser, workbench) as visitor,
    ):
        page = visitor.open()
        leave_out(page, "rowen", "drad", "ever", "haarag", "slm")
        ask(page)
        run = wait_for_end(page)
        go_to(page, "Runs")
        expect(page.get_by_text(QUESTION).filter(visible=True).first).to_be_visible()
        known = {one.get("name"): one.get("value", "") for one in visitor.context.cookies()}
    with closing(RunStore(database)) as store:
        (stored,) = store.list(known[COOKIE])
        assert (stored.id, stored.status) == (run, "finished")
    assert not list(tmp_path.glob("veriscope.db*"))


def test_the_space_keeps_its_runs_there(database: str, tmp_path: Path):
    with started(tmp_path, VERISCOPE_DATABASE_URL=database) as space:
        client = Client(space.url, verbose=False)
        found = client.predict(QUESTION, "direct", api_name="/ask")
        assert found["status"] == "finished"
    with closing(RunStore(database)) as store:
        # The id of a program's run is the name of its owner.
        (stored,) = store.list(found["run"])
        assert (stored.question, stored.status) == (QUESTION, "finished")
    assert not list(tmp_path.glob("veriscope.db*"))
