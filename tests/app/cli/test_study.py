"""Studies and profiles on the command line, with scripted models."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from app.cli import main as cli
from pipelines.jobs import Job
from pipelines.store import RunStore, file_url
from tests.app.cli.test_evaluate import Line


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, capsys)


def test_the_papers_studies_are_listed_with_their_sources(line: Line):
    status, out, _ = line.call("study", "--list")
    assert status == 0
    assert "slm-mean: The five means of the sentence scores" in out
    assert "Rowen's main table compares CL, CM and Hybrid" in out


def test_a_setting_is_varied_without_a_call_and_the_best_is_saved(line: Line):
    evaluation = line.evaluated()
    line.script.unlink()
    vary = ("study", "--evaluation", evaluation, "--vary", "max_tokens=128,64")
    status, out, err = line.call(*vary, "--choose", "accuracy", "--save-profile", "Best")
    assert status == 0, err
    assert "5 of 5 answers replayed" in err
    assert "Saved as the profile 'Best'." in err
    # Four of five are right with the recorded 128 tokens; with 64 every answer needs a call.
    row = next(one for one in out.splitlines() if one.startswith(">* max_tokens=128"))
    assert row.split()[2:5] == ["5", "0", "0.80"]
    assert "max_tokens=64" in out
    assert max(map(cell_len, out.splitlines())) <= 120
    status, out, _ = line.call(*vary, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["max_tokens"], row["replayed"], row["diverged"]) for row in rows] == [
        ("128", "5", "0"), ("64", "0", "5"),
    ]  # fmt: skip
    assert [row["accuracy"] for row in rows] == ["0.8", ""]
    status, out, _ = line.call(*vary, "--format", "jsonl")
    head, *points = map(json.loads, out.splitlines())
    assert head["study"]["choice"]["point"] == 0
    assert [point["diverged"] for point in points] == [0, 5]
    status, out, _ = line.call("profiles", "show", "Best")
    assert status == 0
    assert f"from evaluation {evaluation}" in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--metrics", "nonsense"), "no metric 'nonsense'"),
        (("--metrics", "accuracy", "--format", "csv"), "columns of the format text"),
    ],
)
def test_a_study_that_is_refused_saves_no_profile(line: Line, given: tuple[str, ...], said: str):
    vary = ("study", "--evaluation", line.evaluated(), "--vary", "max_tokens=128,64")
    status, _, err = line.call(*vary, "--choose", "accuracy", "--save-profile", "Best", *given)
    assert (status, said in err) == (2, True)
    assert line.call("profiles", "list")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "expected", "said"),
    [
        ((), 2, "--evaluation ID"),
        (("--evaluation", "x"), 2, "one of: a name"),
        (("slm-mean", "--evaluation", "x"), 1, "no evaluation of that name"),
        (("--evaluation", "x", "--scores", "--vary", "a"), 2, "one of: a name"),
    ],
)
def test_what_is_missing_is_said(line: Line, arguments: tuple[str, ...], expected: int, said: str):
    status, _, err = line.call("study", *arguments)
    assert status == expected
    assert said in err


def test_profiles_are_saved_shown_exported_imported_and_deleted(line: Line):
    save = ("profiles", "save", "Short", "--set", "direct.max_tokens=64")
    assert line.call(*save, "--description", "Short answers.")[0] == 0
    status, _, err = line.call(*save)
    assert status == 2
    assert "already" in err
    assert line.call(*save, "--replace")[0] == 0
    assert line.call("profiles", "list")[1] == "Short  direct\n"
    assert "direct.max_tokens = 64" in line.call("profiles", "show", "Short")[1]
    file = line.folder / "short.json"
    assert line.call("profiles", "export", "Short", "--to", str(file))[0] == 0
    assert line.call("profiles", "delete", "Short")[0] == 0
    assert line.call("profiles", "show", "Short")[0] == 1
    assert line.call("profiles", "import", str(file))[1] == "Short\n"
    listed = json.loads(line.call("profiles", "list", "--json")[1])
    assert listed["settings"] == {"direct": {"max_tokens": 64}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("save", "openai", "--set", "direct.max_tokens=64"), "a kind of model"),
        (("save", "Mine"), "without anything"),
        (("save", "Mine", "--set", "direct.max_tokens=0"), "max_tokens"),
        (("save", "Mine", "--set", "nobody.x=0"), "no setting of a chosen method"),
    ],
)
def test_a_profile_that_no_method_takes_is_refused(
    line: Line, arguments: tuple[str, ...], said: str
):
    status, _, err = line.call("profiles", *arguments)
    assert status == 2
    assert said in err


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"format": "other"}', '{"format": "veriscope-profile-1"}']
)
def test_a_file_that_is_no_profile_is_refused(line: Line, text: str):
    file = line.folder / "p.json"
    file.write_text(text)
    assert line.call("profiles", "import", str(file))[0] == 2


def test_runs_and_evaluations_take_a_profile_and_record_its_name(line: Line):
    line.call("profiles", "save", "Short", "--set", "direct.max_tokens=64")
    ask = ("ask", "What is the capital of land 1?", "--method", "direct", *line.go_on)
    assert line.call(*ask, "--settings-profile", "Short")[0] == 0
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        (run,) = store.list("command-line")
        spec = store.load(run.id, "command-line").header.spec
    assert (spec.profile, spec.methods[0].settings) == ("Short", {"max_tokens": 64})
    # What is given for itself goes before the profile, whose name is then not recorded.
    for given, name, tokens in (((), "Short", 64), (("--set", "direct.max_tokens=32"), "", 32)):
        evaluation = line.evaluated("--settings-profile", "Short", *given)
        assert line.call(*ask, "--settings-profile", "Short", *given)[0] == 0
        with closing(RunStore(file_url(line.folder / "data"))) as store:
            stored = store.evaluations.get(evaluation, "command-line").spec
            newest = store.load(store.list("command-line")[0].id, "command-line").header.spec
        assert (stored["profile"], newest.profile) == (name, name)
        assert stored["systems"][0]["method"]["settings"] == {"max_tokens": tokens}
        assert newest.methods[0].settings == {"max_tokens": tokens}
    assert line.call(*ask, "--settings-profile", "Nobody")[0] == 1


def test_a_study_that_is_interrupted_is_stopped(line: Line, monkeypatch: pytest.MonkeyPatch):
    evaluation = line.evaluated()

    begun: list[Job[Any, Any]] = []

    async def interrupted(work: Any, *_: object) -> None:
        # Opening the service asks for a thread too.
        if isinstance(job := getattr(work, "__self__", None), Job):
            begun.append(job)
        raise asyncio.CancelledError

    monkeypatch.setattr("app.cli.study.asyncio.to_thread", interrupted)
    options = ("study", "--evaluation", evaluation, "--vary", "max_tokens=64")
    with pytest.raises(asyncio.CancelledError):
        cli.main(["--data", str(line.folder / "data"), *options])
    assert [one.stopped for one in begun] == [True]
    assert begun[0].wait(60)
