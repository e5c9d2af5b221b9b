"""`python -m pipelines.samples.record`: record the shipped sample runs anew.

The five methods, Direct and RAG answer every question of `sample_data/recorded_questions.csv` with
the embedded model, the sample library and their default settings. The other baselines do not: with
them a run is five times as long to read. The runs that are shipped are then chosen by their
outcomes (`pipelines/samples/choosing.py`); the others are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.registry import standard_methods
from pipelines.paths import SAMPLE_DATA
from pipelines.printable import printable
from pipelines.run.defaults import default_models
from pipelines.run.events import RunFinished
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.trace import Trace
from pipelines.samples.choosing import choose
from pipelines.samples.outcomes import outcomes_of
from pipelines.store.exchange import export_lines, parse_lines
from pipelines.store.recordings import CHOSEN, FOLDER, PREFIX, RecordingChoice
from pipelines.text import detect_language

Row = Mapping[str, str]
"""A question with its right answer, as `sample_data/README.md` describes them."""


def recorded_questions() -> list[str]:
    """Return the ids of the questions that are recorded, in order."""
    return [row["id"] for row in _rows("recorded_questions.csv")]


async def _record(
    rows: Sequence[Row], folder: Path, open_service: Callable[[Path], Service]
) -> list[str]:
    """Record each question into `folder`; returns those that no method answered."""
    unanswered: list[str] = []
    with TemporaryDirectory() as data:
        async with aclosing(open_service(Path(data))) as service:
            for row in rows:
                spec = RunSpec(
                    question=row["question"],
                    methods=tuple(MethodSpec(name=method) for method in standard_methods()),
                    models=default_models(detect_language(row["question"])),
                )
                name = row["id"]
                trace = await service.record(spec, owner="record")
                print(f"{name}: {len(trace.events)} events, {trace.events[-1].kind}", flush=True)
                if not isinstance(trace.terminal, RunFinished):
                    unanswered.append(name)
                    continue
                renamed = {"run": f"{PREFIX}{name}"}
                trace = Trace(events=tuple(one.model_copy(update=renamed) for one in trace.events))
                lines = "".join(export_lines(trace))
                _file(folder, name).write_text(lines, encoding="utf-8")
    return unanswered


def _ship(rows: Sequence[Row], kept: Path, folder: Path) -> RecordingChoice:
    """Choose among the runs in `kept`; `folder` then holds those that were chosen, and why."""
    texts = {row["id"]: _file(kept, row["id"]).read_text(encoding="utf-8") for row in rows}
    choice = choose(
        {row["id"]: outcomes_of(row, Trace(events=parse_lines(texts[row["id"]]))) for row in rows}
    )
    answers = {row["id"]: row["answer"] for row in rows}
    named = tuple(one.model_copy(update={"answer": answers[one.run]}) for one in choice.runs)
    choice = choice.model_copy(update={"runs": named})
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.jsonl"):
        path.unlink()
    for chosen in choice.runs:
        _file(folder, chosen.run).write_text(texts[chosen.run], encoding="utf-8")
    (folder / CHOSEN).write_text(choice.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return choice


def _told(choice: RecordingChoice) -> str:
    """Return what was chosen, in words for a terminal."""
    lines = [f"chosen: {len(choice.runs)} of {len(choice.recorded)} runs"]
    for one in choice.runs:
        for word, found in (("shows", one.shows), ("fails", one.fails)):
            told = ", ".join(f"{method} {outcome}" for method, outcome in found.items())
            lines.append(f"  {one.run} {word}: {told or 'nothing'}")
    return "\n".join(lines)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def _rows(name: str) -> list[dict[str, str]]:
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _asked(names: Sequence[str]) -> list[Row]:
    rows = {row["id"]: row for row in _rows("questions.csv")}
    for name in names:
        if name not in rows:
            raise failure("samples.no_question", name=name)
    return [rows[name] for name in names]


def main(
    arguments: Sequence[str] | None = None,
    *,
    folder: Path = FOLDER,
    open_service: Callable[[Path], Service] = Service,
) -> int:
    """Record the questions anew, or those named, and choose; returns 1 when one could not be.

    Then the shipped runs stay as they are. `open_service` is given the folder for the service's
    data.
    """
    parser = argparse.ArgumentParser(prog="python -m pipelines.samples.record", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="ID", help="instead of those of the file")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep every run here; those that are here already are not recorded again",
    )
    given = parser.parse_args(arguments)
    try:
        rows = _asked(given.questions or recorded_questions())
        with TemporaryDirectory() as temporary:
            kept = given.keep or Path(temporary)
            kept.mkdir(parents=True, exist_ok=True)
            missing = [row for row in rows if not _file(kept, row["id"]).exists()]
            unanswered = asyncio.run(_record(missing, kept, open_service))
            if unanswered:
                print(f"not answered, nothing is chosen: {', '.join(unanswered)}", file=sys.stderr)
                return 1
            print(_told(_ship(rows, kept, folder)))
    except VeriscopeError as error:
        print(printable(f"veriscope: {error}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
