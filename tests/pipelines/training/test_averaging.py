"""The mean of several judges."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.network import JudgeNetwork
from pipelines.training.averaging import average


def network(seed: int, width: int = 16) -> JudgeNetwork:
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=20,
        hidden_size=width,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    return JudgeNetwork(BertModel(config))


def test_every_weight_is_the_mean():
    judges = [network(seed) for seed in (1, 2, 3)]
    weights = [judge.head[1].weight.detach().clone() for judge in judges]
    layers = [judge.encoder.encoder.layer[0].output.dense.bias.detach().clone() for judge in judges]
    mean = average(judges)
    assert torch.allclose(mean.head[1].weight, (weights[0] + weights[1] + weights[2]) / 3)
    found = mean.encoder.encoder.layer[0].output.dense.bias
    assert torch.allclose(found, torch.stack(layers).mean(0))


def test_the_mean_of_a_judge_with_itself_is_that_judge():
    mean = average([network(1), network(1)])
    for name, tensor in network(1).state_dict().items():
        assert torch.equal(mean.state_dict()[name], tensor), name


def test_what_is_not_alike_has_no_mean():
    with pytest.raises(ValueError, match="not made alike"):
        average([network(1), network(1, width=32)])
    with pytest.raises(ValueError, match="nothing to average"):
        average([])
