"""The command: pairs and reports from a handful of pairs, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.models.base import EMBEDDED_NAME
from pipelines.research.training import __main__ as command
from pipelines.research.training.examples import Label, TrainingPair
from pipelines.research.training.recipe import Split
from pipelines.research.training.report import LabelledSuite

LABELS: dict[str, Label] = {"Norway": "supported", "Sweden": "contradicted", "1901": "not_enough"}
PAIRS = [
    TrainingPair(
        evidence="Oslo lies in Norway.",
        statement=f"Oslo lies in {place}.",
        label=label,
        make="m",
        group=place,
    )
    for place, label in LABELS.items()
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pairs_are_written_and_described(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, "split", lambda files, recipe: Split(PAIRS, PAIRS[:2]))
    to = tmp_path / "pairs.jsonl"
    assert command.main(["pairs", "--to", str(to), "--rounds", "1", "--repeats", "1"]) == 0
    written = [
        TrainingPair.model_validate_json(line) for line in to.read_text("utf-8").splitlines()
    ]
    assert written == PAIRS
    (described,) = json.loads(capsys.readouterr().out)
    assert (described["trained on"], described["kept back"]) == (3, 2)


def test_every_judge_is_measured_on_every_suite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    suites = [LabelledSuite("stances", PAIRS, three_way=True)]
    monkeypatch.setattr(command, "suites", lambda *given: suites)
    monkeypatch.setattr(command, "_CALIBRATION", tmp_path / "judges.json")
    arguments = ["report", "--judge", str(tmp_path), "--date", "2026-01-31"]
    assert command.main(arguments) == 0
    written = json.loads((tmp_path / "judges.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == written
    # There is no trained judge in that folder.
    assert set(written["quality"]) == set(written["curves"])
    assert len(written["quality"]) == 2
    for measured in written["quality"].values():
        # "Norway" alone repeats the evidence word for word.
        assert measured["stances"]["auroc"] == 1.0
        assert measured["stances"]["examples"] == 3
    assert written["shortcuts"]["stances"]["word overlap"] == 1.0
    assert written["date"] == "2026-01-31"
    # What a language model said, which is not asked again, stays.
    written["quality"][EMBEDDED_NAME] = {"stances": {"auroc": 0.5}}
    (tmp_path / "judges.json").write_text(json.dumps(written), encoding="utf-8")
    assert command.main(arguments) == 0
    again = json.loads((tmp_path / "judges.json").read_text(encoding="utf-8"))
    assert again == written


def test_what_the_language_model_said_stays_until_it_has_said_everything_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    async def stopped(measured_on: object, every: int) -> dict[str, object]:
        raise KeyboardInterrupt

    async def asked(measured_on: object, every: int) -> dict[str, object]:
        return {"stances": {"auroc": 0.6}}

    table = tmp_path / "judges.json"
    said = {"stances": {"auroc": 0.5}}
    table.write_text(json.dumps({"quality": {EMBEDDED_NAME: said}}), encoding="utf-8")
    monkeypatch.setattr(command, "suites", lambda *given: [LabelledSuite("stances", PAIRS)])
    monkeypatch.setattr(command, "_CALIBRATION", table)
    monkeypatch.setattr(command, "_zero_shot", stopped)
    arguments = ["report", "--judge", str(tmp_path), "--every", "8"]
    assert command.main(arguments) == 130
    quality = json.loads(table.read_text(encoding="utf-8"))["quality"]
    assert (quality[EMBEDDED_NAME], len(quality)) == (said, 3)
    monkeypatch.setattr(command, "_zero_shot", asked)
    assert command.main(arguments) == 0
    quality = json.loads(table.read_text(encoding="utf-8"))["quality"]
    assert quality[EMBEDDED_NAME] == {"stances": {"auroc": 0.6}}


def test_every_number_of_rounds_has_one_of_repeats(capsys: pytest.CaptureFixture[str]):
    assert command.main(["fit", "--to", "unused", "--rounds", "1", "2", "--repeats", "3"]) == 2
    assert "Give one number of repeats for every number of rounds." in capsys.readouterr().err
