"""Recorded runs of the bundled model, shipped as samples that everybody can read.

`python -m pipelines.samples.record` records them again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pipelines.errors import NotFoundError
from pipelines.paths import SAMPLE_DATA
from pipelines.run.trace import Trace
from pipelines.store.exchange import parse_lines
from pipelines.types import Frozen

FOLDER = SAMPLE_DATA / "runs"
"""Where the recorded runs are kept."""

PREFIX = "sample-"
"""How the address of a sample begins; other runs' have no hyphen."""


class Recording(Frozen):
    """A recorded run as a list shows it. Its `id` is the address it is opened at."""

    id: str
    question: str
    methods: tuple[str, ...]


@cache
def recordings(folder: Path = FOLDER) -> tuple[Recording, ...]:
    """Every recorded run of `folder`, in the order of their files' names."""
    return tuple(
        Recording(
            id=f"{PREFIX}{path.stem}",
            question=header.spec.question,
            methods=tuple(method.name for method in header.spec.methods),
        )
        for path in sorted(folder.glob("*.jsonl"))
        for header in (_trace(path).header,)
    )


def is_recording(run_id: str) -> bool:
    """Whether a run of that id would be a sample."""
    return run_id.startswith(PREFIX)


def load_recording(run_id: str, folder: Path = FOLDER) -> Trace:
    """The recorded run of that id; raises NotFoundError."""
    path = folder / f"{run_id.removeprefix(PREFIX)}.jsonl"
    if run_id not in [one.id for one in recordings(folder)]:
        raise NotFoundError(
            f"There is no recorded sample {run_id!r}.",
            remedy="Choose one of those on the Ask page.",
        )
    return _trace(path)


def _trace(path: Path) -> Trace:
    return Trace(events=parse_lines(path.read_text(encoding="utf-8")))
