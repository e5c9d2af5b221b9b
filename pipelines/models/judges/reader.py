"""Reads statements against evidence with the trained network: windows, batches, one verdict."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.models.base import Claim
from pipelines.models.judges.base import Reading
from pipelines.models.judges.inputs import Pair, load_tokenizer, pairs_for

if TYPE_CHECKING:
    from pipelines.models.judges.network import JudgeNetwork

__all__ = ["JudgeReader", "settle"]

MOST_WINDOWS = 6
"""Windows of the evidence that are read: those that share most words with the statement."""

_BATCH = 16


Scores = tuple[float, ...]
"""The network's output for one window: a number a label, in the order of `Reading`."""


def settle(windows: Sequence[Scores], temperature: float = 1.0) -> Reading:
    """One verdict of several windows: the clearest support and the clearest contradiction count.

    What supports in one place and contradicts in another is shared between the two in proportion.
    `temperature` divides the scores before the softmax.
    """
    if not windows:
        return Reading(0.0, 0.0, 1.0)
    shares = [_softmax(scores, temperature) for scores in windows]
    supported = max(one[0] for one in shares)
    contradicted = max(one[1] for one in shares)
    if (both := supported + contradicted) > 1:
        supported, contradicted = supported / both, contradicted / both
    return Reading(supported, contradicted, max(0.0, 1 - supported - contradicted))


def _softmax(scores: Scores, temperature: float) -> list[float]:
    highest = max(scores)
    powers = [math.exp((score - highest) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]


class JudgeReader:
    """The network with its tokenizer. `temperature` divides its scores before the softmax.

    Safe to call from several threads, one of which reads at a time.
    """

    def __init__(self, network: JudgeNetwork, encoder: Path, temperature: float = 1.0) -> None:
        self._network = network.eval()
        self._tokenizer = load_tokenizer(encoder)
        self._temperature = temperature
        self._lock = threading.Lock()

    def read(self, claims: Sequence[Claim]) -> list[Reading]:
        """A verdict for every claim; no evidence settles nothing."""
        return [settle(windows, self._temperature) for windows in self.scores(claims)]

    def scores(self, claims: Sequence[Claim]) -> list[list[Scores]]:
        """The network's scores for every window of every claim."""
        pairs: list[Pair] = []
        owners: list[int] = []
        for owner, claim in enumerate(claims):
            for pair in self._pairs(claim):
                pairs.append(pair)
                owners.append(owner)
        found: list[list[Scores]] = [[] for _ in claims]
        for owner, scores in zip(owners, self._scored(pairs), strict=True):
            found[owner].append(scores)
        return found

    def _pairs(self, claim: Claim) -> list[Pair]:
        return pairs_for(
            self._tokenizer, claim.question, claim.statement, claim.evidence, MOST_WINDOWS
        )

    def _scored(self, pairs: Sequence[Pair]) -> list[Scores]:
        import torch

        from pipelines.models.judges.network import Batch

        # Pairs of like length side by side: less padding is read.
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
        found: dict[int, Scores] = {}
        with self._lock, torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                places = order[start : start + _BATCH]
                rows = self._network(Batch([pairs[at] for at in places])).double().tolist()
                found.update((at, tuple(row)) for at, row in zip(places, rows, strict=True))
        return [found[at] for at in range(len(pairs))]
