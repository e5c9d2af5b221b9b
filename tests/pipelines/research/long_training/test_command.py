"""The command: its options, how it stops, and what it says of bad ones."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.models.judges.inputs import EvidenceReading
from pipelines.research.long_training import __main__ as command
from pipelines.research.long_training.cosines import remembered_cosines
from pipelines.research.long_training.mixture import Mixture
from pipelines.research.long_training.stages import Training, TrainingPlan, TrainingStoppedError
from pipelines.research.long_training.trainer import Course


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
    monkeypatch.setattr(command, "remembered_cosines", lambda: None)
    monkeypatch.setattr(command.signal, "signal", lambda number, handler: None)
    return found


def test_without_options_the_plan_is_the_usual_one(
    data: Path, made: list[Training], tmp_path: Path
):
    assert command.main(["--data", str(data), "--to", str(tmp_path / "to")]) == 0
    (training,) = made
    assert training.plan == TrainingPlan()
    assert training.folder == tmp_path / "to"
    assert training.sources.hard == data / "fool_me_twice.jsonl"


def test_everything_that_is_to_be_tried_is_an_option(data: Path, made: list[Training]):
    options = "--seeds 3 --no-distilling --pairs 200 --course-steps 50 --course-margin 2.5"
    options += " --course-layer-decay 0.8 --reading-pieces 384 --reading-neighbours no"
    options += " --mixture-people 9 --balance 1 --every 10"
    assert command.main(["--data", str(data), *options.split()]) == 0
    assert made[0].plan == TrainingPlan(
        mixture=Mixture(people=9),
        reading=EvidenceReading(pieces=384, windows=2, neighbours=False),
        course=Course(steps=50, margin=2.5, layer_decay=0.8),
        seeds=(3,),
        distil=False,
        limit=200,
        every=10,
        balance=1.0,
    )


def test_a_training_that_was_stopped_says_so(
    data: Path, made: list[Training], monkeypatch: pytest.MonkeyPatch
):
    def run(self: Training) -> dict[str, Any]:
        raise TrainingStoppedError

    monkeypatch.setattr(Training, "run", run)
    assert command.main(["--data", str(data)]) == 3


@pytest.mark.parametrize("minutes", ["0", "-1"])
def test_no_time_is_an_error(data: Path, minutes: str, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--data", str(data), "--minutes", minutes]) == 2
    assert "--minutes" in capsys.readouterr().err


def test_a_folder_without_data_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--data", str(tmp_path)]) == 2
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


def test_every_text_is_embedded_once():
    class Embedder:
        name, languages = "e", frozenset({"en"})

        def __init__(self) -> None:
            self.asked: list[str] = []

        def embed(self, texts):
            self.asked += texts
            return np.array(
                [[1.0, 0.0] if "a" in text else [0.6, 0.8] for text in texts], "float32"
            )

    embedder = Embedder()
    near = remembered_cosines(embedder)  # pyright: ignore[reportArgumentType]
    assert near("a", ["a one", "b"]) == pytest.approx([1.0, 0.6])
    assert near("b", ["a one", "a"]) == pytest.approx([0.6, 0.6])
    assert embedder.asked == ["a", "a one", "b"]
