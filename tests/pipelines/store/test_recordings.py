"""The recorded samples: found by their address, everybody's, and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.run.events import Trace
from pipelines.store import new_run_id
from pipelines.store.exchange import (
    CHOSEN,
    PREFIX,
    ChosenRun,
    RecordingChoice,
    choice,
    export_lines,
    is_recording,
    load_recording,
    recordings,
)
from tests.pipelines.store import examples


def keep(folder: Path, name: str) -> Trace:
    """A whole run in the file `name`."""
    trace = Trace(events=tuple(examples.complete(f"{PREFIX}{name}")))
    (folder / f"{name}.jsonl").write_text("".join(export_lines(trace)), encoding="utf-8")
    return trace


def test_recordings_are_listed_by_the_names_of_their_files(tmp_path: Path):
    for name in ("en-002", "en-001"):
        keep(tmp_path, name)
    (tmp_path / "README.md").write_text("No run.")
    listed = recordings(tmp_path)
    assert [one.id for one in listed] == ["sample-en-001", "sample-en-002"]
    assert {one.question for one in listed} == {examples.QUESTION}
    assert {one.language for one in listed} == {"zh"}
    assert listed[0].methods == ("drad", "rag")


def test_a_recording_says_why_it_was_chosen(tmp_path: Path):
    for name in ("en-001", "en-002"):
        keep(tmp_path, name)
    chosen = ChosenRun(run="en-002", answer="Hope", shows={"drad": "corrects"})
    why = RecordingChoice(recorded={"en-002": {"drad": "corrects"}}, runs=(chosen,))
    (tmp_path / CHOSEN).write_text(why.model_dump_json(), encoding="utf-8")
    assert choice(tmp_path) == why
    assert [one.chosen for one in recordings(tmp_path)] == [ChosenRun(run="en-001"), chosen]


def test_a_recording_is_read_as_it_was_written(tmp_path: Path):
    kept = keep(tmp_path, "en-001")
    trace = load_recording("sample-en-001", tmp_path)
    assert trace == kept
    assert trace.header.run == "sample-en-001"


@pytest.mark.parametrize(
    "name", ["sample-other", "sample-", "sample-../en-001", "sample-sample-en-001", "en-001", ""]
)
def test_nothing_else_is_read(tmp_path: Path, name: str):
    (tmp_path / "runs").mkdir()
    keep(tmp_path, "en-001")
    keep(tmp_path / "runs", "en-002")
    with pytest.raises(NotFoundError) as caught:
        load_recording(name, tmp_path / "runs")
    assert caught.value.remedy


def test_no_folder_is_no_recording(tmp_path: Path):
    assert recordings(tmp_path / "nowhere") == ()
    assert choice(tmp_path / "nowhere") == RecordingChoice()
    with pytest.raises(NotFoundError):
        load_recording("sample-en-001", tmp_path / "nowhere")


def test_a_recording_that_is_broken_is_said_to_be(tmp_path: Path):
    (tmp_path / "en-001.jsonl").write_text("{\n")
    with pytest.raises(InvalidInputError, match="Line 1"):
        recordings(tmp_path)


def test_a_samples_address_is_told_from_a_runs():
    assert is_recording("sample-en-001")
    assert not any(is_recording(new_run_id()) for _ in range(50))


def test_the_shipped_recordings_are_whole_runs_at_their_own_addresses():
    for one in recordings():
        trace = load_recording(one.id)
        assert {event.run for event in trace.events} == {one.id}
        assert trace.terminal is not None
        assert trace.terminal.kind == "run_finished"


def test_the_shipped_recordings_are_those_that_were_chosen():
    assert {one.chosen.run for one in recordings()} == {one.run for one in choice().runs}
    for one in recordings():
        found = choice().recorded[one.chosen.run]
        assert one.chosen.answer
        assert one.chosen.shows or one.chosen.fails
        assert (one.chosen.shows | one.chosen.fails).items() <= found.items()
