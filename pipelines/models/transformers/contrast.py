"""DoLa: the layers of one model contrasted while it writes.

Source: Chuang et al., ICLR 2024 ("DoLa: Decoding by Contrasting Layers Improves Factuality"),
section 2. What later layers add to earlier ones is taken for knowledge. Of the candidate layers the
one whose distribution is farthest from the last one's (Jensen-Shannon) is contrasted with it, anew
for each token; tokens that the last layer finds far less probable than its best one are left out.
transformers took this decoding out of its own code; here any model of this machine decodes so.
"""

from __future__ import annotations

from math import log
from typing import Literal

import torch

Layers = Literal["low", "high"]
"""Which half of the layers is contrasted: low for long answers, high for short ones of fact."""

LEAST_SHARE = 0.1
"""Of the best token's probability, what a token needs to be kept (paper: alpha = 0.1)."""

_LEFT_OUT = -1000.0
"""The logit of a token that is left out: finite, so that its probability is a number."""


def candidate_layers(count: int, layers: Layers, *, tied: bool) -> list[int]:
    """Return the hidden states, of `count` layers, that may be contrasted with the last: every
    second one of a half (paper: of at most 20 layers). 0 is the embedding, which is left out where
    the output layer is the same table (`tied`), for it would only repeat the token before.
    """
    middle = count // 2
    if layers == "high":
        return [*range(max(middle, count - 20), count, 2)]
    return [*range(min(2, middle) if tied else 0, min(middle, 20), 2)] or [middle]


def contrasted(mature: torch.Tensor, premature: torch.Tensor) -> torch.Tensor:
    """Return logits of the contrast, [..., vocabulary], from those of the last layer and of the
    candidates, [candidates, ..., vocabulary], all float32.
    """
    last, early = mature.log_softmax(dim=-1), premature.log_softmax(dim=-1)
    mixed = ((last.exp() + early.exp()) / 2).log()
    # Twice their Jensen-Shannon divergence; a probability of 0 adds nothing.
    apart = last.exp() * (last - mixed) + early.exp() * (early - mixed)
    farthest = apart.nan_to_num().sum(dim=-1).argmax(dim=0)
    index = farthest[None, ..., None].expand(1, *mature.shape)
    chosen = early.gather(0, index)[0]
    kept = last >= last.amax(dim=-1, keepdim=True) + log(LEAST_SHARE)
    return torch.where(kept, last - chosen, _LEFT_OUT)
