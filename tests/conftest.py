"""What tests of every part may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from pipelines.models.embedded import EmbeddedModel

# A text of the interface that is missing is an error in tests, not a fallback.
os.environ["VERISCOPE_STRICT_MESSAGES"] = "1"
ONE_OF_SEVERAL = "PYTEST_XDIST_WORKER" in os.environ
"""Whether other processes run other tests beside this one."""

if ONE_OF_SEVERAL:
    # Threads that wait for each other by spinning take the cores of the other workers.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED = ("browser", "transformers_server", "sample_index")
"""Fixtures that cost much, so that all files whose tests use one go to the same worker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, files stay whole."""
    if not ONE_OF_SEVERAL:
        return
    groups: dict[Path, str] = {}
    for item in items:
        wanted = [name for name in SHARED if name in getattr(item, "fixturenames", ())]
        groups[item.path] = (wanted or [groups.get(item.path, item.nodeid.partition("::")[0])])[0]
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item.path]))


@pytest.fixture(scope="session")
def embedded_model() -> EmbeddedModel:
    """The embedded model, really loaded; its server ends with the process."""
    from pipelines.models.embedded import EmbeddedModel

    return EmbeddedModel()


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
