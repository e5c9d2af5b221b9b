"""What tests of every part may use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipelines.models.embedded import EmbeddedModel

# A text of the interface that is missing is an error in tests, not a fallback.
os.environ["VERISCOPE_STRICT_MESSAGES"] = "1"


@pytest.fixture(scope="session")
def embedded_model() -> EmbeddedModel:
    """The embedded model, really loaded; its server ends with the process."""
    from pipelines.models.embedded import EmbeddedModel

    return EmbeddedModel()
