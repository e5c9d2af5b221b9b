"""The command, with models that answer from a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.store.exchange import load_recording, recordings
from research.measure.asking import QuestionRecord, questions, record_of
from research.measure.default import main
from tests.scripted.service import scripted


def test_rows_are_numbered_from_1():
    tune, odd, held_out = questions("tune"), questions("report"), questions("held-out")
    assert [one.id for one in tune[:2]] == ["en-002", "en-004"]
    assert [one.number for one in odd[:3]] == [1, 3, 5]
    assert [one.number for one in held_out] == list(range(1, 61))
    assert len(tune) + len(odd) == 148
    assert [one.id for one in questions("report", 1)] == ["en-001"]
    chinese = questions("held-out", language="zh")
    assert [one.number for one in chinese] == list(range(1, 61))
    assert (chinese[0].id, chinese[0].language) == ("held-zh-001", "zh")
    reference = odd[0].reference
    assert reference.answer == "Hope, Arkansas"
    assert reference.aliases[-1] == "Hope in Arkansas"


def test_a_table_and_records_are_written(tmp_path: Path, capsys):
    output, records = tmp_path / "table.md", tmp_path / "records.jsonl"
    arguments = ["--part", "tune", "--limit", "2", "--methods", "direct,rag"]
    files = ["--output", str(output), "--records", str(records)]
    # Only polonium: the list of en-004 is not complete.
    replies = scripted(*2 * ["William Jefferson Blythe, who found polonium"])
    assert main([*arguments, *files], open_service=replies) == 0
    lines = records.read_text(encoding="utf-8").splitlines()
    first, second = (QuestionRecord.model_validate_json(line) for line in lines)
    assert first.asked.id == "en-002"
    direct = first.methods["direct"]
    assert direct.outcome == direct.original_outcome == "right"
    assert (direct.calls, direct.judge_calls) == (1, 0)
    assert second.methods["rag"].outcome == "wrong"
    said = capsys.readouterr()
    assert said.out == ""
    assert "2/2 en-004" in said.err
    written = output.read_text(encoding="utf-8")
    row = "1 of 2 (50 %) | 1 of 2 (50 %) | 0 of 2 (0 %) | 0 of 2 (0 %) | 1 of 2 (50 %)"
    assert f"| RAG | {row} |" in written
    # The same records make the same table.
    assert main(["--again", str(records)]) == 0
    assert capsys.readouterr().out == written


def test_each_language_has_a_section_of_its_own(capsys):
    arguments = ["--language", "en", "zh", "--part", "held-out", "--limit", "1"]
    replies = scripted("10 December 1815, 路易吉·梅纳布雷亚")
    assert main([*arguments, "--methods", "direct"], open_service=replies) == 0
    english, chinese = capsys.readouterr().out.split("## Held-out questions")[1:]
    assert english.startswith(": 1\n")
    assert chinese.startswith(" in Chinese: 1\n")
    assert "| Direct | 1 of 1 (100 %) |" in english
    assert "| Direct | 1 of 1 (100 %) |" in chinese


def test_a_method_that_fails_is_counted(tmp_path: Path, capsys):
    assert main(["--limit", "1", "--methods", "direct"], open_service=scripted()) == 0
    row = "0 of 1 (0 %) | 0 of 1 (0 %) | 0 of 1 (0 %) | 1 of 1 (100 %) | 0 of 1 (0 %)"
    assert f"| Direct | {row} |" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--methods", "guess"], ["--again", "missing.jsonl"]])
def test_unusable_input_is_said(arguments: list[str], tmp_path: Path, capsys):
    assert main(arguments, open_service=scripted("x")) == 2
    assert "veriscope: " in capsys.readouterr().err


def shipped() -> list[QuestionRecord]:
    """What the report reads of the recorded runs of English questions."""
    asked = {f"sample-{one.id}": one for one in (*questions("tune"), *questions("report"))}
    return [
        record_of(asked[one.id], load_recording(one.id).events)
        for one in recordings()
        if one.language == "en"
    ]


def test_recorded_runs_are_read_whole():
    """All methods on the embedded model: what Rowen and EVER wrote is found in their events."""
    records = shipped()
    for record in records:
        assert set(record.methods) == {"direct", "rag", "rowen", "drad", "ever", "haarag", "slm"}
        assert all(one.sentence and one.claim for one in record.concepts)
        ends = [one.seconds for one in record.methods.values()]
        assert all(end is not None and end <= record.seconds for end in ends)
        assert record.methods["slm"].judge_calls > 0
        assert record.methods["ever"].verdict is not None
        assert QuestionRecord.model_validate_json(record.model_dump_json()) == record
    assert any(record.paraphrases for record in records)
    assert any(record.concepts for record in records)
