"""The service that the searches are pointed at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scripted.web_wire import Naps, serve
from tests.scripted.wire import Wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A service whose every answer the test decides."""
    with serve() as running:
        yield running


@pytest.fixture
def naps() -> Naps:
    return Naps()
