"""Attention for fits on the processor.

There the library's own ways are slow under mixed precision: the fused kernel on the way back, the
plain one because adding its mask and taking its softmax turn the largest tensors of a step into 32
bits and back. Left in 16 bits, a step takes two thirds of the time, and its loss is the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask

__all__ = ["attend", "use_narrow_attention"]

_NAME = "veriscope_narrow"


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float = 1.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention in the type of `query`, without dropout.

    `query`, `key` and `value` have the shape [pairs, heads, pieces, width]; `attention_mask` is
    added to the scores, shape [pairs, 1, pieces, pieces]. Returns what was read, shape [pairs,
    pieces, heads, width], and the weights, shape [pairs, heads, pieces, pieces]. `module` is the
    layer that asks, as the interface wants it. Vaswani et al. 2017, section 3.2.1.
    """
    # Mixed precision would widen the softmax; its kernel sums in 32 bits whatever it is given.
    with torch.autocast(query.device.type, enabled=False):
        scores = (query * scaling) @ key.transpose(2, 3)
        if attention_mask is not None:
            scores = scores + attention_mask.to(scores.dtype)
        weights = torch.softmax(scores, dim=-1)
        read = weights @ value
    return read.transpose(1, 2).contiguous(), weights


def use_narrow_attention(encoder: PreTrainedModel) -> None:
    """From now on `encoder` reads with `attend`."""
    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, eager_mask)
    encoder.set_attn_implementation(_NAME)
