"""What it costs and is worth to read less: by hand, and with the judge that ships."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge, encoder_folder, reading_of
from pipelines.research import readings as module
from pipelines.research.readings import Looked, cut, long_pairs, main, row, table
from pipelines.research.training.examples import write_examples
from tests.pipelines.research.long_training.examples import pair

YES, LIKELY, NO = ((log(p), log(1 - p) - 30, log(1 - p)) for p in (0.9, 0.6, 0.2))
"""Scores of windows that support with these probabilities."""

FILLER = "The weather of the coast is mild, and many ships call there in spring and summer. " * 20


def test_fewer_windows_are_read_and_none_after_a_clear_one():
    looked = Looked((NO, YES, LIKELY), (100, 90, 80))
    assert cut(looked, 3, 1.0) == looked
    assert cut(looked, 1, 1.0) == Looked((NO,), (100,))
    # The second supports with 0.9, so that the third is not read.
    assert cut(looked, 3, 0.8) == Looked((NO, YES), (100, 90))
    assert cut(looked, 3, 0.95) == looked


def test_a_row_says_what_is_read_and_what_changes():
    pairs = [pair("supported" if n % 2 else "contradicted", make="a") for n in range(40)]
    # Wrong statements look likely in a second window, right ones are clear in the second.
    looked = [Looked((NO, YES) if n % 2 else (NO, LIKELY), (60, 40)) for n in range(40)]
    both, said = row(pairs, looked, EvidenceReading(pieces=60, windows=2))
    assert said == pytest.approx([0.6, 0.9] * 20)
    assert (both.pieces, both.changed) == (100, 0)
    assert both.areas == {"all": 1.0, "makes": 1.0, "a": 1.0}
    first, _ = row(pairs, looked, EvidenceReading(pieces=60, windows=1), said)
    assert (first.pieces, first.changed) == (60, 1.0)
    assert first.areas["all"] == 0.5
    lines = table([both, first]).splitlines()
    assert lines[0].endswith("| changed | makes | a |")
    assert lines[2] == "| 0 | 60 | 2 | – | 100 | 0.0% | 1.000 | 1.000 |"
    assert lines[3] == "| 0 | 60 | 1 | – | 60 | 100.0% | 0.500 | 0.500 |"


def test_pairs_with_long_evidence_are_taken_once():
    long = pair(evidence=FILLER)
    assert long_pairs([pair(), long, long], encoder_folder(), 5) == [long]
    assert long_pairs([long, pair(evidence=f"{FILLER} More.")], encoder_folder(), 1) == [long]


def test_the_command_asks_a_judge_once(
    tmp_path: Path,
    trained_judge: TrainedJudge,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    pairs = [
        pair(
            "supported" if year == 1512 else "contradicted",
            statement=f"The harbour was opened in {year}.",
            evidence=f"{FILLER}The harbour was opened in 1512. {FILLER}{FILLER}",
        )
        for year in (1512, 1913)
    ]
    write_examples(tmp_path / "kept.jsonl", pairs)
    asked = ["--pairs", str(tmp_path / "kept.jsonl"), "--judge", str(WEIGHTS)]
    asked += ["--kept", str(tmp_path / "said"), "--pieces", "64", "--windows", "1", "2"]
    assert main(asked) == 0
    first = capsys.readouterr().out
    rows = [line.split(" | ") for line in first.splitlines()[2:]]
    # One window, two, two with each of the two thresholds: of either size, and the judge's own.
    assert [line[1] for line in rows] == ["128"] * 5 + ["64"] * 4
    # The judge's own reading stands first.
    own = reading_of(WEIGHTS)
    assert rows[0][:4] == ["| 0", f"{own.pieces}", f"{own.windows}", f"{own.sure:g}"]
    read = [float(line[4]) for line in rows]
    # The second window is as long as the first one, and 64 pieces are half as many.
    assert read[2] > 1.9 * read[1]
    assert read[2] > 1.9 * read[6]
    # Of the two claims one is clearly supported after the first window.
    assert read[0] == pytest.approx((read[1] + read[2]) / 2, abs=1)
    monkeypatch.setattr(module, "read_network", lambda *given: pytest.fail("asked again"))
    monkeypatch.setattr(module, "_reads", lambda *given: pytest.fail)
    assert main(asked) == 0
    assert capsys.readouterr().out == first


def test_pairs_without_long_evidence_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_examples(tmp_path / "kept.jsonl", [pair()])
    folder = str(tmp_path / "said")
    asked = ["--pairs", str(tmp_path / "kept.jsonl"), "--judge", str(WEIGHTS), "--kept", folder]
    assert main(asked) == 2
    assert "kept.jsonl" in capsys.readouterr().err
