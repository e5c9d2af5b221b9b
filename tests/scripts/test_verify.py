"""The verification's result file and its time limit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts import verify
from scripts.verify import Counts, Step, Verification

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="9.5">
<testcase classname="tests.a" name="test_quick[1]" time="0.5"/>
<testcase classname="tests.a" name="test_quick[x[0]::y]" time="0.4"/>
<testcase classname="tests.a" name="test_slow" time="83.2"/>
<testcase classname="tests.b" name="test_slow" time="0.3"/>
</testsuite></testsuites>
"""


@pytest.fixture
def result() -> Verification:
    return Verification(
        started=datetime(2026, 11, 21, 9, 5, tzinfo=UTC),
        commit="0123abc",
        slowness=2.43,
        steps=(Step("ruff check", "passed", 0.4), Step("pytest", "passed", 723.0)),
        tests=Counts(500, 1200, 0, 0, 3, (("tests.a::test_slow", 83.2),)),
        answers="# The default\n\n## Questions: 12\n\n| Direct | 0 of 12 (0 %) |\n",
    )


def test_the_result_file_says_what_was_run(result: Verification, tmp_path: Path):
    path = verify.save(result, tmp_path / "results")
    assert path.name == "2026-11-21.md"
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    text = path.read_text(encoding="utf-8")
    for line in (
        "# Verification of 2026-11-21",
        "- Outcome: **passed**",
        "- Commit: 0123abc",
        "- Started: 2026-11-21 09:05 UTC, took 12 min 3 s",
        "- Drawn by: VERISCOPE_DRAWN=20261121",
        "| ruff check | passed | 0.40 s |",
        "| pytest | passed | 12 min 3 s |",
        "| Test functions | Cases | passed | failed | errors | skipped |",
        "| 500 | 1,203 | 1,200 | 0 | 0 | 3 |",
        "| tests.a::test_slow | 1 min 23 s |",
        "## The default",
        "### Questions: 12",
        # A report, whatever its figures: this verification passed.
        "| Direct | 0 of 12 (0 %) |",
    ):
        assert line in text.splitlines()
    assert text.endswith("|\n")


def test_a_later_run_of_the_day_replaces_its_file(result: Verification, tmp_path: Path):
    verify.save(result, tmp_path)
    path = verify.save(replace(result, commit="4567def"), tmp_path)
    assert "0123abc" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("outcome", ["failed", "stopped"])
def test_one_step_is_enough_to_fail(result: Verification, outcome: str):
    failed = replace(result, steps=(*result.steps, Step("basedpyright", outcome, 1.0)))
    assert result.passed
    assert not failed.passed
    assert "- Outcome: **failed**" in verify.render(failed)


def test_without_a_report_nothing_passed(result: Verification):
    assert not replace(result, tests=None).passed
    text = verify.render(replace(result, tests=None))
    assert "The tests left no report.\n\n## The default" in text


def test_without_the_answers_of_the_default_nothing_passed(result: Verification):
    silent = replace(result, answers="")
    assert not silent.passed
    assert verify.render(silent).endswith("\n\nThe default left no report.\n")


def test_counts_are_read_from_the_report(tmp_path: Path):
    report = tmp_path / "tests.xml"
    assert verify.read_tests(report) is None
    report.write_text(REPORT[:120])
    assert verify.read_tests(report) is None
    report.write_text(REPORT)
    assert verify.read_tests(report) == Counts(
        functions=3,
        passed=4,
        failed=2,
        errors=1,
        skipped=3,
        slowest=(
            ("tests.a::test_slow", 83.2),
            ("tests.a::test_quick[1]", 0.5),
            ("tests.a::test_quick[x[0]::y]", 0.4),
            ("tests.b::test_slow", 0.3),
        ),
    )


def test_the_parts_are_counted_together():
    short = Counts(2, 3, 1, 0, 0, (("a", 5.0), ("b", 1.0)))
    long = Counts(1, 1, 0, 1, 2, (("c", 60.0),))
    assert verify.together([short, long]) == Counts(
        3, 4, 1, 1, 2, (("c", 60.0), ("a", 5.0), ("b", 1.0))
    )
    assert verify.together([short, None]) is None
    assert verify.together([]) is None


@pytest.mark.parametrize(("code", "outcome"), [(0, "passed"), (3, "failed")])
def test_a_step_reports_how_its_command_ended(code: int, outcome: str):
    step = verify.run_step("step", [sys.executable, "-c", f"raise SystemExit({code})"], 60)
    assert (step.name, step.outcome) == ("step", outcome)


def test_a_step_past_its_time_is_stopped():
    forever = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    assert verify.run_step("step", forever, 0.2).outcome == "stopped"


def test_the_steps_share_the_time_and_the_default_is_asked(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    chosen: list[str | Path] = []

    def run(name: str, command: list[str | Path], seconds: float) -> Step:
        asked.append(name)
        # A processor three times as slow has three times as long, less what has passed.
        assert 150 < seconds <= 180
        if "pytest" in command:
            chosen.append(command[command.index("-m", 2) + 1])
            assert command[-1] == "-x"
        if "--output" in command:
            assert command[2:5] == ["research.default_report", "--limit", "8"]
            Path(command[-1]).write_text("# The default\n", encoding="utf-8")
        return Step(name, "passed", 1.0)

    monkeypatch.setattr(verify, "run_step", run)
    monkeypatch.setattr(verify, "slowness", lambda: 3.0)
    found = verify.verify(["-x"], limit=60)
    assert found.slowness == 3
    assert asked == [
        "ruff check",
        "ruff format",
        "basedpyright",
        "answers of the default",
        "long tests, one at a time",
        "long tests",
        "short tests",
    ]
    assert chosen == ["alone", "verify and not alone", "not verify"]
    assert found.answers == "# The default\n"


def test_a_processor_is_never_faster_than_the_reference(monkeypatch: pytest.MonkeyPatch):
    times = iter([0.0, 2.0, 10.0, 10.7, 20.0, 29.0] + [0.0, 0.1] * 3)
    monkeypatch.setattr(verify.time, "process_time", lambda: next(times))
    assert verify.slowness() == pytest.approx(0.7 / 0.35)
    assert verify.slowness() == 1


def test_no_time_left_starts_nothing(tmp_path: Path):
    assert verify.run_step("step", [tmp_path / "missing"], -1.0).outcome == "stopped"


def test_the_commit_says_whether_files_differ_from_it(tmp_path: Path):
    assert verify.current_commit(tmp_path).startswith("unknown")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    commit = verify.current_commit(tmp_path)
    assert len(commit) == 40
    (tmp_path / "new").write_text("")
    assert verify.current_commit(tmp_path) == f"{commit}, with changes not committed"
