"""What a training makes smaller: over claims, each of which may have been read in several windows.

The verdict on a claim is learnt as it is given: the window that supports most decides (`combined`
in `pipelines/models/judges/trained.py`), and a word is as doubtful as in the window that bears it
best. So a window that has nothing to do with a claim need not pretend to contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pipelines.models.judges.network import NetworkOutput

UNKNOWN = -1
"""Says of a word piece that nobody knows whether the evidence supports it."""

_FAR = 1e4


class Said(NamedTuple):
    """What the network makes of a batch of claims.

    `logs`: logarithms of the probabilities of the three labels, shape [claims, 3]. `doubts`: of the
    pieces of question and statement before the sigmoid, shape [claims, longest].
    """

    logs: Tensor
    doubts: Tensor


def of_claims(output: NetworkOutput, windows: Sequence[int]) -> Said:
    """Return the output for windows as that for claims, of which each has so many `windows`."""
    device, most = output.labels.device, max(windows)
    places = torch.zeros(len(windows), most, dtype=torch.long, device=device)
    there = torch.zeros(len(windows), most, dtype=torch.bool, device=device)
    start = 0
    for row, count in enumerate(windows):
        places[row, :count] = torch.arange(start, start + count, device=device)
        there[row, :count] = True
        start += count
    logs = torch.log_softmax(output.labels.float(), dim=-1)[places]
    supported = logs[..., 0].masked_fill(~there, -_FAR)
    rest = torch.logsumexp(logs[..., 1:], dim=-1)
    best = supported.argmax(dim=1, keepdim=True)
    # How the rest is shared between contradiction and silence is up to the first window.
    share = torch.log_softmax(logs[:, 0, 1:], dim=-1)
    combined = torch.cat([supported.gather(1, best), rest.gather(1, best) + share], dim=-1)
    doubts = output.doubts.float()[places].masked_fill(~there.unsqueeze(-1), _FAR).amin(dim=1)
    return Said(combined, doubts)


def label_loss(logs: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Return cross-entropy; where several labels are right, of their probabilities' sum.

    With `smoothing` in [0, 1), so much of it goes to all labels alike.
    """
    right = torch.logsumexp(logs.masked_fill(target == 0, -math.inf), dim=-1)
    return -((1 - smoothing) * right + smoothing * logs.mean(dim=-1)).mean()


def margin_loss(logs: Tensor, target: Tensor, overlap: Tensor, margin: float) -> Tensor:
    """Return how far the judge falls short of `margin` where common words mislead.

    Of every supported and unsupported claim of a batch of which the unsupported one has as large a
    share of common words or a larger one, the log-odds of support must differ by `margin`.
    """
    odds = logs[:, 0] - torch.logsumexp(logs[:, 1:], dim=-1)
    yes = target[:, 0] > 0
    misled = yes[:, None] & ~yes[None, :] & (overlap[:, None] <= overlap[None, :])
    if not bool(misled.any()):
        return logs.sum() * 0
    return torch.relu(margin - (odds[:, None] - odds[None, :]))[misled].mean()


def word_loss(doubts: Tensor, doubted: Sequence[Sequence[int]], weight: float) -> Tensor:
    """Return binary cross-entropy over the pieces of which something is known.

    `doubted` is what `EncodedClaim` says. Wrong words are few among many right ones, so each has
    `weight`.
    """
    rows = torch.full(doubts.shape, UNKNOWN, dtype=torch.long)
    for row, one in zip(rows, doubted, strict=True):
        row[: len(one)] = torch.tensor(one, dtype=torch.long)
    rows = rows.to(doubts.device)
    known = rows != UNKNOWN
    if not bool(known.any()):
        return doubts.sum() * 0
    return torch.nn.functional.binary_cross_entropy_with_logits(
        doubts[known], rows[known].float(), pos_weight=torch.tensor(weight, device=doubts.device)
    )
