"""Fitting, on a network small enough to learn in a moment."""

from __future__ import annotations

from math import log

import pytest
import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.inputs import LONGEST, Pair
from pipelines.models.judges.network import Batch, JudgeNetwork
from pipelines.models.judges.trained import encoder_folder
from pipelines.training.examples import Example
from pipelines.training.fit import (
    Prepared,
    Schedule,
    _loss,
    _loss_of_words,
    _rate,
    fit,
    prepared,
)

SUPPORTED, CONTRADICTED = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def network() -> JudgeNetwork:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    return JudgeNetwork(BertModel(config))


def pairs() -> list[Prepared]:
    """The evidence repeats the statement's word, or has another."""
    found: list[Prepared] = []
    for word in range(5, 15):
        for other in (word, word % 10 + 5):
            same = word == other
            match = 1 if same else 2
            pair = Pair([1, word, 2, other, 2], [0, 0, 0, 1, 1], [0, match, 0, match, 0])
            target = SUPPORTED if same else CONTRADICTED
            found.append(Prepared(pair, target, (-1, int(not same))))
    return found


def test_it_learns_what_the_pairs_show():
    learner, seen = network(), []
    schedule = Schedule(steps=60, batch=8, rate=3e-3, head_rate=1e-2, seed=1)
    fit(learner, pairs(), schedule, progress=lambda step, loss, _: seen.append((step, loss)))
    assert [step for step, _ in seen] == list(range(1, 61))
    assert seen[-1][1] < seen[0][1]
    with torch.inference_mode():
        judged = learner(Batch([one.pair for one in pairs()]))
    assert judged.labels.argmax(1).tolist() == [one.target.index(1.0) for one in pairs()]
    # Which word is wrong is learnt as well.
    assert [int(doubt > 0) for doubt in judged.doubts[:, 1]] == [one.doubted[1] for one in pairs()]


def test_word_embeddings_stay_as_they_are():
    learner = network()
    before = learner.encoder.embeddings.word_embeddings.weight.clone()
    layers = learner.encoder.encoder.layer[0].output.dense.weight.clone()
    fit(learner, pairs(), Schedule(steps=3, batch=4))
    assert torch.equal(before, learner.encoder.embeddings.word_embeddings.weight)
    assert not torch.equal(layers, learner.encoder.encoder.layer[0].output.dense.weight)


def test_the_same_seed_gives_the_same_judge():
    states = []
    for _ in range(2):
        learner = network()
        fit(learner, pairs(), Schedule(steps=4, batch=4, seed=3))
        states.append(learner.head[1].weight)
    assert torch.equal(*states)


def test_checkpoints_come_regularly_and_at_the_end():
    steps: list[int] = []
    fit(network(), pairs(), Schedule(steps=5, batch=4), checkpoint=steps.append, every=2)
    assert steps == [2, 4, 5]


def test_an_unsupported_statement_may_be_either():
    scores = torch.tensor([[0.0, 0.0, 0.0]])
    either, one = torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    # Of three equal shares two are right, or one; a twentieth goes to all three (ln 3).
    assert _loss(scores, either).item() == pytest.approx(0.95 * log(3 / 2) + 0.05 * log(3))
    assert _loss(scores, one).item() == pytest.approx(log(3))


def test_wrong_words_weigh_three_times_as_much_as_right_ones():
    doubts = torch.tensor([[0.0, 0.0, 3.0]])
    # ln 2 for a word between right and wrong; what is unknown is left out.
    assert _loss_of_words(doubts, torch.tensor([[0, -1, -1]])).item() == pytest.approx(log(2))
    both = _loss_of_words(doubts, torch.tensor([[0, 1, -1]])).item()
    assert both == pytest.approx((log(2) + 3 * log(2)) / 2)


def test_where_no_word_is_known_nothing_is_learnt_of_words():
    doubts = torch.tensor([[1.0, 2.0]], requires_grad=True)
    loss = _loss_of_words(doubts, torch.tensor([[-1, -1]]))
    loss.backward()
    assert loss.item() == 0
    assert doubts.grad is not None
    assert doubts.grad.tolist() == [[0, 0]]


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
def test_wrong_places_are_wrong_pieces(question: str, wrong, doubted: tuple[int, ...]):
    example = Example(
        evidence="Oslo lies in Norway.",
        statement="Oslo lies in Sweden.",
        label="contradicted",
        make="m",
        group="g",
        question=question,
        wrong=wrong,
    )
    (one,) = prepared([example], encoder_folder())
    assert one.doubted == doubted


def test_the_rate_rises_and_falls():
    schedule = Schedule(steps=100, warmup=0.1)
    assert [_rate(step, schedule) for step in (0, 5, 10)] == pytest.approx([0, 0.5, 1])
    assert _rate(55, schedule) == pytest.approx(0.5)
    assert _rate(100, schedule) == pytest.approx(0)


def test_of_long_evidence_the_part_that_is_about_it_is_read():
    far = "Nothing of interest is said here about anything at all. " * 40
    example = Example(
        evidence=f"{far}Oslo lies in Norway. {far}",
        statement="Oslo lies in Norway.",
        label="unsupported",
        make="m",
        group="g",
    )
    (one,) = prepared([example], encoder_folder())
    assert one.target == (0.0, 1.0, 1.0)
    assert len(one.pair.ids) <= LONGEST
    # All words of the statement stand in the window: after the mark, up to the full stop.
    assert one.pair.matches[1:5] == [1, 1, 1, 1]
