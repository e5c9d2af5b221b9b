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
    states = [{name: one.clone() for name, one in judge.state_dict().items()} for judge in judges]
    mean = average(judges).state_dict()
    for name in ("head.1.weight", "encoder.encoder.layer.0.output.dense.bias"):
        first, second, third = (state[name] for state in states)
        assert not torch.equal(first, second) or not first.any()
        assert torch.allclose(mean[name], (first + second + third) / 3)


def test_the_mean_of_a_judge_with_itself_is_that_judge():
    mean = average([network(1), network(1)])
    for name, tensor in network(1).state_dict().items():
        assert torch.equal(mean.state_dict()[name], tensor), name


def test_what_is_not_alike_has_no_mean():
    with pytest.raises(ValueError, match="not made alike"):
        average([network(1), network(1, width=32)])
    with pytest.raises(ValueError, match="nothing to average"):
        average([])
