"""How long results of a large evaluation take, and how much memory.

`python -m scripts.bench_results` prints it. Three systems answer 10,000 made-up questions. What is
measured is computing their scores, with all metrics, which an evaluation does while it is carried
out; computing the overview; then what a page does that opens them in a new process, where the
overview is shown first; and what it does for a part of the items: the table, which is shown first,
and all that is drawn after it.

What a part takes is a ratio too, which means the same on any machine: to one pass over its draws,
without which no interval can be known.
"""

from __future__ import annotations

import random
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from sqlalchemy import insert, update

from pipelines.base import Passage
from pipelines.evaluation.outcomes import Cost, Outcome, SpanVerdict
from pipelines.evaluation.plan import EvaluationSpec, Item, System
from pipelines.evaluation.results.compare import comparison
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import (
    Grid,
    detector_arrays,
    detectors,
    results_table,
)
from pipelines.evaluation.runner import overview
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.detection import curves
from pipelines.evaluation.statistics.estimates import Sampling, draw_sums
from pipelines.models.providers import ModelSpec
from pipelines.run.events import MethodSpec
from pipelines.store import RunStore
from pipelines.store.evaluations import AnswerTask
from pipelines.store.tables import EvaluationTaskRow, OutcomeRow, to_json

ITEMS = 10_000
SYSTEMS = ("direct", "drad", "rowen")
EPOCH = datetime.fromtimestamp(0, UTC)
TAGS = ("odd",)
_TIMES = 3
NAME = "large"
_OWNER = "bench"
_WORDS = ("city", "river", "king", "year", "in", "was", "is", "born", "built", "large", "north")

T = TypeVar("T")


def made_up(store: RunStore, items: int = ITEMS, *, owner: str = _OWNER) -> None:
    """Store `owner`'s evaluation of `items` items, everything of it answered."""
    source = random.Random(0)
    spec = EvaluationSpec(
        data="made up",
        data_hash="0",
        code="",
        systems=tuple(
            System(name=name, method=MethodSpec(name=name), models={"main": ModelSpec()})
            for name in SYSTEMS
        ),
    )

    def text(words: int) -> str:
        return " ".join(source.choices(_WORDS, k=words)).capitalize() + "."

    def item(number: int) -> Item:
        passage = Passage(id="p", title=text(3), text=text(60), source="made up")
        return Item(
            id=f"q{number}",
            question=f"{text(9)[:-1]} {number}?",
            answers=(text(2), text(3)),
            passages=(passage,),
            language="en",
            tags=TAGS if number % 2 else (),
        )

    tasks = [
        AnswerTask(number, *divmod(number, len(SYSTEMS)), 0, str(number))
        for number in range(items * len(SYSTEMS))
    ]
    body = spec.model_dump(mode="json")
    rows = ((f"q{number}", item(number)) for number in range(items))
    store.evaluations.create(NAME, owner, "Made up", body, rows, tasks)
    with store._database.write() as session:
        for start in range(0, len(tasks), 500):
            answered = []
            for task in tasks[start : start + 500]:
                original, final = text(12), text(12)
                doubt = source.random()
                piece = SpanVerdict(
                    what="sentence", start=0, end=12, draft=0, verdict="doubtful",
                    text=original[:12], doubt=doubt,
                )  # fmt: skip
                outcome = Outcome(
                    answer=original if task.system == 0 else final,
                    original=original,
                    verdict="doubtful",
                    doubt=doubt,
                    pieces=(piece,) * 3,
                    cost=Cost(calls=3, tokens=40, prompt_tokens=300, seconds=source.random()),
                )
                answered.append(
                    {"owner": owner, "key": task.key, "run": f"r{task.number}",
                     "created": EPOCH, "body": to_json(outcome)}
                )  # fmt: skip
            session.execute(insert(OutcomeRow), answered)
        session.execute(update(EvaluationTaskRow).values(done=True))


def _timed(name: str, work: Callable[[], T]) -> T:
    before = _memory()
    found, took = _taken(work)
    print(f"{name}: {took:.2f} s of processors; at most {_memory() - before:.0f} MB more memory")
    return found


def _taken(work: Callable[[], T]) -> tuple[T, float]:
    """Return what it gives, and the seconds of processors; what else the machine does is
    left out.
    """
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


def _memory() -> float:
    """Return the most memory that this process has had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def parts(found: Evaluation) -> Iterator[str]:
    """Yield what a page does for the odd items of `found`, in lines; of each, the least of
    several times.

    What is read of the scores and the draws themselves are kept from the first time on.
    """
    sampling = Sampling(seed=found.seed)
    grid = Grid.of(found, tags=TAGS)
    column = np.ones((len(grid.items), 1))
    # The draws themselves are made once, and kept.
    first = _taken(lambda: draw_sums(column, sampling))[1]
    floor = min(_taken(lambda: draw_sums(column, sampling))[1] for _ in range(_TIMES))
    yield f"half of the items: its draws: {first:.2f} s of processors, one pass {floor:.3f} s"
    works: dict[str, Callable[[], object]] = {
        "the table": lambda: results_table(found, tags=TAGS, ranked=False),
        "curves": lambda: [
            curves(*each) for each in zip(*detector_arrays(found, grid)[1:], strict=True)
        ],
        "items of two systems": lambda: comparison(found, SYSTEMS[:2], "f1", tags=TAGS),
        "detectors": lambda: detectors(found, sampling, grid, compared=False),
    }
    for name, work in works.items():
        took = min(_taken(work)[1] for _ in range(_TIMES))
        yield (
            f"half of the items: {name}: {took:.2f} s of processors,"
            f" {took / floor:.0f} times one pass over its draws"
        )


def held_in_memory(url: str) -> str:
    """Return what a score takes in memory with its item, and at most while all are read."""
    with closing(RunStore(url)) as store:
        store.evaluations.get(NAME, _OWNER)
        tracemalloc.start()
        try:
            _, found = read_results(store.evaluations, NAME, _OWNER)
            each, most = (size / len(found.scores) for size in tracemalloc.get_traced_memory())
        finally:
            tracemalloc.stop()
    return f"in memory: {each:.0f} bytes a score, at most {most:.0f} while they are read"


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/runs.db"
        print(f"{ITEMS:,} items, {len(SYSTEMS)} systems:")
        with closing(RunStore(url)) as store:
            made_up(store)
            evaluations = store.evaluations
            _timed("scores", lambda: read_results(evaluations, NAME, _OWNER))
            _timed("overview", lambda: overview(evaluations, NAME, _OWNER))
        # A new store remembers nothing, as a new process does.
        with closing(RunStore(url)) as store:
            evaluations = store.evaluations
            table = _timed("opened: overview", lambda: overview(evaluations, NAME, _OWNER)).table
            _, found = _timed("opened: scores", lambda: read_results(evaluations, NAME, _OWNER))
            _timed("again: scores", lambda: read_results(evaluations, NAME, _OWNER))
            _timed("other metrics", lambda: table.with_metrics(["f1", "bleu"]))
            for line in parts(found):
                print(line)
        print(held_in_memory(url))


if __name__ == "__main__":
    main()
