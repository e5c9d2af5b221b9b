"""What tests of the engine share."""

import asyncio
from pathlib import Path

import pytest

from pipelines.engine.libraries import Libraries
from pipelines.models.judges.trained import TrainedJudge


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the index of the sample library, embedded once for all tests."""
    folder = tmp_path_factory.mktemp("index")
    asyncio.run(Libraries(folder).index("sample"))
    return folder


@pytest.fixture(scope="session")
def trained_judge() -> TrainedJudge:
    """The judge that ships, loaded once for all tests."""
    return TrainedJudge()
