"""What the network reads of a pair, and the mean of several networks."""

from __future__ import annotations

import pytest
import torch

from pipelines.models.judges.inputs import load_tokenizer
from pipelines.models.judges.trained import encoder_folder
from research.judge.calibrating import average
from research.judge.training import READING, encoded
from research.samples.pairs import TrainingPair
from tests.research.judge.examples import network


@pytest.mark.parametrize(
    ("question", "wrong", "doubted"),
    [
        # The first is the mark before the text, the last the full stop.
        ("", ((14, 20),), (-1, 0, 0, 0, 1, -1)),
        ("", ((0, 4), (14, 20)), (-1, 1, 0, 0, 1, -1)),
        ("", (), (-1, 0, 0, 0, 0, -1)),
        ("", None, (-1,) * 6),
        # What is asked is not wrong.
        ("Where?", ((14, 20),), (-1, 0, -1, 0, 0, 0, 1, -1)),
        ("Where?", ((0, 21),), (-1, 0, -1, 1, 1, 1, 1, -1)),
    ],
)
def test_pieces_inside_wrong_words_are_wrong(question: str, wrong, doubted: tuple[int, ...]):
    example = TrainingPair(
        evidence="Oslo lies in Norway.",
        statement="Oslo lies in Sweden.",
        label="contradicted",
        make="m",
        group="g",
        question=question,
        wrong=wrong,
    )
    one = encoded(load_tokenizer(encoder_folder()), example, READING)
    assert one.doubted == doubted


def test_of_long_evidence_the_part_that_is_about_it_is_read():
    far = "Nothing of interest is said here about anything at all. " * 40
    example = TrainingPair(
        evidence=f"{far}Oslo lies in Norway. {far}",
        statement="Oslo lies in Norway.",
        label="unsupported",
        make="m",
        group="g",
    )
    one = encoded(load_tokenizer(encoder_folder()), example, READING)
    assert one.target == (0.0, 1.0, 1.0)
    assert len(one.windows) == 2
    assert all(len(window.ids) <= READING.pieces for window in one.windows)
    # All words of the statement stand in a window: after the mark, up to the full stop.
    assert [1, 1, 1, 1] in [window.matches[1:5] for window in one.windows]
    assert one.overlap == 1.0


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
