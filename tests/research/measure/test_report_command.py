"""The command: pairs and reports from a handful of pairs, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.models.base import EMBEDDED_NAME
from research.measure import report as command
from research.measure.__main__ import main
from research.measure.sets import Suite
from research.samples.pairs import Label, TrainingPair

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


def test_every_judge_is_measured_on_every_suite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    suites = [Suite("stances", PAIRS, three_way=True)]
    monkeypatch.setattr(command, "suites", lambda *given: suites)
    arguments = ["report", "--judge", str(tmp_path), "--date", "2026-01-31"]
    arguments += ["--out", str(tmp_path / "judges.json")]
    assert main(arguments) == 0
    written = json.loads((tmp_path / "judges.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == written
    # There is no trained judge in that folder.
    assert set(written["quality"]) == set(written["curves"])
    assert len(written["quality"]) == 2
    for measured in written["quality"].values():
        # "Norway" alone repeats the evidence word for word.
        assert measured["stances"]["auroc"] == 1.0
        assert measured["stances"]["examples"] == 3
    assert written["date"] == "2026-01-31"
    # What a language model said, which is not asked again, stays.
    written["quality"][EMBEDDED_NAME] = {"stances": {"auroc": 0.5}}
    (tmp_path / "judges.json").write_text(json.dumps(written), encoding="utf-8")
    assert main(arguments) == 0
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
    monkeypatch.setattr(command, "suites", lambda *given: [Suite("stances", PAIRS)])
    monkeypatch.setattr(command, "_zero_shot", stopped)
    arguments = ["report", "--judge", str(tmp_path), "--every", "8", "--out", str(table)]
    assert main(arguments) == 130
    quality = json.loads(table.read_text(encoding="utf-8"))["quality"]
    assert (quality[EMBEDDED_NAME], len(quality)) == (said, 3)
    monkeypatch.setattr(command, "_zero_shot", asked)
    assert main(arguments) == 0
    quality = json.loads(table.read_text(encoding="utf-8"))["quality"]
    assert quality[EMBEDDED_NAME] == {"stances": {"auroc": 0.6}}
