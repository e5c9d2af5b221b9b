"""What tests of every part may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from pipelines.models.embedded import EmbeddedModel

# A text of the interface that is missing is an error in tests, not a fallback.
os.environ["VERISCOPE_STRICT_MESSAGES"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:
    # Threads that wait for each other by spinning take the cores of the other workers.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


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
