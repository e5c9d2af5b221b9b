"""The network and its weights, on an encoder of eight numbers a word piece."""

from __future__ import annotations

import json
from math import exp, log, tanh
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

from pipelines.errors import UnknownModelError
from pipelines.models.judges.inputs import EncodedPair, EvidenceReading
from pipelines.models.judges.network import Batch, JudgeNetwork, _worst, load_weights, save_weights
from pipelines.models.judges.trained import TemperatureScaling, calibrations_of, reading_of


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("encoder")
    config = BertConfig(
        vocab_size=40,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def pair(*ids: int, evidence: int = 2) -> EncodedPair:
    asked = len(ids) - evidence
    return EncodedPair(list(ids), [0] * asked + [1] * evidence, [1] * len(ids))


def changed(encoder: Path) -> JudgeNetwork:
    """A network as training leaves it: every layer a little elsewhere, a head of its own."""
    torch.manual_seed(1)
    network = JudgeNetwork.on(encoder).eval()
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if "embeddings" not in name:
                weights += 0.05 * torch.randn_like(weights)
    return network


def scores(network: JudgeNetwork, *pairs: EncodedPair) -> torch.Tensor:
    with torch.inference_mode():
        return network(Batch(list(pairs))).labels


def test_padding_changes_nothing(encoder: Path):
    network = changed(encoder)
    short, long = pair(1, 2, 3, 4), pair(1, 5, 6, 7, 8, 9, 10)
    together = scores(network, short, long)
    assert together.shape == (2, 3)
    assert torch.allclose(together[0], scores(network, short)[0], atol=1e-5)
    assert torch.allclose(together[1], scores(network, long)[0], atol=1e-5)


def test_reading_twice_gives_the_same(encoder: Path):
    network = changed(encoder)
    assert torch.equal(scores(network, pair(1, 2, 3)), scores(network, pair(1, 2, 3)))


def test_which_words_are_shared_matters(encoder: Path):
    network = changed(encoder)
    one = pair(1, 2, 3, 4)
    other = one._replace(matches=[2] * 4)
    assert not torch.allclose(scores(network, one), scores(network, other), atol=1e-4)


def test_every_word_of_the_statement_is_doubted_for_itself(encoder: Path):
    network = changed(encoder)
    short, long = pair(1, 2, 3, 4), pair(1, 5, 6, 7, 8, 9, 10)
    with torch.inference_mode():
        doubts = network(Batch([short, long])).doubts
        alone = network(Batch([short])).doubts
    assert doubts.shape == (2, 7)
    assert torch.allclose(doubts[0, :2], alone[0, :2], atol=1e-5)


def test_doubts_are_summed_up_over_the_words_that_count():
    doubts = torch.tensor([[0.0, 2.0, -2.0, 9.0], [5.0, 5.0, 5.0, 5.0]])
    counted = torch.tensor([[0, 1, 1, 0], [0, 0, 0, 0]])
    highest, smooth, mean = _worst(doubts, counted)[0].tolist()
    assert highest == pytest.approx(tanh(0.5), abs=1e-6)
    assert smooth == pytest.approx(tanh(log(exp(2) + exp(-2)) / 4), abs=1e-6)
    # The sigmoids of 2 and -2 add up to one.
    assert mean == pytest.approx(0.5, abs=1e-6)
    # Of nothing nothing is doubted.
    highest, smooth, mean = _worst(doubts, counted)[1].tolist()
    assert (highest, smooth) == pytest.approx((-1, -1), abs=1e-3)
    assert mean == pytest.approx(0, abs=1e-6)


def test_what_is_shipped_reads_nearly_as_what_was_trained(encoder: Path, tmp_path: Path):
    trained = changed(encoder)
    save_weights(trained, tmp_path, encoder)
    # Two layers a file, and the head.
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["head.safetensors", "layers-0.safetensors", "layers-1.safetensors"]
    kinds = {one.dtype for one in load_file(tmp_path / "layers-0.safetensors").values()}
    assert kinds == {torch.int8, torch.float16}
    loaded = JudgeNetwork.on(encoder).eval()
    load_weights(loaded, tmp_path)
    pairs = [pair(1, 2, 3, 4), pair(5, 6, 7)]
    assert torch.allclose(scores(loaded, *pairs), scores(trained, *pairs), atol=0.02)
    untouched = scores(JudgeNetwork.on(encoder).eval(), *pairs)
    assert not torch.allclose(scores(loaded, *pairs), untouched, atol=0.02)


@pytest.mark.parametrize("missing", ["head.safetensors", "layers-1.safetensors"])
def test_files_that_are_missing_are_noticed(encoder: Path, tmp_path: Path, missing: str):
    save_weights(changed(encoder), tmp_path, encoder)
    (tmp_path / missing).unlink()
    with pytest.raises(UnknownModelError, match="do not fit"):
        load_weights(JudgeNetwork.on(encoder), tmp_path)


def test_weights_of_another_network_are_noticed(encoder: Path, tmp_path: Path):
    save_weights(changed(encoder), tmp_path, encoder)
    (tmp_path / "layers-1.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(UnknownModelError, match="do not fit"):
        load_weights(JudgeNetwork.on(encoder), tmp_path)


def card(temperature: object, offsets: object) -> str:
    one = {"temperature": temperature, "offsets": offsets}
    return json.dumps({"scaling": {"statements": one, "answers": {**one, "temperature": 1.0}}})


@pytest.mark.parametrize(
    "content", [None, "", "{}", "[]", card("high", [0, 0, 0]), card(1.0, [0, 0])]
)
def test_a_card_that_does_not_say_the_scaling(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "judge.json").write_text(content)
    with pytest.raises(UnknownModelError, match="not calibrated"):
        calibrations_of(tmp_path)


def test_a_card_may_say_how_far_scores_lean_towards_contradiction(tmp_path: Path):
    one = {"temperature": 1.0, "offsets": [0, 0, 0], "lean": 0.25}
    (tmp_path / "judge.json").write_text(
        json.dumps({"scaling": {"statements": one, "answers": one}})
    )
    assert {scaling.lean for scaling in calibrations_of(tmp_path).values()} == {0.25}


def test_a_card_says_the_scaling_of_statements_and_of_answers(tmp_path: Path):
    (tmp_path / "judge.json").write_text(card(1.25, [0.5, -1.0, 0.0]))
    offsets = (0.5, -1.0, 0.0)
    statements, answers = TemperatureScaling(1.25, offsets), TemperatureScaling(1.0, offsets)
    # Questions and two answers are scaled as these where the card does not tell them apart.
    assert calibrations_of(tmp_path) == {
        "statements": statements,
        "questions": statements,
        "answers": answers,
        "same": answers,
    }


def test_a_card_says_how_evidence_is_read_and_what_lengths_are_worth(tmp_path: Path):
    one = {"temperature": 1.0, "offsets": [0, 0, 0], "longer": 0.5, "wordier": -0.25}
    scaling = {"statements": one, "answers": one, "same": {**one, "longer": 0.0}}
    reading = {"pieces": 384, "windows": 3, "neighbours": True, "nearness": 0.5}
    (tmp_path / "judge.json").write_text(json.dumps({"scaling": scaling, "reading": reading}))
    found = calibrations_of(tmp_path)
    assert (found["questions"].longer, found["same"].longer) == (0.5, 0.0)
    assert found["statements"].wordier == -0.25
    assert reading_of(tmp_path) == EvidenceReading(384, 3, True, 0.5)


def test_without_a_word_on_reading_it_is_the_usual_one(tmp_path: Path):
    (tmp_path / "judge.json").write_text(card(1.25, [0.5, -1.0, 0.0]))
    assert reading_of(tmp_path) == EvidenceReading()


@pytest.mark.parametrize("reading", [{"letters": 5}, [1]])
def test_a_reading_that_is_not_known_is_an_error(tmp_path: Path, reading: object):
    (tmp_path / "judge.json").write_text(json.dumps({"reading": reading}))
    with pytest.raises(UnknownModelError):
        reading_of(tmp_path)
