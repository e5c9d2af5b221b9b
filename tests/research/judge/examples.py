"""Pairs, texts and a small network for tests of long training."""

from __future__ import annotations

from functools import cache

import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.inputs import EncodedPair
from pipelines.models.judges.network import JudgeNetwork
from research.judge.training import EncodedClaim
from research.samples.pairs import Label, TrainingPair, text_of

TEXT = text_of(
    "ada",
    "Ada Lovelace",
    "Ada Lovelace was born in London in 1815. She wrote 3 notes about the engine of Babbage."
    " Charles Babbage met her in Paris. She died in London in 1852.",
)
OTHER = text_of(
    "oslo", "Oslo", "Oslo is the capital of Norway. It has a deep harbour in the fjord."
)

SUPPORTED, CONTRADICTED = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def pair(label: Label = "supported", make: str = "m", group: str = "g", **more) -> TrainingPair:
    return TrainingPair(
        **{"evidence": "e", "statement": "s", "label": label, "make": make, "group": group, **more}
    )


def network(seed: int = 0, layers: int = 2) -> JudgeNetwork:
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return JudgeNetwork(BertModel(config))


def window(word: int, *others: int) -> EncodedPair:
    """A statement of one word and evidence of others."""
    matches = [1 if other == word else 2 for other in others]
    return EncodedPair(
        ids=[1, word, 2, *others, 2],
        types=[0, 0, 0, *[1] * (len(others) + 1)],
        matches=[0, 1 if word in others else 2, 0, *matches, 0],
    )


@cache
def claims() -> list[EncodedClaim]:
    """The evidence has the statement's word, in either of two windows, or has another."""
    found: list[EncodedClaim] = []
    for word in range(5, 15):
        other = word % 10 + 5
        for windows, same in (
            ((window(word, word),), True),
            ((window(word, other),), False),
            ((window(word, other, other), window(word, word)), True),
        ):
            target = SUPPORTED if same else CONTRADICTED
            found.append(EncodedClaim(windows, target, (-1, int(not same)), float(same)))
    return found


def pairs() -> list[TrainingPair]:
    """A pair for every claim, which `encode` reads as that claim; the lengths of all differ."""
    return [pair(statement=str(n), evidence="e" * (n + 1)) for n in range(len(claims()))]


def encode(one: TrainingPair) -> EncodedClaim:
    return claims()[int(one.statement)]
