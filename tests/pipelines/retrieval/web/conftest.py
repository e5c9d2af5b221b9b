"""The service that the searches are pointed at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pipelines.models.wire import Wire
from tests.pipelines.retrieval.web.wire import Naps, serve


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A service whose every answer the test decides."""
    with serve() as running:
        yield running


@pytest.fixture
def naps() -> Naps:
    return Naps()
