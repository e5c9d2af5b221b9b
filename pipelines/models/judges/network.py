"""The judge's network and its weights: the embedded encoder reading both texts, with its own head.

The weights are shipped as differences from the encoder that is installed anyway. Matrices of its
layers are kept as 8-bit whole numbers times a factor a row, everything else in half precision. Each
file stays far below what a repository takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pipelines.base import quiet_transformers
from pipelines.errors import failure
from pipelines.models.judges.inputs import MATCH_KINDS, EncodedPair

_LABELS = 3
_NO_DOUBT = -20.0
_SHARES = 2 * (MATCH_KINDS - 1)
_DOUBTS = 3


class Batch:
    """Pairs of one batch as tensors of shape [pairs, longest]."""

    def __init__(self, pairs: list[EncodedPair], device: str = "cpu") -> None:
        longest = max(len(pair.ids) for pair in pairs)

        def padded(rows: list[list[int]]) -> Tensor:
            filled = [row + [0] * (longest - len(row)) for row in rows]
            return torch.tensor(filled, dtype=torch.long, device=device)

        self.ids = padded([pair.ids for pair in pairs])
        self.types = padded([pair.types for pair in pairs])
        self.matches = padded([pair.matches for pair in pairs])
        self.mask = padded([[1] * len(pair.ids) for pair in pairs])


class NetworkOutput(NamedTuple):
    """What the network makes of a batch, before softmax and sigmoid.

    `labels`: scores of the three labels, shape [pairs, 3]. `doubts`: of every word piece of
    question and statement, how little the evidence supports it, shape [pairs, longest]; elsewhere
    without meaning.
    """

    labels: Tensor
    doubts: Tensor


class JudgeNetwork(nn.Module):
    """Judges every pair of a batch.

    The head reads the encoder's output at the first mark, its means over the statement and over
    the evidence, and the doubts about single words: a statement is as wrong as its worst word.
    Which pieces the two texts share is added to the input: an encoder of this size does not find
    that out for every word by itself.
    """

    def __init__(self, encoder: Any, vectors: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self._vectors = vectors or encoder.embeddings.word_embeddings.forward
        self.matches = nn.Embedding(MATCH_KINDS, width)
        nn.init.zeros_(self.matches.weight)
        self.words = nn.Linear(width, 1)
        self.head = nn.Sequential(
            nn.Dropout(0.1),
            nn.Linear(4 * width + _SHARES + _DOUBTS, width),
            nn.GELU(),
            nn.Linear(width, _LABELS),
        )

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return self.matches.weight.device

    @classmethod
    def on(cls, pretrained: Path) -> JudgeNetwork:
        """Build the network on a pretrained encoder; the head has still to be trained.

        `pretrained` is a folder, or the file that multilingual-e5-small comes in.
        """
        if pretrained.is_file():
            return cls(*_packed_encoder(pretrained))
        with quiet_transformers():
            from transformers import AutoModel

            # Dropout in the attention keeps training off the fast path: steps take twice as long.
            encoder = AutoModel.from_pretrained(
                pretrained,
                attn_implementation="sdpa",
                attention_probs_dropout_prob=0.0,
                hidden_dropout_prob=0.0,
            )
        return cls(encoder)

    def forward(self, batch: Batch) -> NetworkOutput:
        """Return scores of labels and words."""
        embedded = self._vectors(batch.ids) + self.matches(batch.matches)
        hidden = self.encoder(
            inputs_embeds=embedded, token_type_ids=batch.types, attention_mask=batch.mask
        ).last_hidden_state
        asked = batch.mask * (1 - batch.types)
        evidence = batch.mask * batch.types
        parts = [hidden[:, 0], _mean(hidden, asked), _mean(hidden, evidence)]
        parts.append(parts[1] * parts[2])
        doubts = self.words(hidden).squeeze(-1).float()
        counted = asked * (batch.matches > 0)
        numbers = torch.cat([_worst(doubts, counted), _shares(batch, asked, evidence)], dim=-1)
        labels = self.head(torch.cat([*parts, numbers.to(hidden.dtype)], dim=-1))
        return NetworkOutput(labels, doubts)


def _packed_encoder(path: Path) -> tuple[Any, Callable[[Tensor], Tensor]]:
    """Return the encoder in a file, and what gives the vectors of its word pieces."""
    from pipelines.retrieval.encoder import network_of
    from pipelines.retrieval.packed import PackedEncoder

    packed = PackedEncoder(path)

    def vectors(ids: Tensor) -> Tensor:
        return torch.from_numpy(packed.word_vectors(ids.cpu().numpy())).to(ids.device)

    return network_of(packed), vectors


def _worst(doubts: Tensor, counted: Tensor) -> Tensor:
    """Return a word's highest doubt, a smooth form of it, and the mean, shape [pairs, 3]."""
    there = counted.bool()
    hidden = doubts.masked_fill(~there, _NO_DOUBT)
    smooth = torch.logsumexp(hidden, dim=1)
    mean = torch.sigmoid(hidden).sum(1) / counted.sum(1).clamp(min=1)
    return torch.stack([torch.tanh(hidden.amax(1) / 4), torch.tanh(smooth / 4), mean], dim=-1)


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)


