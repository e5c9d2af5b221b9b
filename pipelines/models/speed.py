"""How fast a model of the catalogue will probably write on this machine: a rough estimate.

To write a token, a processor reads all weights once, and mostly waits for them. So the time for a
token grows with the size of the weights: parameters times bytes of each. What one model was
measured to read in a second tells about another.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from pipelines.concurrency import usable_cores
from pipelines.files import write_whole
from pipelines.models.base import Delta, GenerationRequest, Model
from pipelines.models.catalogue import CatalogueEntry
from pipelines.types import Message

_FILE = "speed.json"
_QUESTION = "Tell me about the history of London in detail."
_TOKENS = 48
_FEWEST = 12
"""Tokens; of fewer no speed is measured."""

_SHORTEST = 0.05
"""Seconds; what takes less was not computed by a model."""


async def measure(model: Model, size: int) -> float | None:
    """Return bytes of weights read per second while `model`, whose weights have `size`
    bytes, writes.

    Takes seconds, in which the model does nothing else. None where it wrote too little to tell.
    """
    times: list[float] = []

    def watch(delta: Delta) -> None:
        times.append(time.perf_counter())

    request = GenerationRequest(
        messages=(Message(role="user", content=_QUESTION),),
        max_tokens=_TOKENS,
        # Alone: what shares its batches makes it slower.
        reproducible=True,
    )
    await model.generate(request, watch)
    if len(times) < _FEWEST or times[-1] - times[0] < _SHORTEST:
        return None
    # The first token waits for the question to be read.
    return size * (len(times) - 1) / (times[-1] - times[0])


def tokens_per_second(entry: CatalogueEntry, bytes_per_second: float) -> float:
    """Return how many tokens of one text the model will probably write in a second."""
    return bytes_per_second / entry.size


def kept_speed(models: Path) -> float | None:
    """Return what was measured on this machine before; None where nothing was."""
    try:
        kept = json.loads((models / _FILE).read_text(encoding="utf-8"))
        return float(kept["bytes_per_second"]) if kept["cores"] == usable_cores() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_speed(models: Path, bytes_per_second: float) -> None:
    """Remember what was measured, with the number of usable processor cores it was measured on."""
    models.mkdir(parents=True, exist_ok=True)
    kept = {"bytes_per_second": bytes_per_second, "cores": usable_cores()}
    write_whole(models / _FILE, json.dumps(kept))
