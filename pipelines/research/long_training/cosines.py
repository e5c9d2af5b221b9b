"""Cosines of statements and sentences for a training, which meets the same sentences many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import failure
from pipelines.models.judges.inputs import Near
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.dense import english_embedder


def remembered_cosines(embedder: Embedder | None = None) -> Near:
    """Return cosines by `embedder`, by default the installed one; every vector is kept.

    A vector takes 1.5 kB: a hundred thousand sentences 150 MB.
    """
    known: dict[str, NDArray[np.float32]] = {}
    chosen = embedder or english_embedder()
    if chosen is None:
        raise failure("loading.no_encoder", "judge")

    def near(statement: str, sentences: Sequence[str]) -> list[float]:
        texts = [statement, *sentences]
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, chosen.embed(missing), strict=True))
        asked = known[statement]
        return [float(known[sentence] @ asked) for sentence in sentences]

    return near
