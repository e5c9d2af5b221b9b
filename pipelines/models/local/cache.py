"""Key-value caches whose rows come and go.

Rows of a batch have different lengths. They are kept aligned on the right, so that the next token
of every row goes to the same column; the columns left of a shorter row are padding, which the
attention mask hides and which positions do not count.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionLayer,
)

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

__all__ = ["Rows", "join", "keep", "new_cache", "supports_joining", "supports_padding"]


def new_cache(config: "PreTrainedConfig") -> DynamicCache:
    """An empty cache for one batch of a model.

    Sliding-window layers keep every column here: cut to their window, rows of different lengths
    could not be joined. The attention mask still applies the window.
    """
    cache = DynamicCache(config=config)
    if all(type(layer) in _JOINABLE for layer in cache.layers):
        cache.layers = [
            DynamicLayer() if type(layer) is DynamicSlidingWindowLayer else layer
            for layer in cache.layers
        ]
    return cache


_JOINABLE = (DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer)


def supports_joining(cache: DynamicCache) -> bool:
    """Whether rows of this kind of cache can be put together, taken out and put elsewhere."""
    return all(type(layer) in _JOINABLE for layer in cache.layers)


def supports_padding(cache: DynamicCache) -> bool:
    """Whether prompts of different lengths can be read in one pass.

    Recurrent layers would carry the padding on in their state, so there only prompts of equal
    length are read together.
    """
    return supports_joining(cache) and not any(
        isinstance(layer, LinearAttentionLayer) for layer in cache.layers
    )


@dataclass
class Rows:
    """A batch under way: its cache and how many tokens of each row are in it."""

    cache: DynamicCache
    lengths: list[int]

    @property
    def width(self) -> int:
        """Columns of the cache: the length of the longest row."""
        return max(self.lengths)


def _state_tables(layer: LinearAttentionLayer) -> tuple[dict[int, torch.Tensor | None], ...]:
    return layer.conv_states, layer.recurrent_states


def keep(rows: Rows, indices: list[int]) -> None:
    """Keep the rows at `indices`, in that order; an index may occur more than once.

    Columns that are padding in every row left are cut away.
    """
    surplus = rows.width - max(rows.lengths[index] for index in indices)
    rows.lengths = [rows.lengths[index] for index in indices]
    for layer in rows.cache.layers:
        if isinstance(layer, LinearAttentionLayer):
            for table in _state_tables(layer):
                for name, state in table.items():
                    if state is not None:
                        table[name] = state[indices]
        elif isinstance(layer, DynamicLayer) and layer.keys is not None:
            assert layer.values is not None
            layer.keys = layer.keys[indices, :, surplus:]
            layer.values = layer.values[indices, :, surplus:]


def join(first: Rows, second: Rows) -> Rows:
    """One batch of the rows of `first`, then those of `second`; both are used up."""
    width = max(first.width, second.width)

    def together(one: torch.Tensor | None, two: torch.Tensor | None) -> torch.Tensor:
        assert one is not None
        assert two is not None
        return torch.cat([pad(t, (0, 0, width - t.shape[-2], 0)) for t in (one, two)])

    for layer, other in zip(first.cache.layers, second.cache.layers, strict=True):
        if isinstance(layer, LinearAttentionLayer) and isinstance(other, LinearAttentionLayer):
            for table, added in zip(_state_tables(layer), _state_tables(other), strict=True):
                for name, state in table.items():
                    extra = added[name]
                    if state is not None and extra is not None:
                        table[name] = torch.cat([state, extra])
        elif isinstance(layer, DynamicLayer) and isinstance(other, DynamicLayer):
            layer.keys = together(layer.keys, other.keys)
            layer.values = together(layer.values, other.values)
    return Rows(first.cache, first.lengths + second.lengths)
