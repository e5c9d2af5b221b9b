"""The command line where something cannot be stored, written or read: messages, no tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from app.cli import main as cli
from pipelines.base import Generation
from pipelines.engine.service import Service
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.scripted import ScriptedModel
from pipelines.store import RunStore, file_url
from tests.pipelines.store import examples
from tests.pipelines.store.read_only import read_only

OWNER = "command-line"


@pytest.fixture
def data(open_folder: Path) -> Path:
    """A data folder with a finished run, and one whose process is gone."""
    with closing(RunStore(file_url(open_folder))) as store:
        store.create("whole", OWNER, examples.started("whole"))
        store.append("whole", examples.complete("whole")[1:])
        store.create("cut", OWNER, examples.started("cut"))
    return open_folder


def ask(folder: Path, answer: str = "Hope.") -> list[str]:
    script = {"name": "s", "replies": [{"contains": "", "tokens": [[answer, 0.9]]}]}
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    model = ["--profile", "scripted", "--model", str(folder / "script.json")]
    return ["ask", "Who?", "--method", "direct", *model]


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_is_no_data_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], below: str):
    (tmp_path / "file").touch()
    assert cli.main(["--data", str(tmp_path / "file" / below), "list"]) == 2
    # Who reads it gave the path.
    path = tmp_path / "file" / below
    assert f"{path} cannot be used as the data folder" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["folder", "file/run.jsonl", "nowhere/run.jsonl", "/dev/full"])
def test_a_run_is_not_exported_where_no_file_can_be(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert cli.main(["--data", str(data), "export", "whole", "--to", str(tmp_path / to)]) == 2
    assert "cannot be written (" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_every_command_ends_what_a_dead_process_began(
    data: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["--data", str(data), "delete", "whole"]) == 0
    with closing(RunStore(file_url(data))) as store:
        # Before anything was listed.
        assert store.recover() == 0
    assert cli.main(["--data", str(data), "list"]) == 0
    assert "  interrupted  " in capsys.readouterr().out
    assert cli.main(["--data", str(data), "show", "cut"]) == 0
    assert "cancelled (interrupted: the program ended" in capsys.readouterr().out


def test_a_read_only_folder_is_listed_shown_and_exported(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    question = ask(data)
    assert cli.main(["--data", str(data), *question, "--json"]) == 0
    asked = json.loads(capsys.readouterr().out.splitlines()[0])["run"]
    with read_only(data):
        assert cli.main(["--data", str(data), "list", "--json"]) == 0
        listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        reasons = {run["id"]: run["reason"] for run in listed}
        assert reasons == {asked: None, "whole": None, "cut": "interrupted"}
        assert cli.main(["--data", str(data), "show", "whole"]) == 0
        assert cli.main(["--data", str(data), "export", "whole"]) == 0
        assert '"run_finished"' in capsys.readouterr().out
        assert cli.main(["--data", str(data), *question]) == 1
        assert cli.main(["--data", str(data), "import", str(tmp_path / "no file")]) == 2
        assert cli.main(["--data", str(data), "delete", "whole"]) == 1
        said = capsys.readouterr().err
        assert said.count("none can be stored. Choose a folder that this account may write") == 2
        assert cli.main(["--data", str(data), "replay", asked]) == 0
        told = capsys.readouterr()
        assert "The replay is not stored." in told.err
        assert "answer: Hope." in told.out


def test_a_disk_that_fills_during_a_run_ends_it_with_that_error(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    disk = {"pages": 2**30}

    class Filling(Service):
        """One whose disk has room for so many pages; SQLite keeps those that are in use."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            event.listen(self.store._database._engine, "begin", self._limit)

        def _limit(self, connection: Any) -> None:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {disk['pages']}")

    generate = ScriptedModel.generate

    async def filling(
        self: ScriptedModel, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        disk["pages"] = 1
        return await generate(self, request, watch)

    monkeypatch.setattr(cli, "Service", Filling)
    monkeypatch.setattr(ScriptedModel, "generate", filling)
    # Longer than what is free on the last page.
    question = ask(open_folder, "word " * 4000)
    assert cli.main(["--data", str(open_folder), *question]) == 1
    told = capsys.readouterr()
    assert "The disk that keeps the runs is full. Free some space there" in told.out + told.err
    assert "Traceback" not in told.err
    with closing(RunStore(file_url(open_folder))) as store:
        store.recover()
        (run,) = store.list(OWNER)
    # Its end fits where all of the run does not; else the next command ends it.
    assert (run.status, run.reason) in (("failed", None), ("cancelled", "interrupted"))


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("mysql://me:hunter2@host/runs", "database of the kind 'mysql'"),
        ("hunter2", "The address of the database cannot be read"),
        ("sqlite:///:memory:", "this address names none"),
    ],
)
def test_an_address_of_no_database_is_refused_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], database: str, said: str
):
    assert cli.main(["--data", str(tmp_path), "--database", database, "list"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "hunter2" not in told


def test_another_file_can_hold_the_runs(data: Path, tmp_path: Path, monkeypatch, capsys):
    runs = f"sqlite:///{data}/veriscope.db"
    assert cli.main(["--data", str(tmp_path), "--database", runs, "list"]) == 0
    assert "whole" in capsys.readouterr().out
    monkeypatch.setenv("VERISCOPE_DATABASE_URL", runs)
    assert cli.main(["--data", str(tmp_path), "list"]) == 0
    assert "whole" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def printing(output: int) -> subprocess.Popen[bytes]:
    """A command that prints a little, as they all do, to `output`."""
    script = (
        "import sys; from pipelines.errors import exit_status\n"
        "sys.exit(exit_status(lambda: print('x')))"
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=output, stderr=subprocess.PIPE)


def test_a_reader_that_has_gone_before_anything_is_printed_is_no_failure():
    with printing(subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_an_output_that_is_full_is_said():
    with Path("/dev/full").open("wb") as full, printing(full.fileno()) as process:
        assert process.stderr is not None
        told = process.stderr.read().decode()
        assert process.wait(60) == 1
    assert told.startswith("veriscope: ")
    assert "No space left on device" in told
    assert "Traceback" not in told


def test_no_name_is_no_folder(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["--data", "", "list"])
    assert "--data" in capsys.readouterr().err
