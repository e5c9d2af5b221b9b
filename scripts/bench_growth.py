"""How what takes time grows with what is stored: `python -m scripts.bench_growth`.

Each line is one operation at 100, 1,000 and 10,000 of what it may depend on, in milliseconds, and
the exponent: what takes ten times as long where there is ten times as much has 1, what does not
depend on it 0. Made-up contents, in SQLite; and the next item of 50 annotators in a private
PostgreSQL, where its programs are found: of those who never pause, and of those who read a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from math import log10
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pipelines.base import Frozen
from pipelines.engine.library import Collections
from pipelines.retrieval.embedders import Embedders
from pipelines.store import RunStore
from pipelines.store.annotations import NewItem
from pipelines.store.evaluations import AnswerTask
from pipelines.store.labelling import Action, AnnotationWork, Given
from tests.postgresql import find_postgresql, new_database, private_server

OWNER = "me"
SIZES = (100, 1_000, 10_000)
ANNOTATORS = 50
EACH = 10
"""Items that each annotator labels while it is measured."""

PAUSE = 2.0
"""Seconds for which an annotator reads an item, who is quicker than any."""

_LEASE = 600.0


class Growth(NamedTuple):
    """One operation: milliseconds at each of `sizes`."""

    name: str
    sizes: tuple[int, ...]
    milliseconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """How it grows from the last but one of the sizes to the last."""
        (one, other), (before, after) = self.sizes[-2:], self.milliseconds[-2:]
        return log10(after / before) / log10(other / one)


class _Nothing(Frozen):
    """An item of an evaluation, of which nothing is asked here."""


@contextmanager
def _stored() -> Iterator[tuple[RunStore, Path]]:
    with (
        TemporaryDirectory() as folder,
        closing(RunStore(f"sqlite:///{folder}/veriscope.db")) as store,
    ):
        yield store, Path(folder)


def _took(work: Callable[[], object], times: int = 5) -> float:
    """Return milliseconds, the least of some times."""
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append((time.perf_counter() - began) * 1000)
    return min(found)


def files_added(count: int) -> float:
    """Return what a file takes, of `count` that are added one after the other."""
    with _stored() as (store, folder):
        collections = Collections(store.collections, folder / "files", Embedders(lambda: None))
        mine = collections.create(OWNER, "Files")
        began = time.perf_counter()
        for number in range(count):
            collections.add(OWNER, mine, f"{number}.txt", f"Whale {number} swims.".encode())
        return (time.perf_counter() - began) * 1000 / count


def files_together(count: int) -> float:
    """Return what a file takes, of `count` that are added together."""
    with _stored() as (store, folder):
        collections = Collections(store.collections, folder / "files", Embedders(lambda: None))
        mine = collections.create(OWNER, "Files")
        files = [(f"{number}.txt", f"Whale {number}.".encode) for number in range(count)]
        return _took(lambda: collections.add_all(OWNER, mine, files), 1) / count


def evaluation_got(count: int) -> float:
    """Return what reading one evaluation takes beside others with `count` tasks."""
    with _stored() as (store, _):
        tasks = [AnswerTask(number, number, 0, 0, f"key {number}") for number in range(count)]
        store.evaluations.create("others", OWNER, "Others", {}, (), tasks)
        store.evaluations.create("mine", OWNER, "Mine", {}, (), tasks[:10])
        return _took(lambda: store.evaluations.get("mine", OWNER))


def next_item(
    store: RunStore, count: int, annotators: int, pause: float = 0
) -> tuple[list[float], float]:
    """Return what each "next item" takes in a session of `count` items, milliseconds, and what an
    item takes this process of the processor, with its label.

    `pause` is how many seconds each annotator reads an item. They do not begin together.
    """
    annotations = store.annotations
    session = annotations.create(OWNER, "Session", {}, 2, "Read.")
    texts = (f"Whale {number} was born in Delft. " * 20 for number in range(count))
    bodies = ({"task": "answer", "question": "Who?", "text": text} for text in texts)
    annotations.add_items(
        session,
        [NewItem(f"key {number}", "answer", body, {}) for number, body in enumerate(bodies)],
    )
    names = (f"person {at}" for at in range(annotators))
    people = [annotations.add_annotator(session, name, "person").number for name in names]
    work: AnnotationWork = store.annotation_work

    def label(person: int) -> list[float]:
        took: list[float] = []
        time.sleep(pause * person / annotators)
        for number in range(EACH):
            time.sleep(pause)
            began = time.perf_counter()
            given = work.claim(session, person, lease=_LEASE)
            took.append((time.perf_counter() - began) * 1000)
            if not isinstance(given, Given):
                break
            said = Action(f"{person} {number}", "given", {"task": "answer", "verdict": "yes"})
            work.act(session, person, given.item, said, lease=_LEASE)
        return took

    worked = time.process_time()
    with ThreadPoolExecutor(annotators) as pool:
        found = [one for part in pool.map(label, people) for one in part]
    return found, (time.process_time() - worked) * 1000 / len(found)


def grown(name: str, measure: Callable[[int], float], sizes: Sequence[int] = SIZES) -> Growth:
    """Return how `measure` grows with its argument."""
    return Growth(name, tuple(sizes), tuple(measure(size) for size in sizes))


def table(found: Sequence[Growth]) -> str:
    """Return the measurements as Markdown."""
    lines = ["| milliseconds | 100 | 1,000 | 10,000 | exponent |", "|---|---|---|---|---|"]
    for one in found:
        known = dict(zip(one.sizes, one.milliseconds, strict=True))
        cells = (f"{known[size]:.2f}" if size in known else "" for size in SIZES)
        odd = [f" (at {size:,}: {known[size]:.2f})" for size in one.sizes if size not in SIZES]
        lines.append(f"| {one.name}{''.join(odd)} | {' | '.join(cells)} | {one.exponent:.2f} |")
    return "\n".join(lines)


def alone(count: int) -> float:
    """Return what the next item takes somebody who labels alone, in SQLite."""
    with _stored() as (store, _):
        return median(next_item(store, count, 1)[0])


def main() -> None:
    """Measure, and print the table."""
    found = [
        # A collection holds 2,000 documents at most.
        grown("a file added by itself", files_added, (100, 1_000, 2_000)),
        grown("a file added with others", files_together, (100, 1_000, 2_000)),
        grown("one evaluation, beside others with so many tasks", evaluation_got),
        grown("the next item of a session with so many", alone),
    ]
    print(table(found))
    if find_postgresql() is None:
        print("\nPostgreSQL was not found.")
        return
    with private_server() as running:
        for count in (1_000, 5_000):
            for pause in (0, PAUSE):
                with closing(RunStore(new_database(running.url))) as store:
                    took, worked = next_item(store, count, ANNOTATORS, pause)
                tail = quantiles(took, n=100)[98]
                told = f"{ANNOTATORS} annotators, {count:,} items, {pause} s each"
                print(f"{told}: {median(took):.0f} ms, p99 {tail:.0f} ms; {worked:.1f} ms of CPU")


if __name__ == "__main__":
    main()
