"""One judge of several: its weights, how it reads, and its calibration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import BertModel

from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.network import JudgeNetwork, read_network, save_weights
from pipelines.models.judges.trained import calibrations_of, reading_of
from research.judge import __main__ as command
from research.judge.training import READING
from research.samples.pairs import Label, write_examples
from tests.research.judge.examples import pair

LABELS: tuple[Label, Label] = ("supported", "contradicted")
KEPT = [
    pair(label, make="hard", statement=f"Oslo has {n} lakes.", evidence=f"Oslo has {m} lakes.")
    for n in range(5)
    for m, label in zip((n, n + 1), LABELS, strict=True)
]


def judge(folder: Path, encoder: Path, moved: float, reading: EvidenceReading) -> Path:
    """A judge whose trained weights are those of the encoder, and `moved` away from them."""
    torch.manual_seed(0)
    network = JudgeNetwork(BertModel.from_pretrained(encoder))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if ".layer." in name and name.endswith("bias"):
                weight += moved
    save_weights(network, folder, encoder)
    plain = {"temperature": 1.0, "offsets": [0.0, 0.0, 0.0]}
    card = {"scaling": {"statements": plain, "answers": plain}, "reading": reading._asdict()}
    (folder / "judge.json").write_text(json.dumps(card))
    return folder


@pytest.fixture
def folders(
    tmp_path: Path, small_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    monkeypatch.setattr(command, "encoder_folder", lambda: small_encoder)
    write_examples(tmp_path / "kept.jsonl", KEPT)
    one = judge(tmp_path / "one", small_encoder, 0.25, EvidenceReading(pieces=64))
    return one, judge(tmp_path / "other", small_encoder, 0.75, EvidenceReading())


def biases(folder: Path, encoder: Path) -> dict[str, torch.Tensor]:
    state = read_network(folder, encoder).state_dict()
    return {k: v for k, v in state.items() if ".layer." in k and k.endswith("bias")}


def run(tmp_path: Path, *options: object) -> int:
    words = ["average", "--pairs", tmp_path / "kept.jsonl", "--to", tmp_path / "mean", *options]
    return command.main([str(word) for word in words])


def test_the_weights_are_the_mean_and_it_reads_as_the_training_does(
    tmp_path: Path, folders: tuple[Path, Path], small_encoder: Path
):
    assert run(tmp_path, "--judges", *folders) == 0
    mean, low, high = (biases(f, small_encoder) for f in (tmp_path / "mean", *folders))
    assert mean
    for name, value in mean.items():
        assert torch.allclose(value, (low[name] + high[name]) / 2, atol=1e-2)
        assert torch.allclose(value - low[name], torch.full_like(value, 0.25), atol=1e-2)
    assert reading_of(tmp_path / "mean") == READING
    card = json.loads((tmp_path / "mean" / "judge.json").read_text())
    assert card["averaged"] == [json.loads((f / "judge.json").read_text()) for f in folders]
    assert card["scaling"]["statements"]["pairs"] == len(KEPT)
    assert set(calibrations_of(tmp_path / "mean")) >= {"statements", "same"}


def test_one_judge_can_be_calibrated_for_another_reading(
    tmp_path: Path, folders: tuple[Path, Path], small_encoder: Path
):
    less = ("--reading-pieces", 48, "--reading-windows", 1, "--reading-sure", 0.7)
    assert run(tmp_path, "--judges", folders[0], *less, "--reading-neighbours", "no") == 0
    assert reading_of(tmp_path / "mean") == EvidenceReading(pieces=48, windows=1, sure=0.7)
    after, before = (biases(f, small_encoder) for f in (tmp_path / "mean", folders[0]))
    assert all(torch.equal(value, before[name]) for name, value in after.items())


def test_the_weights_of_a_fit_have_the_record_of_the_fit(
    tmp_path: Path, folders: tuple[Path, Path]
):
    fit = tmp_path / "training"
    fit.mkdir()
    weights = folders[0].rename(fit / "weights")
    (weights / "judge.json").unlink()
    (fit / "done.json").write_text('{"name": "seed-1"}')
    (fit / "mixture.json").write_text('{"trained on": 12}')
    assert run(tmp_path, "--judges", fit / "weights", folders[1]) == 0
    first, other = json.loads((tmp_path / "mean" / "judge.json").read_text())["averaged"]
    assert first == {"name": "seed-1", "pairs": {"trained on": 12}}
    assert "scaling" in other


def test_a_folder_without_a_judge_is_an_error(
    tmp_path: Path, folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "nothing").mkdir()
    assert run(tmp_path, "--judges", tmp_path / "nothing") == 2
    assert "nothing has no record of a training" in capsys.readouterr().err
    (tmp_path / "done.json").write_text("{}")
    assert run(tmp_path, "--judges", tmp_path / "nothing") != 0
    assert not (tmp_path / "mean").exists()
