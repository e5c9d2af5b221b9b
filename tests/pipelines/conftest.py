"""What tests of the engine share."""

import pytest

from pipelines.models.judges.trained import TrainedJudge


@pytest.fixture(scope="session")
def trained_judge() -> TrainedJudge:
    """The judge that ships, loaded once for all tests."""
    return TrainedJudge()
