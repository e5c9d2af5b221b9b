"""Recording the samples anew, with models that answer from a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.methods.registry import METHODS
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import RunFinished
from pipelines.samples import record
from pipelines.store.recordings import load_recording, recordings

OpenService = Callable[[Path], Service]


@pytest.fixture(autouse=True)
def one_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "METHODS", {"direct": METHODS["direct"]})


def scripted(*replies: str) -> OpenService:
    """Services whose every model answers with `replies`."""

    def open_service(data: Path) -> Service:
        return Service(
            data,
            pool=ModelPool(lambda spec, key, progress: ScriptedModel.from_replies(replies)),
            libraries=Libraries(data / "index", find_embedder=lambda: None),
        )

    return open_service


def test_the_questions_are_asked_and_kept_under_their_names(tmp_path: Path, capsys):
    folder = tmp_path / "runs"
    arguments = ["en-001", "zh-001"]
    assert record.main(arguments, folder=folder, open_service=scripted("In Hope.")) == 0
    assert [one.id for one in recordings(folder)] == ["sample-en-001", "sample-zh-001"]
    trace = load_recording("sample-en-001", folder)
    assert trace.header.spec.question == "Where was Bill Clinton born and raised?"
    assert {event.run for event in trace.events} == {"sample-en-001"}
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["direct"].text == "In Hope."
    assert load_recording("sample-zh-001", folder).header.language == "zh"
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"en-001: {len(trace.events)} events, run_finished"
    assert len(printed) == 2


def test_the_listed_questions_are_recorded_unless_others_are_named(tmp_path: Path):
    assert record.main([], folder=tmp_path, open_service=scripted("In Hope.")) == 0
    assert [one.id for one in recordings(tmp_path)] == [f"sample-{q}" for q in record.QUESTIONS]


def test_a_question_that_was_not_answered_keeps_its_recording(tmp_path: Path, capsys):
    (tmp_path / "en-001.jsonl").write_text("as it was")
    assert record.main(["en-001"], folder=tmp_path, open_service=scripted()) == 1
    assert (tmp_path / "en-001.jsonl").read_text() == "as it was"
    assert capsys.readouterr().out.endswith("run_failed\n")


def test_a_question_that_does_not_exist_is_said(tmp_path: Path, capsys):
    assert record.main(["en-999"], folder=tmp_path, open_service=scripted("x")) == 1
    assert "no sample question 'en-999'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_asking_for_help_makes_no_folder(tmp_path: Path, capsys):
    with pytest.raises(SystemExit):
        record.main(["--help"], folder=tmp_path / "runs")
    assert "python -m pipelines.samples.record" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
