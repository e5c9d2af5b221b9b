"""A machine that fetched no weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.models.catalogue import SHARED


def fetch_nothing(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Leave no weights but those that are installed with the packages; `folder` is of the test."""
    patch.delenv(SHARED, raising=False)
    patch.setenv("VERISCOPE_DATA", str(folder / "nothing fetched"))
