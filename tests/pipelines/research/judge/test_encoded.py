"""What the network reads of a pair, how it attends, and the mean of several."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.inputs import load_tokenizer
from pipelines.models.judges.trained import encoder_folder
from pipelines.research.judge.calibrating import average
from pipelines.research.judge.training import READING, attend, encoded, use_narrow_attention
from pipelines.research.samples.pairs import TrainingPair
from tests.pipelines.research.judge.examples import network


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


def encoder(kind: str) -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertModel(config, add_pooling_layer=False)
    if kind == "narrow":
        use_narrow_attention(model)
    else:
        model.set_attn_implementation(kind)
    return model


def read(model: BertModel, *, mixed: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What is read of two texts, one of them shorter, and one gradient of it."""
    ids = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        found = model(ids, attention_mask=mask).last_hidden_state.float()
    kept = found[mask.bool()]
    (kept**2 * torch.arange(kept.shape[1])).sum().backward()
    gradient = model.get_parameter("encoder.layer.0.attention.self.query.weight").grad
    assert gradient is not None
    return kept.detach(), gradient


def test_two_pieces_by_hand():
    # Scores 0 and ln 3 give weights 1/4 and 3/4; of the second row the mask leaves the first piece.
    one, three = 0.0, float(torch.log(torch.tensor(3.0)))
    query = torch.tensor([[[[1.0], [1.0]]]])
    key = torch.tensor([[[[one], [three * 2]]]])
    value = torch.tensor([[[[4.0], [8.0]]]])
    mask = torch.tensor([[[[0.0, 0.0], [0.0, torch.finfo(torch.float32).min]]]])
    found, weights = attend(None, query, key, value, mask, scaling=0.5)
    assert weights[0, 0].tolist() == [pytest.approx([0.25, 0.75]), pytest.approx([1.0, 0.0])]
    assert found[0, :, 0, 0].tolist() == pytest.approx([7.0, 4.0])


def test_in_32_bits_it_is_the_librarys():
    found, gradient = read(encoder("narrow"), mixed=False)
    expected, expected_gradient = read(encoder("eager"), mixed=False)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, expected_gradient)


def test_in_16_bits_it_is_as_near_to_32_bits_as_the_librarys():
    exact, exact_gradient = read(encoder("eager"), mixed=False)
    far: dict[str, tuple[float, float]] = {}
    for kind in ("narrow", "eager"):
        found, gradient = read(encoder(kind), mixed=True)
        far[kind] = (
            float((found - exact).norm() / exact.norm()),
            float((gradient - exact_gradient).norm() / exact_gradient.norm()),
        )
    assert far["narrow"][0] < max(2 * far["eager"][0], 0.01)
    assert far["narrow"][1] < max(2 * far["eager"][1], 0.05)


def test_under_mixed_precision_nothing_is_widened():
    half = torch.ones(1, 1, 2, 4, dtype=torch.bfloat16)
    mask = torch.zeros(1, 1, 2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, weights = attend(None, half, half, half, mask)
    assert found.dtype == weights.dtype == torch.bfloat16


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
