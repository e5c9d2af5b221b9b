"""The command: its options, how it stops, and what it says of bad ones."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pipelines.models.judges.inputs import EvidenceReading
from research.judge import __main__ as command
from research.judge.mixture import Mixture
from research.judge.training import READING, Course, Training, TrainingStoppedError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "fool_me_twice.jsonl").touch()
    return folder


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Training]:
    """What would have been trained."""
    found: list[Training] = []

    def run(self: Training) -> dict[str, Any]:
        found.append(self)
        return {}

    monkeypatch.setattr(Training, "run", run)
    monkeypatch.setattr(command.signal, "signal", lambda number, handler: None)
    return found


def train(data: Path, *options: str) -> int:
    return command.main(["train", "--data", str(data), *options])


def test_without_options_it_is_the_usual_training(data: Path, made: list[Training], tmp_path: Path):
    assert train(data, "--to", str(tmp_path / "to")) == 0
    (training,) = made
    assert (training.mixture, training.course) == (Mixture(), Course())
    assert (training.reading, training.start_from, training.limit) == (READING, None, None)
    assert training.folder == tmp_path / "to"
    assert training.sources.hard == data / "fool_me_twice.jsonl"


def test_everything_that_is_to_be_tried_is_an_option(data: Path, made: list[Training]):
    options = "--pairs 200 --course-steps 50 --course-margin 2.5 --start-from S"
    options += " --course-layer-decay 0.8 --reading-pieces 384 --reading-neighbours no"
    options += " --mixture-people 9 --every 10"
    assert train(data, *options.split()) == 0
    (training,) = made
    assert training.mixture == Mixture(people=9)
    assert training.course == Course(steps=50, margin=2.5, layer_decay=0.8)
    assert training.reading == EvidenceReading(pieces=384, windows=2, neighbours=False)
    assert (training.start_from, training.limit, training.every) == (Path("S"), 200, 10)


def test_pairs_are_written_and_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Path
):
    row = {"label": "SUPPORTS", "gold_evidence": ["It is."], "other_evidence": []}
    lines = [json.dumps({"claim": f"Claim {n}.", **row}) for n in range(40)]
    (data / "fool_me_twice.jsonl").write_text("".join(f"{line}\n" for line in lines))
    small = "--mixture-rounds 0 --mixture-contrasts 0 --mixture-repeats 0 --mixture-people 1"
    to = tmp_path / "to"
    assert command.main(["pairs", "--data", str(data), "--to", str(to), *small.split()]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["trained on"] == len((to / "pairs.jsonl").read_text().splitlines()) > 10
    assert card["makes"] == {"hard": card["trained on"]}


def test_a_training_that_was_stopped_says_so(
    data: Path, made: list[Training], monkeypatch: pytest.MonkeyPatch
):
    def run(self: Training) -> dict[str, Any]:
        raise TrainingStoppedError

    monkeypatch.setattr(Training, "run", run)
    assert train(data) == 3


@pytest.mark.parametrize("minutes", ["0", "-1"])
def test_no_time_is_an_error(data: Path, minutes: str, capsys: pytest.CaptureFixture[str]):
    assert train(data, "--minutes", minutes) == 2
    assert "--minutes" in capsys.readouterr().err


def test_a_folder_without_data_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert train(tmp_path) == 2
    assert "fool_me_twice.jsonl" in capsys.readouterr().err


def test_it_stops_when_the_time_is_over_or_a_signal_comes():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        over = command._stopping(0.0)
        assert over()
        stop = command._stopping(None)
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
