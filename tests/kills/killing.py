"""Starts real processes, kills them (-9) at moments drawn at random, and keeps what they said."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from pipelines.run.events import TokenWritten
from tests.kills import work

PRELOADED = [work.__name__]
"""What the process imports from which all others are forked."""

PATIENCE = 120.0
"""Seconds that a process may take: only a fault takes so long."""


@dataclass
class Killer:
    """Processes of one test. `folder` holds what they print; `random` draws the moments."""

    folder: Path
    random: Random
    kills: int = 0
    _started: int = 0
    _context: Any = field(default_factory=lambda: _context())

    def start(self, job: Callable[..., None], *given: Any) -> tuple[BaseProcess, Path]:
        """A process that does `job`, and the file that it prints to."""
        self._started += 1
        output = self.folder / f"{self._started:03}-{job.__name__}.out"
        process = self._context.Process(target=job, args=(output, *given))
        process.start()
        return process, output

    def finish(self, job: Callable[..., None], *given: Any) -> str:
        """What a process prints that nobody kills; it has to end well."""
        process, output = self.start(job, *given)
        process.join(PATIENCE)
        told = output.read_text(encoding="utf-8") if output.exists() else ""
        process.kill()
        assert process.exitcode in (0, 3), told
        return told

    def lasting(self, job: Callable[..., None], *given: Any) -> float:
        """Seconds that `job` takes when nobody kills it."""
        began = time.monotonic()
        self.finish(job, *given)
        return time.monotonic() - began

    def kill(self, longest: float, job: Callable[..., None], *given: Any) -> str:
        """What a process printed before it was killed, some time within `longest` seconds."""
        process, output = self.start(job, *given)
        # Later than it takes to the end now and then: then it is not killed at all.
        process.join(self.random.uniform(0, longest))
        process.kill()
        process.join(PATIENCE)
        self.kills += 1
        return output.read_text(encoding="utf-8") if output.exists() else ""

    def runs(self, data: Path) -> dict[str, list[dict[str, Any]]]:
        """The events of every run, by its id, as a new process finds them; none may be broken."""
        found = {}
        for line in lines(self.finish(work.look_at_runs, data)):
            assert line["wrong"] == [], line
            found[line["run"]] = line["events"]
        return found


def lines(printed: str) -> list[dict[str, Any]]:
    """The JSON of every line that was printed to its end."""
    return [
        json.loads(line)
        for line in printed.splitlines(keepends=True)
        if line.endswith("\n") and line.startswith(("{", "["))
    ]


def check_acknowledged(printed: str, stored: dict[str, list[dict[str, Any]]]) -> str | None:
    """Compare what `ask --json` printed with what is stored of it; how the run ended, if it did.

    A run whose first event was printed is stored, and whole if its last was. The events before are
    stored as they were printed, though not all of them may be, or more than were printed.
    """
    token = TokenWritten.model_fields["kind"].default
    events = [event for event in lines(printed) if event["kind"] != token]
    if not events:
        return None
    kept = stored[events[0]["run"]]
    kept = kept[:-1] if kept[-1].get("reason") == "interrupted" else kept
    differing = [(one, two) for one, two in zip(kept, events, strict=False) if one != two]
    assert differing == []
    end = events[-1]["kind"]
    if not end.startswith("run_") or end == "run_started":
        return None
    assert kept == events
    return end


def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context
