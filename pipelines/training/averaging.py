"""One judge out of several: the mean of their weights.

Judges that were fitted from the same start on different pairs err differently, and lie in one
valley of the loss: their mean is better than either, and no slower (Wortsman et al., "Model soups",
ICML 2022, section 2: the uniform soup).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pipelines.models.judges.network import JudgeNetwork

__all__ = ["average"]


def average(networks: Sequence[JudgeNetwork]) -> JudgeNetwork:
    """The first of `networks`, changed in place to the mean of all.

    Raises ValueError when there is none, or their weights are not of the same shapes.
    """
    if not networks:
        raise ValueError("There is nothing to average.")
    first, states = networks[0], [network.state_dict() for network in networks]
    shapes = {name: tensor.shape for name, tensor in states[0].items()}
    if any({name: one.shape for name, one in state.items()} != shapes for state in states):
        raise ValueError("These judges are not made alike.")
    means = {
        name: torch.stack([state[name] for state in states]).mean(0)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in states[0].items()
    }
    first.load_state_dict(means)
    return first
