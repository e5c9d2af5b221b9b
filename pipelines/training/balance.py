"""Takes pairs out until neither length nor common words tell their labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random

from pipelines.training.examples import Example
from pipelines.training.shortcuts import SHORTCUTS

__all__ = ["balanced"]

_BINS = 20
_LEAST = 0.15
"""Of a kind, at least this share of a bin stays, so that no sort of pair is lost altogether."""


def balanced(examples: Sequence[Example], random: Random) -> list[Example]:
    """Pairs of which as many are supported as not, wherever they lie on each shortcut's scale."""
    kept = list(examples)
    for name in ("statement length", "word overlap"):
        kept = _evened(kept, SHORTCUTS[name], random)
    return kept


def _evened(
    examples: Sequence[Example], number: Callable[[Example], float], random: Random
) -> list[Example]:
    """Cut into bins of equally many pairs; in each the more frequent side is thinned out."""
    values = [number(example) for example in examples]
    ranked = sorted(values)
    edges = sorted({ranked[len(ranked) * n // _BINS] for n in range(1, _BINS)})
    bins: dict[int, tuple[list[Example], list[Example]]] = defaultdict(lambda: ([], []))
    for example, value in zip(examples, values, strict=True):
        place = sum(value > edge for edge in edges)
        bins[place][example.label != "supported"].append(example)
    kept: list[Example] = []
    for sides in bins.values():
        fewer = min(map(len, sides))
        for side in sides:
            most = max(fewer, round(_LEAST * len(side)))
            kept += side if len(side) <= most else random.sample(side, most)
    random.shuffle(kept)
    return kept
