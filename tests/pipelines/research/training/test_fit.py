"""Fits on a handful of pairs: what is learnt, averaged, scaled and written."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from pipelines.models.judges.inputs import MAX_PIECES, EncodedPair
from pipelines.models.judges.network import Batch, JudgeNetwork, read_network
from pipelines.models.judges.trained import combined, encoder_folder
from pipelines.research.sources import Sources
from pipelines.research.training.examples import Label, TrainingPair
from pipelines.research.training.fit import (
    EncodedExample,
    JudgeSchedule,
    _loss,
    _loss_of_words,
    attend,
    average,
    best_scaling,
    fit,
    make_judge,
    prepared,
    scalings,
    use_narrow_attention,
)
from pipelines.research.training.recipe import Recipe, Split

SUPPORTED, CONTRADICTED = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def network(seed: int = 0, width: int = 16) -> JudgeNetwork:
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


def pairs() -> list[EncodedExample]:
    """The evidence repeats the statement's word, or has another."""
    found: list[EncodedExample] = []
    for word in range(5, 15):
        for other in (word, word % 10 + 5):
            same = word == other
            match = 1 if same else 2
            pair = EncodedPair([1, word, 2, other, 2], [0, 0, 0, 1, 1], [0, match, 0, match, 0])
            target = SUPPORTED if same else CONTRADICTED
            found.append(EncodedExample(pair, target, (-1, int(not same))))
    return found


def test_it_learns_what_the_pairs_show():
    learner = network()
    schedule = JudgeSchedule(steps=60, batch=8, rate=3e-3, head_rate=1e-2, seed=1)
    seen = list(fit(learner, pairs(), schedule))
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
    assert len(list(fit(learner, pairs(), JudgeSchedule(steps=3, batch=4)))) == 3
    assert torch.equal(before, learner.encoder.embeddings.word_embeddings.weight)
    assert not torch.equal(layers, learner.encoder.encoder.layer[0].output.dense.weight)


def test_the_same_seed_gives_the_same_judge():
    states = []
    for _ in range(2):
        learner = network()
        assert len(list(fit(learner, pairs(), JudgeSchedule(steps=4, batch=4, seed=3)))) == 4
        states.append(learner.head[1].weight)
    assert torch.equal(*states)


def test_an_unsupported_statement_may_be_either():
    scores = torch.tensor([[0.0, 0.0, 0.0]])
    either, one = torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    # Of three equal shares two are right, or one; a twentieth goes to all three (ln 3).
    assert _loss(scores, either).item() == pytest.approx(0.95 * log(3 / 2) + 0.05 * log(3))
    assert _loss(scores, one).item() == pytest.approx(log(3))


def test_wrong_words_count_three_times_as_much_as_right_ones():
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
    (one,) = prepared([example], encoder_folder())
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
    (one,) = prepared([example], encoder_folder())
    assert one.target == (0.0, 1.0, 1.0)
    assert len(one.pair.ids) <= MAX_PIECES
    # All words of the statement stand in the window: after the mark, up to the full stop.
    assert one.pair.matches[1:5] == [1, 1, 1, 1]


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


MAKES = ("told", "article")
LABELS: dict[str, Label] = {"Norway": "supported", "Sweden": "contradicted"}


def labelled() -> list[TrainingPair]:
    return [
        TrainingPair(
            evidence="Oslo lies in Norway.",
            statement=f"Oslo lies in {place}.",
            label=label,
            make=make,
            group=f"{make}-{place}",
            question="Where does Oslo lie?" if make == "article" else "",
        )
        for make in MAKES
        for place, label in LABELS.items()
    ]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Recipe]:
    """The recipes whose pairs were asked for; all give the same few."""
    seen: list[Recipe] = []

    def given(_: Sources, recipe: Recipe) -> Split:
        seen.append(recipe)
        return Split(training=labelled()[seen[0] is not recipe :], kept=labelled())

    monkeypatch.setattr("pipelines.research.training.fit.split", given)
    monkeypatch.setattr(Split, "described", lambda pairs: {"trained on": len(pairs.training)})
    return seen


