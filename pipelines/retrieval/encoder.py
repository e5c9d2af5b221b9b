"""The network of multilingual-e5-small, computed in the numbers that the processor is fast with.

Where the processor multiplies 16-bit numbers itself, it computes in them. Elsewhere, where PyTorch
has kernels for them, in 8-bit whole numbers, which takes less than half the time of 32 bits; else
in 32 bits. docs/measurements.md compares them. On a graphics card it computes in 16 bits where the
cosines stay as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipelines.base import loading
from pipelines.models.devices import (
    choose_dtype,
    device_for,
    in_halves,
    like_lengths,
    rows_of_length,
    stays_close,
)
from pipelines.retrieval.packed import PackedEncoder

_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""What the file calls the parts of a layer, and what transformers calls them."""

_LONGEST_BATCH = 4096
"""Word pieces that are read at once: of more, the processor's caches hold too little."""

_SHIFT = 0.8
"""How much of an activation's range is moved into the weights before both are rounded to 8 bits.
Xiao et al., "SmoothQuant", ICML 2023, equation 4: alpha."""

_TYPICAL = (
    "query: When was the bridge over the river opened, and who designed it?",
    "query: 这座大桥是哪一年建成的，由谁设计？",
    "passage: The physicist was born in Ulm in 1879 and received the Nobel Prize in 1921.",
    "passage: In 2019 the city had 8.9 million inhabitants; its area is 1,572 km².",
    "passage: “It was,” she wrote to Dr. H. M. Lee (the editor), “by far the oldest tree.”",
    "passage: 长江全长约6300公里，是亚洲最长的河流，发源于青藏高原。",
    "passage: 他在1962年获得诺贝尔生理学或医学奖，与沃森、威尔金斯共享。",
    "passage: 北京，简称“京”，是中华人民共和国的首都、历史文化名城。",
)
"""Texts whose activations show which of their channels have a large range."""

Precision = Literal["bfloat16", "int8", "float32"]
"""The numbers that it computes in."""


def best_precision() -> Precision:
    """Return how this processor computes fastest without being less right."""
    if choose_dtype(torch.device("cpu")) is torch.bfloat16:
        return "bfloat16"
    # The kernels of other engines take no factor a row.
    return "int8" if "x86" in torch.backends.quantized.supported_engines else "float32"


