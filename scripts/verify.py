"""Run every check, long tests too, and keep the outcome: `python -m scripts.verify [pytest args]`.

Writes `verify-results/<date>.md`, whatever the outcome, and exits 1 unless all passed. All steps
together may take `LIMIT` seconds, more on a processor that is slower than the reference; what is
still running then is stopped and counts as failed. The shipped default answers `QUESTIONS`
questions: that it does is checked, its figures are only shown.
"""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from components.base.words import Catalogue, duration
from tests.drawing import DRAWN

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "verify-results"
LIMIT = 70 * 60.0
"""Seconds that all steps may take on the reference processor."""

REFERENCE = 0.35
"""Seconds that the reference processor takes to count, see `slowness`."""

SLOWEST = 10
QUESTIONS = 8
PARTS = {
    "long tests, one at a time": ("alone", 0),
    "long tests": ("verify and not alone", 2),
    "short tests": ("not verify", 2),
}
"""The tests in three parts: how pytest selects them, and in how many processes they run.

What only a verification runs comes first: `make test` has run the short ones before.
"""


@dataclass(frozen=True)
class Step:
    """One check that was run. `outcome` is passed, failed or stopped; `seconds` is wall time."""

    name: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class Counts:
    """What pytest counted, and its slowest tests as (name, seconds), slowest first.

    `functions` are test functions; the other counts are of cases, of which a function has one for
    each of its parameters.
    """

    functions: int
    passed: int
    failed: int
    errors: int
    skipped: int
    slowest: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Verification:
    """Everything the result file says.

    `slowness` is how many times as long as the reference processor this one takes. `tests` is None
    when a part of the tests left no report. `answers` is the report on the shipped default in
    Markdown, empty when there is none.
    """

    started: datetime
    commit: str
    slowness: float
    steps: tuple[Step, ...]
    tests: Counts | None
    answers: str

    @property
    def passed(self) -> bool:
        """Whether every step passed, tests were run and the default was asked."""
        reported = self.tests is not None and bool(self.answers)
        return reported and all(step.outcome == "passed" for step in self.steps)


def run_step(name: str, command: Sequence[str | Path], seconds: float) -> Step:
    """Run `command` in the open for at most `seconds`, then stop it and all it started."""
    print(f"\n== {name}", flush=True)
    started = time.monotonic()
    if seconds <= 0:
        return Step(name, "stopped", 0.0)
    # Its own process group, because a test's browsers and servers have to go with it.
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        code = process.wait(timeout=seconds)
        outcome = "passed" if code == 0 else "failed"
    except subprocess.TimeoutExpired:
        outcome = "stopped"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Step(name, outcome, time.monotonic() - started)


def read_tests(report: Path) -> Counts | None:
    """Return the counts in pytest's JUnit XML file, or None when there is no readable one."""
    try:
        suite = ElementTree.parse(report).getroot().find("testsuite")
    except (OSError, ElementTree.ParseError):
        return None
    if suite is None:
        return None
    total, failed, errors, skipped = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    )
    timed = [
        (f"{case.get('classname')}::{case.get('name')}", float(case.get("time", "0")))
        for case in suite.iter("testcase")
    ]
    timed.sort(key=lambda item: -item[1])
    functions = len({name.partition("[")[0] for name, _ in timed})
    passed = total - failed - errors - skipped
    return Counts(functions, passed, failed, errors, skipped, tuple(timed[:SLOWEST]))


