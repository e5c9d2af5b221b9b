"""Another process that records runs: `python -m tests.pipelines.store.writer URL begin|record ...`.

`begin RUN` starts a run, says "ready" and waits for a line on its input. `record RUN COUNT` records
a whole run with COUNT calls, one append each.
"""

from __future__ import annotations

import sys
from contextlib import closing

from pipelines.store import RunStore
from tests.pipelines.store import examples


def main(url: str, task: str, run: str, count: str = "0") -> None:
    with closing(RunStore(url)) as store:
        store.create(run, "me", examples.started(run))
        if task == "begin":
            print("ready", flush=True)
            sys.stdin.readline()
        else:
            record(store, run, int(count))


def record(store: RunStore, run: str, count: int) -> None:
    """Append `count` calls to a run that was begun, one by one, and end it."""
    for seq in range(1, count + 1):
        store.append(run, [examples.called(run, seq)])
    store.append(run, [examples.finished(run, count + 1)])


if __name__ == "__main__":
    main(*sys.argv[1:])
