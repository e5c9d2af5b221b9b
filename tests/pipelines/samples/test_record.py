"""Recording the samples anew, with models that answer from a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.run.events import RunFinished
from pipelines.samples import record
from pipelines.store.exchange import CHOSEN, choice, load_recording, recordings
from tests.sample_data.test_library import questions
from tests.scripted.service import OpenService, scripted

QUESTION = "Where was Bill Clinton born and raised?"
HOPE = "Bill Clinton was born in Hope, Arkansas."


@pytest.fixture(autouse=True)
def two_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer without passages, and the one with them."""
    monkeypatch.setattr(record, "standard_methods", lambda: ["direct", "rag"])


MENDED = scripted(
    {"contains": "42nd president", "text": HOPE, "times": None},
    {"contains": "", "text": "In New York.", "times": None},
)
"""Right where the passage about Bill Clinton is in view, wrong otherwise."""


def run(folder: Path, open_service: OpenService, *arguments: str) -> int:
    return record.main(arguments, folder=folder, open_service=open_service)


def test_the_questions_are_asked_and_what_shows_most_is_kept(tmp_path: Path, capsys):
    folder = tmp_path / "runs"
    assert run(folder, MENDED, "en-027", "en-001") == 0
    # In the other one RAG is as wrong as Direct.
    assert choice(folder).recorded == {"en-027": {"rag": "stays_wrong"}, "en-001": {"rag": "mends"}}
    listed = {one.id: one.chosen for one in recordings(folder)}
    assert list(listed) == ["sample-en-001", "sample-en-027"]
    assert listed["sample-en-001"].shows == {"rag": "mends"}
    assert listed["sample-en-001"].answer == "Hope, Arkansas"
    assert listed["sample-en-027"].fails == {"rag": "stays_wrong"}
    trace = load_recording("sample-en-001", folder)
    assert trace.header.spec.question == QUESTION
    assert {event.run for event in trace.events} == {"sample-en-001"}
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["rag"].text == HOPE
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == f"en-001: {len(trace.events)} events, run_finished"
    assert printed[2:] == [
        "chosen: 2 of 2 runs",
        "  en-027 shows: nothing",
        "  en-027 fails: rag stays_wrong",
        "  en-001 shows: rag mends",
        "  en-001 fails: nothing",
    ]


def test_the_listed_questions_are_recorded_unless_others_are_named(tmp_path: Path):
    kept = tmp_path / "kept"
    assert run(tmp_path / "runs", MENDED, "--keep", str(kept)) == 0
    asked = record.recorded_questions()
    assert sorted(path.stem for path in kept.glob("*.jsonl")) == sorted(asked)
    assert list(choice(tmp_path / "runs").recorded) == asked


def test_the_listed_questions_are_sample_questions_that_nothing_is_measured_with():
    rows = {row["id"]: row for row in questions()}
    asked = [rows[name] for name in record.recorded_questions()]
    assert len(asked) == len({row["article"] for row in asked}) == 12
    assert {row["kind"] for row in asked} <= {"fact", "misconception"}
    held_out = {row["question"] for row in questions("held_out_questions.csv")}
    assert not held_out & {row["question"] for row in asked}


def test_runs_that_are_no_longer_chosen_are_removed(tmp_path: Path):
    (tmp_path / "en-018.jsonl").write_text("an earlier one")
    (tmp_path / "README.md").write_text("No run.")
    assert run(tmp_path, MENDED, "en-001") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README.md",
        CHOSEN,
        "en-001.jsonl",
    ]


def test_what_is_kept_already_is_not_recorded_again(tmp_path: Path, capsys):
    kept, first, second = tmp_path / "kept", tmp_path / "first", tmp_path / "second"
    assert run(first, MENDED, "en-001", "--keep", str(kept)) == 0
    capsys.readouterr()
    assert run(second, scripted(), "en-001", "--keep", str(kept)) == 0
    assert capsys.readouterr().out.startswith("chosen: 1 of 1 runs")
    for name in ("en-001.jsonl", CHOSEN):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_where_a_question_was_not_answered_the_recordings_stay(tmp_path: Path, capsys):
    (tmp_path / "en-001.jsonl").write_text("as it was")
    assert run(tmp_path, scripted(), "en-001") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["en-001.jsonl"]
    assert (tmp_path / "en-001.jsonl").read_text() == "as it was"
    said = capsys.readouterr()
    assert said.out.endswith("run_failed\n")
    assert said.err == "not answered, nothing is chosen: en-001\n"


def test_a_question_that_does_not_exist_is_said(tmp_path: Path, capsys):
    assert run(tmp_path, MENDED, "en-999") == 1
    assert "no sample question 'en-999'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_asking_for_help_makes_no_folder(tmp_path: Path, capsys):
    with pytest.raises(SystemExit):
        record.main(["--help"], folder=tmp_path / "runs")
    assert "python -m pipelines.samples.record" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