def _shares(batch: Batch, asked: Tensor, evidence: Tensor) -> Tensor:
    """Return shares of every kind of match in either text, shape [pairs, 6]."""
    shares = []
    for mask in (asked, evidence):
        total = mask.sum(1).clamp(min=1)
        for kind in range(1, MATCH_KINDS):
            shares.append(((batch.matches == kind) * mask).sum(1) / total)
    return torch.stack(shares, dim=-1).float()


_LAYERS_A_FILE = 2
_HEAD = "head.safetensors"
_ENCODER = "encoder.encoder.layer."
_WORD, _FACTOR = ".int8", ".factor"


def save_weights(network: JudgeNetwork, folder: Path, pretrained: Path) -> None:
    """Write what training changed; `pretrained` is the encoder it began from."""
    folder.mkdir(parents=True, exist_ok=True)
    before = _pretrained(pretrained)
    files: dict[str, dict[str, Tensor]] = {_HEAD: {}}
    for name, after in network.state_dict().items():
        after = after.detach().cpu().float()
        if not _is_trained(name):
            continue
        if not name.startswith(_ENCODER):
            files[_HEAD][name] = after.half()
        else:
            layer = int(name[len(_ENCODER) :].split(".")[0])
            kept = files.setdefault(f"layers-{layer // _LAYERS_A_FILE}.safetensors", {})
            kept.update(_packed(name, after - before[name]))
    for file, tensors in files.items():
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / file)


def read_network(folder: Path, pretrained: Path) -> JudgeNetwork:
    """Return the network whose weights `folder` holds, on the encoder `pretrained`.

    Raises UnknownModelError when files are missing or belong to another network.
    """
    network = JudgeNetwork.on(pretrained)
    load_weights(network, folder)
    return network


def load_weights(network: JudgeNetwork, folder: Path) -> None:
    """Add what `folder` holds to `network`, whose encoder is the pretrained one.

    Raises UnknownModelError when files are missing or belong to another network.
    """
    state = network.state_dict()
    paths = sorted(folder.glob("*.safetensors"))
    try:
        tensors = {name: tensor for path in paths for name, tensor in load_file(path).items()}
        changes = dict(_unpacked(tensors))
        missing = {name for name in state if _is_trained(name)} - set(changes)
        if missing:
            raise KeyError(min(missing))
        with torch.no_grad():
            for name, value in changes.items():
                if name.startswith(_ENCODER):
                    state[name] += value
                else:
                    state[name].copy_(value)
    except (KeyError, RuntimeError, ValueError, OSError, SafetensorError) as error:
        raise failure("loading.other_encoder", "judge") from error


def _is_trained(name: str) -> bool:
    """Return whether training changes it: the encoder's layers and all that is the judge's own."""
    return name.startswith(_ENCODER) or not name.startswith("encoder.")


def _packed(name: str, change: Tensor) -> dict[str, Tensor]:
    if change.ndim < 2:
        return {name: change.half()}
    factor = change.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return {
        name + _WORD: torch.round(change / factor).to(torch.int8),
        name + _FACTOR: factor.half(),
    }


def _unpacked(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in tensors.items():
        if name.endswith(_WORD):
            plain = name.removesuffix(_WORD)
            yield plain, tensor.float() * tensors[plain + _FACTOR].float()
        elif not name.endswith(_FACTOR):
            yield name, tensor.float()


def _pretrained(encoder: Path) -> dict[str, Tensor]:
    return {name: one.float() for name, one in JudgeNetwork.on(encoder).state_dict().items()}
