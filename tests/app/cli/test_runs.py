"""`python -m pipelines runs`: find, name, compare, report, carry and delete recorded runs."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from pipelines.run.events import RunStarted
from pipelines.store import RunStore, file_url
from tests.app.cli.conftest import CommandLine
from tests.scripted.recorded import CORRECTED, ORIGINAL, Record, full_method


@pytest.fixture
def run(tmp_path: Path, command_line: CommandLine) -> CommandLine:
    """Runs a command on a folder that holds three runs."""
    data = tmp_path / "data"
    data.mkdir()
    with closing(RunStore(file_url(data))) as store:
        for number, (name, methods, answer) in enumerate(
            [
                ("one", ("drad",), CORRECTED),
                ("two", ("drad", "rag"), ORIGINAL),
                ("three", ("rag",), CORRECTED),
            ]
        ):
            record = Record(*methods, run=name, question=f"Where was Ada born ({name})?")
            for method in methods:
                verdict = "doubtful" if name == "one" else "confident"
                full_method(record, method, verdict, answer)
            record.finish()
            first, *rest = record.events
            assert isinstance(first, RunStarted)
            # The first at the beginning of 2026, the others a day later each.
            created = datetime(2026, 1, 1 + number, 12, tzinfo=UTC).timestamp()
            store.create(name, "command-line", first.model_copy(update={"created": created}))
            store.append(name, rest)

    return partial(command_line, "--data", str(data), "runs")


def found(run: CommandLine, *options: str) -> list[str]:
    status, out, _ = run("list", "--json", *options)
    assert status == 0
    return [json.loads(line)["id"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), ["three", "two", "one"]),
        (("--method", "drad"), ["two", "one"]),
        (("--method", "drad", "--verdict", "confident"), ["two"]),
        (("--verdict", "doubtful"), ["one"]),
        (("--text", "(THREE)"), ["three"]),
        (("--since", "2026-01-02"), ["three", "two"]),
        (("--until", "2026-01-02"), ["two", "one"]),
        (("--since", "2026-01-02T13:00+00:00"), ["three"]),
        (("--model", "SmolLM2-135M-Instruct", "--limit", "1", "--offset", "1"), ["two"]),
        (("--tag", "none"), []),
    ],
)
def test_runs_are_found(run: CommandLine, options: tuple[str, ...], ids: list[str]):
    assert found(run, *options) == ids


def test_runs_are_named_tagged_starred_and_noted(run: CommandLine):
    assert run("rename", "one", "The first")[0] == 0
    assert run("note", "one", "Look again.")[0] == 0
    assert run("tag", "one", "two", "--add", "paper", "--add", "draft")[0] == 0
    assert run("tag", "two", "--remove", "draft")[0] == 0
    assert run("star", "one", "two")[0] == 0
    assert run("star", "two", "--remove")[0] == 0
    assert found(run, "--tag", "draft") == ["one"]
    assert found(run, "--starred") == ["one"]
    assert found(run, "--text", "look AGAIN") == ["one"]
    line = next(line for line in run("list")[1].splitlines() if line.startswith("one "))
    assert line.endswith("* The first  [draft, paper]")
    shown = json.loads(run("list", "--json", "--starred")[1])
    assert (shown["name"], shown["note"], shown["tags"]) == (
        "The first",
        "Look again.",
        ["draft", "paper"],
    )
    assert shown["findings"] == [["drad", "doubtful"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tag", "one"], "Give --add TAG or --remove TAG."),
        (["rename", "nobody", "x"], "no such run"),
        (["rename", "one", "sk-" + "a" * 30], "looks like a key"),
        (["export", "one", "two"], "Give --to FILE.zip."),
        (["delete", "one", "nobody", "--yes"], "no such run"),
        (["delete", "one", "two"], "Give --yes"),
        (["report", "nobody"], "no such run"),
        (["diff", "one", "nobody"], "no such run"),
        (["report", "one", "--output", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_says_why_and_does_nothing(
    run: CommandLine, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    status, out, error = run(*arguments)
    # What is not there is no mistake in what was typed.
    assert (status, out) == (1 if said == "no such run" else 2, "")
    assert said in error
    assert found(run) == ["three", "two", "one"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--since", "yesterday"), "write it as 2026-11-01"),
        (("--limit", "9" * 20), "no whole number from 0 to 1000000"),
        (("--offset", "-1"), "no whole number from 0"),
        # What Python makes of the byte FF.
        (("--text", "a\udcff"), r"text is no text in UTF-8: 'a\udcff'"),
        (("--tag", "ok", "--tag", "\udcff"), "tag is no text in UTF-8"),
    ],
)
def test_what_is_no_date_number_or_text_is_a_mistake_of_use(
    run: CommandLine, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        run("list", *arguments)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_two_runs_are_compared(run: CommandLine):
    status, out, _ = run("diff", "two", "one")
    assert status == 0
    lines = out.splitlines()
    # The earlier one is the first, whatever the order of asking.
    assert lines[0].startswith("first  one  2026-01-01 12:00 UTC")
    assert lines[1].startswith("second two")
    assert "  question: Where was Ada born (one)? -> Where was Ada born (two)?" in lines
    assert "  verdict: doubtful -> confident" in lines
    assert "  x: 0.300 -> 0.300 (+0.000), threshold 0.600" in lines
    assert f"  - {CORRECTED}" in lines
    assert f"  + {ORIGINAL}" in lines
    assert "  only in the second run" in lines


def test_a_run_compared_with_itself_has_no_changes(run: CommandLine):
    _, out, _ = run("diff", "one", "one")
    assert "  all the same" in out
    assert "drad: the same answer, verdict and scores" in out


def test_a_report_is_written(run: CommandLine, tmp_path: Path):
    file = tmp_path / "report.html"
    assert run("report", "one", "--output", str(file), "--language", "zh")[0] == 0
    html = file.read_text(encoding="utf-8")
    assert html.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert "Where was Ada born (one)?" in html
    assert run("report", "one")[1].startswith("<!doctype html>")


def test_runs_are_carried_as_a_zip_file_and_deleted(run: CommandLine, tmp_path: Path):
    file = tmp_path / "runs.zip"
    assert run("export", "one", "two", "--to", str(file))[0] == 0
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["veriscope-one.jsonl", "veriscope-two.jsonl"]
    status, out, _ = run("import", str(file))
    assert status == 0
    brought = out.split()
    assert sorted(found(run)) == sorted(["one", "two", "three", *brought])
    assert run("delete", *brought, "--yes")[0] == 0
    assert run("delete", "three")[0] == 0
    assert found(run) == ["two", "one"]


def test_of_a_zip_file_what_is_wrong_is_told(run: CommandLine, tmp_path: Path):
    file = tmp_path / "runs.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("good.jsonl", run("export", "one")[1])
        archive.writestr("bad.jsonl", "{}")
    status, out, error = run("import", str(file))
    assert status == 2
    assert len(out.split()) == 1
    assert error.startswith("bad.jsonl: Line 1")
