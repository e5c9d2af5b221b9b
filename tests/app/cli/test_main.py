"""The command line, in this process: what it prints, and how it exits."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app.cli.main import database_first
from pipelines.run.events import event_adapter
from tests.app.cli.conftest import CommandLine
from tests.scripted.cli import write_script

QUESTION = "Where was Bill Clinton born?"


@pytest.fixture
def run(tmp_path: Path, sample_index: Path, command_line: CommandLine) -> CommandLine:
    """Runs a command on a folder of its own; gives status, standard output and error."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index").symlink_to(sample_index)

    return partial(command_line, "--data", str(tmp_path / "data"))


@pytest.fixture
def scripted(tmp_path: Path) -> list[str]:
    return ["--profile", "scripted", "--model", str(write_script(tmp_path / "script.json"))]


def ask(run, scripted, *more: str):
    return run(
        "ask", QUESTION, "--method", "drad", "--evidence", "bm25", *scripted, "--set",
        "drad.theta_2=null", *more,
    )  # fmt: skip


def test_ask_prints_every_event_and_ends_with_both_answers(run, scripted):
    status, out, _ = ask(run, scripted, "--json")
    assert status == 0
    events = [event_adapter.validate_json(line) for line in out.splitlines()]
    assert events[0].kind == "run_started"
    last = json.loads(out.splitlines()[-1])
    assert last["kind"] == "run_finished"
    assert last["answers"]["drad"]["original"] == "Clinton was born in Paris."
    assert last["answers"]["drad"]["text"] == "Clinton was born in Hope."


def test_a_run_can_be_listed_shown_replayed_exported_imported_and_deleted(run, scripted, tmp_path):
    ask(run, scripted, "--json")
    status, out, _ = run("list", "--json")
    (listed,) = [json.loads(line) for line in out.splitlines()]
    assert (status, listed["question"], listed["status"]) == (0, QUESTION, "finished")
    run_id = listed["id"]
    assert QUESTION in run("list")[1]

    status, out, _ = run("show", run_id)
    assert status == 0
    assert "Clinton was born in Hope." in out

    status, out, _ = run("replay", run_id, "--json")
    assert status == 0
    assert json.loads(out.splitlines()[-1])["answers"]["drad"]["text"].endswith("Hope.")

    file = tmp_path / "run.jsonl"
    assert run("export", run_id, "--to", str(file))[0] == 0
    assert run("export", run_id)[1] == file.read_text(encoding="utf-8")
    status, out, _ = run("import", str(file))
    imported = out.strip()
    assert status == 0
    assert imported != run_id
    assert "Clinton was born in Hope." in run("show", imported)[1]

    # As a process leaves it that was killed half-way.
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    cut = run("import", str(file))[1].strip()
    status, out, _ = run("replay", cut)
    assert status == 1
    assert "It ended early, and nothing more was recorded." in out

    assert run("delete", run_id)[0] == 0
    status, _, err = run("show", run_id)
    assert status == 1
    assert "run" in err


def test_the_terminal_tells_the_run_as_it_happens(run, scripted):
    status, out, err = ask(run, scripted)
    assert status == 0
    assert "doubtful 'Paris'" in err
    assert "search" in err
    assert "answer: Clinton was born in Hope." in out


def test_a_failed_run_exits_with_one_and_says_why(run, tmp_path):
    empty = tmp_path / "empty.json"
    write_script(empty, replies=[])
    status, out, _ = run(
        "ask", QUESTION, "--method", "direct", "--profile", "scripted", "--model", str(empty),
        "--json",
    )  # fmt: skip
    assert status == 1
    last = json.loads(out.splitlines()[-1])
    assert (last["kind"], last["error"]["code"]) == ("run_failed", "missing_reply")


def test_a_run_that_ended_with_errors_exits_with_three(run, scripted):
    # There is no proxy.
    options = ("--set", "drad.confidence=proxy", "--method", "direct")
    status, out, _ = ask(run, scripted, *options)
    assert status == 3
    assert "answer: Clinton was born in Paris." in out
    assert "failed: " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "  "], "empty"),
        (["ask", "Who?", "--set", "drad.nonsense"], "METHOD.SETTING=VALUE"),
        (["ask", "Who?", "--set", "rag.passages=2"], "rag.passages"),
        (["ask", "Who?", "--set", "drad.theta_1=7"], "theta_1"),
        (["ask", "Who?", "--profile", "openai"], "--model"),
        (["import", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_unusable_input_exits_with_two_and_says_what_to_do(run, arguments, said):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert said in err


def test_index_reports_what_it_did_and_is_quick_the_second_time(run):
    status, out, _ = run("index")
    assert status == 0
    assert "documents" in out
    documents = int(out.split()[0])
    again = run("index")[1]
    assert f"{documents} reused" in again


def test_a_reader_that_has_gone_is_no_failure():
    script = (
        "import sys; from pipelines.errors import exit_status\n"
        "sys.exit(exit_status(lambda: [print('x' * 100_000) for _ in range(100)] and 0))"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_the_estimate_and_the_limits_stand_before_the_run(run, scripted):
    status, _, err = ask(run, scripted, "--max-calls", "50", "--json")
    assert status == 0
    assert err.startswith("Expected: about ")
    assert "; limit: 50 calls" in err.splitlines()[0]
    assert err.splitlines()[-1].startswith("Taken: 2 calls, ")


def test_a_run_that_is_expected_to_pass_a_limit_is_not_started(run, scripted):
    status, out, err = ask(run, scripted, "--method", "rowen", "--max-calls", "1")
    assert (status, out) == (2, "")
    assert "limit 1" in err
    assert "start it anyway" in err
    assert run("list")[1] == ""


def test_a_run_that_reaches_a_limit_is_finished_with_errors(run, scripted):
    # The draft is the only call: the correction is not made, and the draft is the answer.
    status, out, err = ask(run, scripted, "--max-calls", "1", "--anyway")
    assert status == 3
    assert "answer: Clinton was born in Paris." in out
    assert "remarks: limit_reached" in out
    assert "limit of calls: 1." in out
    assert err.splitlines()[-1].endswith("stopped at the limit of calls")


@pytest.mark.parametrize(
    ("option", "value"), [("calls", "0"), ("tokens", "x"), ("seconds", "0"), ("money", "-1")]
)
def test_a_limit_that_is_none_is_refused(run, scripted, option, value):
    try:
        status = ask(run, scripted, f"--max-{option}", value)[0]
    except SystemExit as ended:
        status = ended.code
    assert status == 2


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        (["list", "--database", "a"], ["--database", "a", "list"]),
        (["evaluate", "--database=a", "--yes"], ["--database=a", "evaluate", "--yes"]),
        (["--database", "a", "list"], ["--database", "a", "list"]),
        (["list", "--database"], ["list", "--database"]),
        # What is said last counts, as everywhere.
        (
            ["--database", "a", "list", "--database", "b"],
            ["--database", "a", "--database", "b", "list"],
        ),
        (["ask", "--", "--database", "a"], ["ask", "--", "--database", "a"]),
    ],
)
def test_the_database_may_be_named_behind_the_command(given: list[str], parsed: list[str]):
    assert database_first(given) == parsed
