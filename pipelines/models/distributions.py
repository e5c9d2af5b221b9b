"""Entropy and mass of a token distribution, whole or cut to its most probable part."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log


def truncated_entropy(logprobs: Sequence[float]) -> tuple[float, float]:
    """Entropy (nats) and tail mass of a distribution of which only `logprobs` are known.

    H = -sum_i p_i ln p_i - t ln t, with t = 1 - sum_i p_i taken as a single outcome. Merging
    outcomes can only lower entropy, so this is a lower bound of the entropy over the whole
    vocabulary, and equal to it when the tail is empty or one token.
    """
    masses = [exp(value) for value in logprobs]
    tail = max(0.0, 1.0 - sum(masses))
    entropy = -sum(mass * value for mass, value in zip(masses, logprobs, strict=True) if mass > 0)
    if tail > 0:
        entropy -= tail * log(tail)
    return max(0.0, entropy), tail
