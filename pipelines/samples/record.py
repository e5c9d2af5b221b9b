"""`python -m pipelines.samples.record`: record the shipped sample runs anew.

Every method answers every question listed here with the embedded model, the sample library and
its default settings.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.engine.service import Service
from pipelines.errors import NotFoundError, VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.run.defaults import default_models
from pipelines.run.events import RunFinished
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.trace import Trace
from pipelines.store.exchange import export_lines
from pipelines.store.recordings import FOLDER, PREFIX

QUESTIONS = ("en-001", "en-016", "en-018")
"""The sample questions that are recorded."""

_QUESTIONS = FOLDER.parent / "questions.csv"


async def _record(name: str, question: str, open_service: Callable[[Path], Service]) -> Trace:
    """One question, all methods, on the embedded model."""
    spec = RunSpec(
        question=question,
        methods=tuple(MethodSpec(name=method) for method in METHODS),
        models=default_models(),
    )
    with TemporaryDirectory() as folder:
        async with aclosing(open_service(Path(folder))) as service:
            trace = await service.record(spec, owner="record")
    renamed = {"run": f"{PREFIX}{name}"}
    return Trace(events=tuple(event.model_copy(update=renamed) for event in trace.events))


def _asked(name: str) -> str:
    with _QUESTIONS.open(encoding="utf-8", newline="") as file:
        asked = {row["id"]: row["question"] for row in csv.DictReader(file)}
    if name not in asked:
        raise NotFoundError(
            f"There is no sample question {name!r}.", remedy=f"Choose an id of {_QUESTIONS.name}."
        )
    return asked[name]


def main(
    arguments: Sequence[str] | None = None,
    *,
    folder: Path = FOLDER,
    open_service: Callable[[Path], Service] = Service,
) -> int:
    """Record the questions anew, or those named; returns 1 when one could not be.

    A question that no method answered keeps the recording it had. `open_service` is given the
    folder for the service's data.
    """
    parser = argparse.ArgumentParser(prog="python -m pipelines.samples.record", description=__doc__)
    parser.add_argument("questions", nargs="*", default=list(QUESTIONS), metavar="ID")
    names = parser.parse_args(arguments).questions
    folder.mkdir(exist_ok=True)
    unanswered = 0
    try:
        for name in names:
            trace = asyncio.run(_record(name, _asked(name), open_service))
            print(f"{name}: {len(trace.events)} events, {trace.events[-1].kind}")
            if not isinstance(trace.terminal, RunFinished):
                unanswered += 1
                continue
            (folder / f"{name}.jsonl").write_text("".join(export_lines(trace)), encoding="utf-8")
    except VeriscopeError as error:
        print(f"veriscope: {error}", file=sys.stderr)
        return 1
    return 1 if unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
