"""The embedded model, loaded once, and the sample library, opened once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.retrieval.indexes import EnglishEmbedder
from pipelines.retrieval.library import LibraryIndex, build_index

SAMPLE_LIBRARY = Path(__file__).resolve().parents[3] / "sample_data" / "library"


@pytest.fixture(scope="session")
def embedder() -> EnglishEmbedder:
    return EnglishEmbedder()


@pytest.fixture(scope="session")
def sample_library(sample_index: Path, embedder: EnglishEmbedder) -> LibraryIndex:
    """The index of the sample library, which is there already."""
    return build_index(SAMPLE_LIBRARY, sample_index / "sample", embedder)
