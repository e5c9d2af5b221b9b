"""What tests of every part may use."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pipelines.models.catalogue import SHARED, models_folder
from tests import network
from tests.drawing import left_out_today, long_first
from tests.scripted.weights import fetch_nothing
from tests.snapshots import Snapshot, snapshot_path, unused_snapshots

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from pipelines.models.llamacpp import EmbeddedModel

# A text of the interface that is missing is an error in tests, not a fallback.
os.environ["VERISCOPE_STRICT_MESSAGES"] = "1"
# Commands tell errors in the language of the terminal.
os.environ["LC_ALL"] = "C.UTF-8"
if "PYTEST_XDIST_WORKER" in os.environ:
    # Threads that wait for each other by spinning take the cores of the other workers.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests have data folders of their own, and the weights of this installation.
os.environ.setdefault(SHARED, str(models_folder().resolve()))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and with them every
    # program that they start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long a test takes says nothing about the code where other programs use the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Collecting tests leaves a million objects that stay, and each collection of garbage would look at
# all of them: none is done until they are there, and later ones leave them out.
gc.disable()

MISTAKES = ("cannot be drawn", "A callback of the page")
"""What pages log of a mistake of ours that they survive; such a mistake fails the test."""

_TESTS = pytest.StashKey[list[pytest.Item]]()
"""Every test of the files that were asked for whole, those too that `-m` or `-k` leaves out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="Write snapshots anew.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole = not any("::" in one for one in config.args)
    config.stash[_TESTS] = list(items) if whole else []
    if config.getoption("update_snapshots"):
        for path in unused_snapshots(config.stash[_TESTS]):
            path.unlink(missing_ok=True)
    if whole and (left_out := set(left_out_today(items))):
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
    items[:] = long_first(items)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


@pytest.fixture
def every_test(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests of the files that this run looks at."""
    return request.config.stash[_TESTS]


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    """Compares, at the end of the test, what it drew with what it drew before."""
    update = bool(request.config.getoption("update_snapshots"))
    taken = Snapshot(snapshot_path(request.node), update=update)
    failed = request.session.testsfailed
    yield taken
    # A test that failed before may not have drawn everything.
    if request.session.testsfailed == failed:
        taken.compare()


@pytest.fixture(autouse=True)
def no_mistakes(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Pages that go on without a broken view do not hide it from tests.

    A test of that clears the log.
    """
    yield
    found = [one.getMessage() for one in caplog.get_records("call")]
    assert not [one for one in found if any(sign in one for sign in MISTAKES)]


_OUTSIDE = network.begin()


@pytest.fixture(autouse=True)
def nothing_outside(request: pytest.FixtureRequest) -> Iterator[None]:
    """Neither the test nor what it started reached, or looked up, anything outside this machine.

    Only a test that installs packages may ask for those.
    """
    yield
    noted = network.noted(_OUTSIDE)
    assert not noted or request.node.get_closest_marker("installs"), "\n".join(noted)


@pytest.fixture(scope="session", autouse=True)
def made_at_once() -> Iterator[None]:
    """Databases begin with the newest schema; tests of migrations go through them."""
    from tests.schema import made_at_once

    with made_at_once():
        yield


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account may look into: the usual ones are for their owner alone."""
    with TemporaryDirectory(dir="/tmp", prefix="open-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def embedded_model() -> EmbeddedModel:
    """The embedded model, really loaded; its server ends with the process."""
    from pipelines.models.llamacpp import EmbeddedModel

    return EmbeddedModel()


@pytest.fixture
def nothing_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights are there but those that are installed with the packages."""
    fetch_nothing(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the index of the sample library, embedded once for all tests.

    Those who build it at the same time wait for each other, and the later ones find it there.
    """
    from pipelines.engine.library import Libraries

    base = tmp_path_factory.getbasetemp()
    # Each worker has a folder of its own in the one of them all.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sample_index"
    asyncio.run(Libraries(folder).index("sample"))
    return folder


# One browser a module, not a session: while it is open its event loop counts as running, which
# would keep asynchronous tests of other modules from starting theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser import PATIENCE, require_chromium

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()
