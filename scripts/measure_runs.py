"""`python -m scripts.measure_runs`: how long the list of runs takes, for docs/runs.md.

It writes 10,000 runs of two methods into a database of its own, in a few seconds, and times what
the Runs page asks for: the count, and one page of twenty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import insert

from pipelines.run.events import MethodSpec, RunSpec
from pipelines.store import RunFilter, RunStore, file_url
from pipelines.store.filters import asked
from pipelines.store.runs import EventCounts
from pipelines.store.tables import EventRow, RunFacetRow, RunLabelRow, RunRow, to_json

RUNS = 10_000
_EVENTS = 5
_PAGE = 20
_TIMES = 5
_VERDICTS = ("supported", "contradicted", "not_enough", "doubtful")
_OWNER = "me"
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Print a row for each question to the list."""
    with TemporaryDirectory() as folder, closing(RunStore(file_url(Path(folder)))) as store:
        _fill(store)
        asked_for = {
            "everything": (RunFilter(), 0),
            "a method and a verdict": (
                RunFilter(methods=("drad",), verdicts=("contradicted",)),
                0,
            ),
            "a word of the question": (RunFilter(text="number 77"), 0),
            "a tag, with a star": (RunFilter(tags=("tag-10",), starred=True), 0),
            "the last page of everything": (RunFilter(), RUNS - _PAGE),
        }
        for name, (where, offset) in asked_for.items():
            found, seconds = _timed(store, where, offset)
            print(f"| {name} | {found:,} | {1000 * seconds:.0f} ms |")
        began = time.perf_counter()
        store.labels.known(_OWNER)
        print(f"what can be chosen: {1000 * (time.perf_counter() - began):.0f} ms")


def _timed(store: RunStore, where: RunFilter, offset: int) -> tuple[int, float]:
    best, found = float("inf"), 0
    for _ in range(_TIMES):
        began = time.perf_counter()
        found = store.count(_OWNER, where)
        store.list(_OWNER, _PAGE, where=where, offset=offset)
        best = min(best, time.perf_counter() - began)
    return found, best


def _fill(store: RunStore) -> None:
    runs, facets, labels, events = [], [], [], []
    for number in range(RUNS):
        run, own, mine, recorded = _run(number)
        runs.append(run)
        facets += own
        labels += mine
        events += recorded
    with store._database.write() as session:
        tables = ((RunRow, runs), (RunFacetRow, facets), (RunLabelRow, labels), (EventRow, events))
        for table, rows in tables:
            session.execute(insert(table), rows)


def _run(number: int) -> tuple[dict[str, Any], list[Any], list[Any], list[Any]]:
    run_id = f"{number:032x}"
    methods = ("drad", "rowen")
    spec = RunSpec(
        question=f"What is the answer to question number {number}?",
        methods=tuple(MethodSpec(name=name) for name in methods),
    )
    verdicts = [_VERDICTS[(number + place) % len(_VERDICTS)] for place in range(len(methods))]
    pairs = {*asked(spec), *(("verdict", one) for one in verdicts)}
    pairs |= {("finding", f"{m}:{v}") for m, v in zip(methods, verdicts, strict=True)}
    if number % 3 == 0:
        pairs.add(("tag", f"tag-{number % 20}"))
    row = {
        "id": run_id,
        "owner": _OWNER,
        "question": spec.question,
        "language": "en",
        "status": "finished",
        "created": _BEGAN + timedelta(minutes=number),
        "finished": None,
        "writer": "w",
        "length": _EVENTS,
        "size": _EVENTS * 2_000,
        "spec": to_json(spec),
        "summary": to_json(EventCounts(methods=methods, duration=4.2, model_calls=41)),
    }
    facets = [
        {"run_id": run_id, "kind": kind, "value": value, "owner": _OWNER} for kind, value in pairs
    ]
    label = {"run_id": run_id, "name": f"Run {number}", "note": "", "starred": number % 10 == 0}
    return row, facets, [label] if number % 5 == 0 else [], list(_events(run_id))


def _events(run_id: str) -> Iterator[dict[str, Any]]:
    """Yield what a list must not read: it lies between what it reads."""
    for seq in range(_EVENTS):
        yield {"run_id": run_id, "seq": seq, "kind": "model_called", "body": {"text": "x" * 2_000}}


if __name__ == "__main__":
    main()
