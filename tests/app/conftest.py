"""One workbench for all browser tests, and browsers that visit it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from app import engine as engines
from pipelines.engine.thread import Engine
from tests.app.serving import (
    Finished,
    Visitor,
    Workbench,
    ask,
    serve_workbench,
    visiting,
    wait_for_end,
)
from tests.browser import require_chromium

Visit = Callable[..., Visitor]


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit puts the script it runs in the place of `__main__`, where other tests that start
    processes of their own would have them look for it in vain."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture(autouse=True)
def strict_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing text is an error."""
    monkeypatch.setenv("VERISCOPE_STRICT_MESSAGES", "1")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine for walkthroughs, each played once for all tests of a module."""
    from tests.app.playing import open_engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERISCOPE_DATA", str(tmp_path_factory.mktemp("played")))
        folder = engines.data_folder()
        engine = open_engine(folder)
        patch.setitem(engines._engines, folder, engine)
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def wall(played: Engine) -> str:
    """A run in which Rowen keeps the answer."""
    from tests.app.playing import WALL, play

    return play(played, WALL)


@pytest.fixture(scope="module")
def everest(played: Engine) -> str:
    """A run in which Rowen looks for evidence."""
    from tests.app.playing import EVEREST, play

    return play(played, EVEREST)


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """The real thing, in a folder of its own."""
    with serve_workbench(Path(tmp_path_factory.mktemp("workbench"))) as served:
        yield served


# One browser a module, not a session: while it is open its event loop counts as running, which
# would keep asynchronous tests of other modules from starting theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, workbench: Workbench) -> Iterator[Visit]:
    """Opens browsers of their own; errors in their pages fail the test."""
    with ExitStack() as stack:

        def new(**options: Any) -> Visitor:
            return stack.enter_context(visiting(browser, workbench, **options))

        yield new


@pytest.fixture
def finished(browser: Browser, workbench: Workbench) -> Finished:
    """A run of all methods on the embedded model, made once."""
    if workbench.finished is None:
        with visiting(browser, workbench) as visitor:
            page = visitor.open()
            ask(page)
            run = wait_for_end(page)
            workbench.finished = Finished(run, visitor.context.storage_state())
    return workbench.finished
