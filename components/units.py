"""What a heatmap colours: pieces of text that can be shown, each with its tokens' values.

A byte-level token may hold part of a character. Tokens that share a character are merged into one
unit, because a part of a character cannot be drawn. A unit's probability is the product of its
tokens' probabilities, so it is never above the least of them; its entropy is the largest.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Literal

from pipelines.types import Token

__all__ = ["ENTROPY_EDGES", "PROBABILITY_EDGES", "Measure", "Unit", "heat_level", "text_units"]

Measure = Literal["probability", "entropy"]

PROBABILITY_EDGES = (0.95, 0.8, 0.6, 0.4, 0.2, 0.05)
"""Levels 1 to 6 begin below these probabilities; 0.6 is the usual threshold for an entity."""

ENTROPY_EDGES = (0.1, 0.5, 1.0, 1.5, 2.5, 4.0)
"""Levels 1 to 6 begin at these entropies in nats. Level 6 is open-ended: 4 nats are as uncertain
as a fair choice among 55 tokens, and more is shown no darker."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The characters [start, end) of a text and the tokens they came from, in order."""

    start: int
    end: int
    tokens: tuple[Token, ...] = field(default=())

    @property
    def probability(self) -> float | None:
        """Product of the tokens' probabilities; None without tokens or when one is unknown."""
        logs = [token.logprob for token in self.tokens if token.logprob is not None]
        return exp(sum(logs)) if logs and len(logs) == len(self.tokens) else None

    @property
    def entropy(self) -> float | None:
        """Largest entropy of the tokens in nats; None when none is known."""
        return max((t.entropy for t in self.tokens if t.entropy is not None), default=None)

    def value(self, measure: Measure) -> float | None:
        """The unit's probability or entropy."""
        return self.probability if measure == "probability" else self.entropy


def heat_level(measure: Measure, value: float | None) -> int | None:
    """Step of the heat scale, 0 (sure) to 6 (improbable, uncertain); None without a value."""
    if value is None:
        return None
    if measure == "probability":
        return sum(value < edge for edge in PROBABILITY_EDGES)
    return sum(value >= edge for edge in ENTROPY_EDGES)


def text_units(length: int, tokens: Sequence[Token], cuts: Iterable[int] = ()) -> list[Unit]:
    """Units that cover [0, length) without gap or overlap.

    Tokens may overlap and need not reach every character; what they leave becomes units without
    tokens, which are also divided at `cuts`. Tokens without characters are left out.
    """
    merged: list[tuple[int, int, list[Token]]] = []
    for token in sorted(tokens, key=lambda token: token.start):
        start, end = max(0, token.start), min(length, token.end)
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            first, last, members = merged[-1]
            merged[-1] = (first, max(last, end), [*members, token])
        else:
            merged.append((start, end, [token]))

    edges = sorted(cuts)
    found: list[Unit] = []
    position = 0
    for start, end, members in merged:
        found += _bare(position, start, edges)
        found.append(Unit(start, end, tuple(members)))
        position = end
    return [*found, *_bare(position, length, edges)]


def _bare(start: int, end: int, edges: list[int]) -> list[Unit]:
    inside = edges[bisect_left(edges, start + 1) : bisect_left(edges, end)]
    stops = [start, *dict.fromkeys(inside), end]
    return [Unit(a, b) for a, b in itertools.pairwise(stops) if a < b]
