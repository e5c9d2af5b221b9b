"""Scores as they are stored: in blocks of tasks, with the version of what computed them.

They are derived from answers and can be computed anew at any time; stored, those of ten thousand
items are read in about a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipelines.evaluation.results.scores import ItemScore, ItemSummary
from pipelines.paths import ASSETS

BLOCK = 500
"""Tasks whose scores are stored together."""

OFFERS, OVERVIEW = -1, -2
"""Numbers of blocks that hold something else: what the items offer, and what results show first."""

_PIPELINES = Path(__file__).resolve().parents[1]
_DECIDING = ("evaluation", "methods", "samples", "text")
_LIBRARIES = ("numpy", "scikit-learn", "scipy", "statsmodels", "jieba", "rouge-score", "sacrebleu")


def scoring_version(metrics: tuple[str, ...]) -> str:
    """Return what everything comes to that decides the scores by `metrics`: 64
    hexadecimal digits.
    """
    return sha256(repr((metrics, _code_version())).encode()).hexdigest()


@cache
def _code_version() -> str:
    """Return what the code and the libraries come to that compute scores."""
    digest = sha256(repr([version(name) for name in _LIBRARIES]).encode())
    rooms = [*(_PIPELINES / name for name in _DECIDING), ASSETS / "wording", ASSETS / "papers"]
    for file in sorted(file for room in rooms for file in room.rglob("*.[pt]*")):
        if file.suffix in (".py", ".toml"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def blocks_of(
    numbers: Iterable[int],
    scores: Mapping[int, tuple[ItemScore, ...]],
    items: Mapping[str, ItemSummary],
) -> dict[int, dict[str, Any]]:
    """Return the blocks that hold the tasks with these `numbers`, whole, as JSON data."""
    blocks = sorted({number // BLOCK for number in numbers})
    return {
        block: {
            str(number): [_written(score, items[score.item]) for score in scores[number]]
            for number in range(block * BLOCK, (block + 1) * BLOCK)
            if number in scores
        }
        for block in blocks
    }


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: many objects without cycles would be looked at for nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_block(
    body: Mapping[str, Any],
    scores: MutableMapping[int, tuple[ItemScore, ...]],
    items: MutableMapping[str, ItemSummary],
) -> None:
    """Add what `blocks_of` gave for one block."""
    for number, written in body.items():
        found: list[ItemScore] = []
        for score, summary in written:
            # They were checked before they were stored.
            made = ItemScore.model_construct(None, **{**score, "flags": tuple(score["flags"])})
            found.append(made)
            if made.item not in items:
                items[made.item] = ItemSummary.model_construct(
                    None, **{**summary, "tags": tuple(summary["tags"])}
                )
        scores[int(number)] = tuple(found)


def _written(score: ItemScore, summary: ItemSummary) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(score), dict(summary)
