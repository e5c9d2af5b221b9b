"""What tests of the engine share."""

import asyncio
from pathlib import Path

import pytest

from pipelines.engine.libraries import Libraries


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the index of the sample library, embedded once for all tests."""
    folder = tmp_path_factory.mktemp("index")
    asyncio.run(Libraries(folder).index("sample"))
    return folder