@pytest.mark.verify
def test_the_judge_is_the_mean_of_one_of_every_recipe(tmp_path: Path, asked: list[Recipe]):
    recipes = [Recipe(rounds=1), Recipe(rounds=2)]
    encoder, to, keep = encoder_folder(), tmp_path / "judge", tmp_path / "parts"
    schedule = JudgeSchedule(steps=2, batch=2)
    card = make_judge(Sources(), recipes, schedule, encoder, to, keep=keep)
    assert asked == recipes
    first, second, mean = (
        read_network(folder, encoder).state_dict()
        for folder in (keep / "recipe-1", keep / "recipe-2", to)
    )
    weight = "head.1.weight"
    assert not torch.equal(first[weight], second[weight])
    # Half precision on disk.
    assert torch.allclose(mean[weight], (first[weight] + second[weight]) / 2, atol=1e-3)
    assert [one["recipe"]["rounds"] for one in card["averaged"]] == [1, 2]
    assert [one["pairs"]["trained on"] for one in card["averaged"]] == [4, 3]
    assert card["averaged"][0]["learning"][-1]["step"] == 2
    assert {kind: one["pairs"] for kind, one in card["scaling"].items()} == {
        "statements": 2,
        "answers": 2,
    }
    assert json.dumps(card)


def test_the_scaling_is_of_the_weights_as_they_lie_on_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Recipe]
):
    monkeypatch.setattr("pipelines.research.training.fit._CHECKPOINT", 2)
    encoder = encoder_folder()
    recipes, schedule = [Recipe()], JudgeSchedule(steps=3, batch=2)
    card = make_judge(Sources(), recipes, schedule, encoder, tmp_path)
    assert asked == recipes
    # Measured regularly and at the end.
    assert [one["step"] for one in card["averaged"][0]["learning"]] == [2, 3]
    assert scalings(tmp_path, encoder, labelled()) == card["scaling"]


def pair(label: str, make: str = "one") -> TrainingPair:
    return TrainingPair.model_validate(
        {"evidence": "e", "statement": "s", "label": label, "make": make, "group": "g"}
    )


def test_scores_that_say_too_much_are_divided():
    # Three of four are supported where the scores say 81 to 1: log 81 / 4 = log 3.
    examples = [pair("supported")] * 3 + [pair("unsupported")]
    scores = [[(log(81), 0.0, -1e9)]] * 4 + [[(-log(81), 0.0, -1e9)]] * 4
    found = best_scaling([*examples, *[pair("unsupported")] * 3, pair("supported")], scores)
    assert combined(scores[0], found).supported == pytest.approx(0.75, abs=0.02)
    assert combined(scores[4], found).supported == pytest.approx(0.25, abs=0.02)


def test_what_is_not_supported_leans_as_often_as_it_is_contradicted():
    # Alike in score; one of four is contradicted: the lean is log(1/3).
    examples = [pair("contradicted"), *[pair("not_enough")] * 3, *[pair("supported")] * 4]
    scores = [[(-2.0, 1.0, 1.0)]] * 4 + [[(2.0, 1.0, 1.0)]] * 4
    found = best_scaling(examples, scores)
    assert found.lean == pytest.approx(log(1 / 3), abs=0.05)
    _, contradicted, silent = combined(scores[0], found)
    assert contradicted / (contradicted + silent) == pytest.approx(0.25, abs=0.02)


def test_without_contradicted_pairs_nothing_leans():
    examples = [pair("supported"), pair("unsupported")]
    assert best_scaling(examples, [[(1.0, 0.0, 0.0)], [(0.0, 1.0, 0.0)]]).lean == 0


def test_every_make_has_the_same_total_weight():
    # Nine of one make are supported, the only one of the other is not; the scores know nothing.
    examples = [*[pair("supported")] * 9, pair("unsupported", "other")]
    found = best_scaling(examples, [[(0.0, 0.0, 0.0)]] * 10)
    assert combined([(0.0, 0.0, 0.0)], found).supported == pytest.approx(0.5, abs=0.02)


def test_a_missing_window_decides_nothing():
    examples = [pair("supported"), pair("unsupported")]
    found = best_scaling(examples, [[(3.0, 0.0, 0.0), (1.0, 0.0, 0.0)], []])
    assert combined([(3.0, 0.0, 0.0)], found).supported > 0.5


def test_the_scaling_makes_the_labels_most_probable():
    # Right three times of four at scores of 4: too sure by far.
    examples = [pair("supported")] * 3 + [pair("contradicted")]
    scored = [[(4.0, 0.0, -99.0)]] * 4
    scaling = best_scaling(examples, scored)
    assert combined(scored[0], scaling).supported == pytest.approx(3 / 4, abs=0.02)


def test_offsets_correct_a_constant_bias():
    # Always a little too sure of support, more so against contradiction.
    labels = ["supported", "not_enough", "contradicted"]
    examples = [pair(label) for _ in range(30) for label in labels]
    scored = [[(2.0, 0.0, 0.0)], [(1.5, 0.0, 1.0)], [(1.5, 1.0, 0.0)]] * 30
    scaling = best_scaling(examples, scored)
    said = [combined(one, scaling).supported for one in scored[:3]]
    assert said[0] > 0.5 > max(said[1:])
