"""What runs take, and which of them are deleted where that is too much."""

from __future__ import annotations

import pytest

from pipelines.errors import NotFoundError
from pipelines.store import RunStore
from pipelines.store.runs import SHARED, copy_id
from tests.pipelines.store import examples


def stored(store: RunStore, run: str, owner: str, created: float, *, over: bool = True) -> None:
    store.create(run, owner, examples.started(run, "?", created))
    store.append(run, examples.steps(run))
    if over:
        store.append(run, [examples.finished(run, 10)])


def ids(store: RunStore, owner: str = "me") -> set[str]:
    return {run.id for run in store.list(owner)}


def test_a_run_takes_what_its_events_do_and_a_copy_counts_to_who_shared_it(store: RunStore):
    stored(store, "r1", "me", 10.0)
    stored(store, "r2", "me", 20.0, over=False)
    stored(store, "r3", "you", 5.0)
    first, second = store.sizes.of("me")
    assert (first.id, second.id) == ("r1", "r2")
    assert (first.over, second.over) == (True, False)
    assert first.size > second.size > 1000
    assert first.copied == second.copied == 0
    assert store.share("r1", "me") == copy_id("r1")
    first, _ = store.sizes.of("me")
    # Ids are written in the events of neither.
    assert first.copied == first.size
    assert store.sizes.of("nobody") == []


def test_the_oldest_give_way_those_that_go_on_or_were_shared_and_the_newest_stay(store: RunStore):
    for number in range(6):
        stored(store, f"r{number}", "me", float(number), over=number != 1)
    stored(store, "theirs", "you", 0.0)
    store.share("r0", "me")
    size = store.sizes.of("me")[2].size
    assert store.sizes.keep_within("me", 100 * size) == 0
    # Six and a copy are seven; the second has no end yet, and is a little smaller.
    assert store.sizes.keep_within("me", 5 * size) == 2
    assert ids(store) == {"r0", "r1", "r4", "r5"}
    assert store.sizes.keep_within("me", 0) == 1
    assert ids(store) == {"r0", "r1", "r5"}
    assert ids(store, "you") == {"theirs"}
    assert store.load(copy_id("r0"), "you")


def test_where_all_take_too_much_shared_runs_go_last(store: RunStore):
    for number in range(4):
        stored(store, f"r{number}", f"owner {number}", float(number), over=number != 3)
    store.share("r0", "owner 0")
    assert store.sizes.keep_all_within(10**12) == 0
    # As many as it takes, and no more: what is deleted need not make the database smaller.
    size = store.sizes.of("owner 1")[0].size
    all_of_them = sum(store.sizes.of(f"owner {n}")[0].size for n in range(4)) + size
    assert store.sizes.keep_all_within(all_of_them - 1) == 1
    assert ids(store, "owner 0") == set()
    assert store.sizes.keep_all_within(all_of_them - size) == 0
    assert store.sizes.keep_all_within(0) == 3
    assert ids(store, "owner 3") == {"r3"}
    assert ids(store, SHARED) == set()
    with pytest.raises(NotFoundError):
        store.load("r0", "owner 0")
