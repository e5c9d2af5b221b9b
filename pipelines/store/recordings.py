"""Recorded runs of the bundled model, shipped as samples that everybody can read.

`python -m pipelines.samples.record` records them again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipelines.errors import failure
from pipelines.paths import SAMPLE_DATA
from pipelines.run.trace import Trace
from pipelines.store.exchange import parse_lines
from pipelines.types import Frozen, Language

FOLDER = SAMPLE_DATA / "runs"
"""Where the recorded runs are kept."""

PREFIX = "sample-"
"""How the address of a sample begins; other runs' have no hyphen."""


CHOSEN = "chosen.json"
"""The file beside the runs that says why they were chosen."""

Outcome = Literal[
    "corrects",
    "catches",
    "mends",
    "withholds",
    "spoils",
    "misses",
    "stays_wrong",
    "unchecked",
    "doubts",
    "confirms",
    "lucky",
]
"""What a method made of a question whose right answer is known.

A wrong original is doubted and comes out right (`corrects`), or wrong again (`stays_wrong`), or no
answer is given (`withholds`); a method that only judges it `catches` it. It is not noticed
(`misses`), could not be checked (`unchecked`), or comes out right all the same (`lucky`). A right
original is left alone (`confirms`), doubted without harm (`doubts`), or lost (`spoils`). The
original of a method that judges nothing is the answer without passages, which it `mends`.
"""


class ChosenRun(Frozen):
    """Why a run was chosen: the methods that do in it what they are for, and those that fail.

    `run` is the id of its question, `answer` the right one.
    """

    run: str
    answer: str = ""
    shows: dict[str, Outcome] = Field(default_factory=dict)
    fails: dict[str, Outcome] = Field(default_factory=dict)


class RecordingChoice(Frozen):
    """The runs that were chosen, and what every method made of every question recorded."""

    recorded: dict[str, dict[str, Outcome]] = Field(default_factory=dict)
    runs: tuple[ChosenRun, ...] = ()


class Recording(Frozen):
    """A recorded run as a list shows it. Its `id` is the address it is opened at."""

    id: str
    question: str
    language: Language
    methods: tuple[str, ...]
    chosen: ChosenRun


@cache
def choice(folder: Path = FOLDER) -> RecordingChoice:
    """Return why the runs of `folder` were chosen; where nothing says so, there are no reasons."""
    path = folder / CHOSEN
    return (
        RecordingChoice.model_validate_json(path.read_bytes())
        if path.exists()
        else RecordingChoice()
    )


@cache
def recordings(folder: Path = FOLDER) -> tuple[Recording, ...]:
    """Return every recorded run of `folder`, in the order of their files' names."""
    reasons = {one.run: one for one in choice(folder).runs}
    return tuple(
        Recording(
            id=f"{PREFIX}{path.stem}",
            question=header.spec.question,
            language=header.language,
            methods=tuple(method.name for method in header.spec.methods),
            chosen=reasons.get(path.stem, ChosenRun(run=path.stem)),
        )
        for path in sorted(folder.glob("*.jsonl"))
        for header in (_trace(path).header,)
    )


def is_recording(run_id: str) -> bool:
    """Return whether a run of that id would be a sample."""
    return run_id.startswith(PREFIX)


def load_recording(run_id: str, folder: Path = FOLDER) -> Trace:
    """Return the recorded run of that id; raises NotFoundError."""
    path = folder / f"{run_id.removeprefix(PREFIX)}.jsonl"
    if run_id not in [one.id for one in recordings(folder)]:
        raise failure("storage.no_sample", name=run_id)
    return _trace(path)


def _trace(path: Path) -> Trace:
    return Trace(events=parse_lines(path.read_text(encoding="utf-8")))
