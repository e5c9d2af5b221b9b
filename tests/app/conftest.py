"""One workbench for all browser tests, and browsers that visit it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from streamlit.components.v2 import manifest_scanner

from pipelines.engine.service import Engine
from tests.app.serving import (
    SCRIPTED,
    Finished,
    Visitor,
    Workbench,
    bring_recording,
    serve_workbench,
    visiting,
)

Visit = Callable[..., Visitor]


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit replaces `__main__` with the script it runs. Processes that later tests start
    could not import that script, so the original is restored."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture(scope="session", autouse=True)
def packages_read_once() -> Iterator[None]:
    """Each page of `AppTest` would look through all installed packages for components anew."""
    with pytest.MonkeyPatch.context() as patch:
        name = "scan_component_manifests"
        patch.setattr(manifest_scanner, name, cache(getattr(manifest_scanner, name)))
        yield


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine for walkthroughs, each played once for all tests of a module."""
    from tests.app.opening import page_engine
    from tests.app.playing import open_engine

    with page_engine(tmp_path_factory.mktemp("played"), open_engine) as engine:
        yield engine


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
    """The workbench on models that answer from scripts, in a folder of its own."""
    with serve_workbench(Path(tmp_path_factory.mktemp("workbench")), SCRIPTED) as served:
        yield served


@pytest.fixture
def visit(browser: Browser, workbench: Workbench) -> Iterator[Visit]:
    """Opens browsers of their own; errors in their pages fail the test."""
    with ExitStack() as stack:

        def new(**options: Any) -> Visitor:
            return stack.enter_context(visiting(browser, workbench, **options))

        yield new


@pytest.fixture(scope="session")
def finished(workbench: Workbench) -> Finished:
    """A run of all methods that the embedded model once made, as one of a browser's own."""
    return bring_recording(workbench)