class Encoder:
    """multilingual-e5-small: unit vectors of 384 numbers for texts that begin with their prefix.

    A text is cut at 512 word pieces. `device` is that of `device_for`. Not to be called by several
    threads at once. Raises ValueError, KeyError, OSError or struct.error for a damaged file.
    """

    def __init__(
        self, path: Path, precision: Precision | None = None, device: torch.device | None = None
    ) -> None:
        self._packed = PackedEncoder(path)
        self.width = self._packed.shape.width
        self._device = device or device_for("reading")
        on_card = self._device.type == "cuda"
        self.precision = precision or ("float32" if on_card else best_precision())
        self._tokenizer = self._packed.tokenizer()
        self._tokenizer.enable_truncation(self._packed.shape.positions)
        self._network = network_of(self._packed).to(self._device)
        self._rows = rows_of_length(self._device, self._network.config, 0)
        if precision is None and stays_close(self._device, lambda: self.encode(_TYPICAL)):
            self.precision = "bfloat16"
        if self.precision == "int8":
            _round_to_8_bits(self._network, lambda: self.encode(_TYPICAL))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of `texts`, shape [len(texts), width], float32."""
        read = [text.ids for text in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(read), self.width), np.float32)
        with torch.inference_mode(), self._computing():
            for places in like_lengths([len(ids) for ids in read], self._most_rows):
                vectors[places] = in_halves([read[at] for at in places], self._vectors)
        return vectors

    def _computing(self) -> AbstractContextManager[Any]:
        narrow = self.precision == "bfloat16"
        return torch.autocast(self._device.type, torch.bfloat16) if narrow else nullcontext()

    def _most_rows(self, length: int) -> int:
        return self._rows(length) or _LONGEST_BATCH // length

    def _vectors(self, read: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        longest = max(map(len, read))
        ids = np.zeros((len(read), longest), np.int64)
        mask = torch.zeros(len(read), longest, 1)
        for row, own in enumerate(read):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        embedded = torch.from_numpy(self._packed.word_vectors(ids)).to(self._device)
        mask = mask.to(self._device)
        hidden = self._network(inputs_embeds=embedded, attention_mask=mask.squeeze(-1).long())
        sums = (hidden.last_hidden_state.float() * mask).sum(1)
        # The mean over a text's pieces (paper, section 2), which the length no longer changes.
        return nn.functional.normalize(sums).cpu().numpy()


def network_of(packed: PackedEncoder) -> Any:
    """Return the file's layers as a frozen BertModel in float32, fed with word pieces' vectors."""
    shape = packed.shape
    with loading():
        from transformers import BertConfig, BertModel

        config = BertConfig(
            # Word vectors are read from the file: in memory they would take 384 MB.
            vocab_size=1,
            pad_token_id=0,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.inner,
            max_position_embeddings=shape.positions,
            type_vocab_size=shape.types,
            layer_norm_eps=shape.epsilon,
            # Dropout in the attention keeps training off the fast path.
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
        network = BertModel(config, add_pooling_layer=False).eval().requires_grad_(False)
    state = network.state_dict()
    begin = "embeddings."
    names = {
        f"{begin}position_embeddings.weight": "emb.pos",
        f"{begin}token_type_embeddings.weight": "emb.type",
        f"{begin}LayerNorm.weight": "emb.ln.w",
        f"{begin}LayerNorm.bias": "emb.ln.b",
    }
    for layer in range(shape.layers):
        for short, long in _LAYER.items():
            whole = f"encoder.layer.{layer}.{long}"
            names[f"{whole}.weight"] = f"l{layer}.{short}.w"
            names[f"{whole}.bias"] = f"l{layer}.{short}.b"
    for ours, theirs in names.items():
        state[ours].copy_(torch.tensor(packed.numbers(theirs, *state[ours].shape)))
    return network


class _Rounded(nn.Module):
    """A linear layer in 8-bit whole numbers, with a factor a row; activations are rounded by text.

    Channels of a large range would leave the others few steps. So every channel is divided by
    `ranges`, and the weights are multiplied by them (SmoothQuant, section 4).
    """

    def __init__(self, layer: nn.Linear, largest: Tensor) -> None:
        super().__init__()
        weight = layer.weight.float()
        ranges = largest.clamp(min=1e-5) ** _SHIFT
        ranges /= weight.abs().amax(0).clamp(min=1e-5) ** (1 - _SHIFT)
        weight = weight * ranges
        factors = weight.abs().amax(1).clamp(min=1e-8) / 127
        zeros = torch.zeros(len(factors), dtype=torch.long)
        with warnings.catch_warnings():
            # PyTorch will have other tensors for this one day; the version is pinned.
            warnings.filterwarnings("ignore", ".*quantized tensor creation", UserWarning)
            rounded = torch.quantize_per_channel(weight, factors.double(), zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(rounded, layer.bias.float())
        self._smaller = 1 / ranges

    def forward(self, texts: Tensor) -> Tensor:
        # 7 bits for activations: without further instructions, sums of 8 overflow.
        return torch.ops.quantized.linear_dynamic(texts * self._smaller, self._packed, True)


def _round_to_8_bits(network: nn.Module, read_typical: Callable[[], object]) -> None:
    """Replace the linear layers of `network`, which reads typical texts to show its ranges."""
    layers = {name: one for name, one in network.named_modules() if isinstance(one, nn.Linear)}
    largest: dict[str, Tensor] = {}

    def watch(name: str, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        found = given[0].flatten(0, -2).abs().amax(0)
        largest[name] = torch.maximum(largest[name], found) if name in largest else found

    watching = [one.register_forward_pre_hook(partial(watch, name)) for name, one in layers.items()]
    read_typical()
    for one in watching:
        one.remove()
    for name, layer in layers.items():
        parent, _, own = name.rpartition(".")
        setattr(network.get_submodule(parent), own, _Rounded(layer, largest[name].clone()))
