"""The addresses beside the pages: a run's report and record, for the browser it belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import page
from app.routes import routes
from app.session import COOKIE
from pipelines.engine.service import Engine
from pipelines.store import new_owner
from tests.app.opening import page_engine
from tests.app.test_runs_screen import run_of

ME = new_owner()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path) as engine:
        yield engine


def client(owner: str | None = ME, base: str = "") -> TestClient:
    cookies = {COOKIE: owner} if owner else {}
    return TestClient(Starlette(routes=list(routes(base))), cookies=cookies)


def test_a_report_is_shown_in_the_language_that_is_asked_for(opened: Engine):
    run = run_of(opened, "Where was Ada born?", owner=ME)
    found = client().get(f"/report/{run}.html?lang=zh")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert found.text.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert "Where was Ada born?" in found.text
    assert '<html lang="en">' in client().get(f"/report/{run}.html?lang=xx").text
    # Its script reaches nothing of the workbench's own.
    rules = found.headers["content-security-policy"]
    assert rules.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in rules


def test_a_record_is_saved(opened: Engine):
    run = run_of(opened, owner=ME)
    found = client().get(f"/record/{run}.jsonl")
    assert (
        found.headers["content-disposition"] == f'attachment; filename="veriscope-{run[:8]}.jsonl"'
    )
    assert found.text == page._exported(run, ME)
    assert json.loads(found.text.splitlines()[0])["format"] == "veriscope-run"


@pytest.mark.parametrize("kind", ["report/{}.html", "record/{}.jsonl"])
@pytest.mark.parametrize("whose", ["somebody else's", "without a cookie", "unknown", "odd"])
def test_who_may_not_see_a_run_learns_nothing_of_it(opened: Engine, kind: str, whose: str):
    run = run_of(opened, "A secret question?", owner=ME)
    owner = {"somebody else's": new_owner(), "without a cookie": None}.get(whose, ME)
    asked = {"unknown": "0" * 32, "odd": "..%2f..%2fetc"}.get(whose, run)
    found = client(owner).get("/" + kind.format(asked))
    assert found.status_code == 404
    assert "A secret question?" not in found.text
    if whose != "odd":
        assert 'role="alert"' in found.text


def test_below_a_path_of_the_server(opened: Engine):
    run = run_of(opened, owner=ME)
    assert client(base="/tools/veriscope/").get(f"/tools/veriscope/report/{run}.html").is_success
