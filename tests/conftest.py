"""What tests of every part may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipelines.models.embedded import EmbeddedModel


@pytest.fixture(scope="session")
def embedded_model() -> EmbeddedModel:
    """The embedded model, really loaded; its server ends with the process."""
    from pipelines.models.embedded import EmbeddedModel

    return EmbeddedModel()