def together(parts: Sequence[Counts | None]) -> Counts | None:
    """Return the counts of all parts of the tests, None where one of them left no report."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    slowest = sorted((one for part in known for one in part.slowest), key=lambda one: -one[1])
    return Counts(
        functions=sum(part.functions for part in known),
        passed=sum(part.passed for part in known),
        failed=sum(part.failed for part in known),
        errors=sum(part.errors for part in known),
        skipped=sum(part.skipped for part in known),
        slowest=tuple(slowest[:SLOWEST]),
    )


def render(result: Verification) -> str:
    """Return the result file's text."""
    t = Catalogue("en")
    total = duration(sum(step.seconds for step in result.steps), t)
    lines = [
        f"# Verification of {result.started:%Y-%m-%d}",
        "",
        f"- Outcome: **{'passed' if result.passed else 'failed'}**",
        f"- Commit: {result.commit}",
        f"- Python: {platform.python_version()} on {platform.system()} {platform.machine()},"
        f" {os.cpu_count()} cores, {result.slowness:.1f} times the time of the reference processor",
        f"- Started: {result.started:%Y-%m-%d %H:%M} UTC, took {total}",
        f"- Drawn by: {DRAWN}={result.started:%Y%m%d}",
        "",
        "| Step | Outcome | Duration |",
        "|---|---|---|",
        *(f"| {one.name} | {one.outcome} | {duration(one.seconds, t)} |" for one in result.steps),
        "",
    ]
    lines += ["The tests left no report.", ""] if result.tests is None else _tested(result.tests, t)
    if not result.answers:
        return "\n".join([*lines, "The default left no report.", ""])
    # Its headings become parts of this file.
    return "\n".join([*lines, re.sub(r"^#", "##", result.answers, flags=re.MULTILINE)])


def _tested(tests: Counts, t: Catalogue) -> list[str]:
    cases = (tests.passed, tests.failed, tests.errors, tests.skipped)
    counts = (tests.functions, sum(cases), *cases)
    return [
        "| Test functions | Cases | passed | failed | errors | skipped |",
        "|---|---|---|---|---|---|",
        f"| {' | '.join(f'{count:,}' for count in counts)} |",
        "",
        "| Slowest tests | Duration |",
        "|---|---|",
        *(f"| {name} | {duration(seconds, t)} |" for name, seconds in tests.slowest),
        "",
    ]


def current_commit(root: Path) -> str:
    """Return the commit of the tree at `root`, and whether files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        return f"{commit}, with changes not committed" if git("status", "--porcelain") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown (not a git checkout)"


def slowness() -> float:
    """Return how many times as long as the reference processor this one takes to count, at
    least 1.
    """

    def count() -> float:
        started, total = time.process_time(), 0
        for number in range(5_000_000):
            total += number * number % 7
        return time.process_time() - started

    # The fastest of three is the one that nothing disturbed.
    return max(1.0, min(count() for _ in range(3)) / REFERENCE)


def verify(pytest_arguments: Sequence[str], limit: float = LIMIT) -> Verification:
    """Run all steps, each in the time the ones before it left of `limit` reference seconds."""
    slower = slowness()
    started, deadline = datetime.now(UTC), time.monotonic() + limit * slower
    commit = current_commit(ROOT)
    # One day for all parts, also where midnight passes.
    os.environ[DRAWN] = f"{started:%Y%m%d}"
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.md"
        reports = {name: Path(folder) / f"{at}.xml" for at, name in enumerate(PARTS)}
        module = [sys.executable, "-m"]
        default = ["research.default_report", "--limit", f"{QUESTIONS}"]
        commands = {
            "ruff check": [*module, "ruff", "check"],
            "ruff format": [*module, "ruff", "format", "--check"],
            "basedpyright": [*module, "basedpyright"],
            "answers of the default": [*module, *default, "--output", answers],
        }
        for name, (chosen, processes) in PARTS.items():
            # In their own order: what is long comes first (tests/drawing.py).
            files = ["--dist", "loadfile", "--no-loadscope-reorder"]
            spread = ["--numprocesses", f"{processes}", *files] if processes else []
            command = [*module, "pytest", "-m", chosen, *spread, f"--junitxml={reports[name]}"]
            commands[name] = [*command, *pytest_arguments]
        steps = tuple(
            run_step(name, command, deadline - time.monotonic())
            for name, command in commands.items()
        )
        tests = together([read_tests(report) for report in reports.values()])
        shown = answers.read_text(encoding="utf-8") if answers.exists() else ""
    return Verification(started, commit, slower, steps, tests, shown)


def save(result: Verification, folder: Path) -> Path:
    """Write the result file of the day, in place of an earlier one of the same day."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{result.started:%Y-%m-%d}.md"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(render(result), encoding="utf-8")
    unfinished.replace(path)
    return path


if __name__ == "__main__":
    outcome = verify(sys.argv[1:])
    written = save(outcome, RESULTS)
    print(f"\n{render(outcome)}\nWritten to {written.relative_to(ROOT)}")
    sys.exit(0 if outcome.passed else 1)
