"""Recording, loading and deleting runs."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, text

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.run.events import Event, ModelSpec, RunStarted, TerminalEvent
from pipelines.store import RunStore, StorageError, new_owner, new_run_id
from tests.pipelines.store import examples


def record(store: RunStore, owner: str, events: list[Event]) -> str:
    first, *rest = events
    assert isinstance(first, RunStarted)
    store.create(first.run, owner, first)
    store.append(first.run, rest)
    return first.run


def test_every_kind_of_event_comes_back_as_it_was(store: RunStore):
    events = examples.complete("r1")
    events += [examples.failed("r2", 1), examples.cancelled("r3", 1)]
    assert {event.kind for event in events} == examples.stored_kinds()
    record(store, "me", events[:11])
    record(store, "me", [examples.started("r2"), events[11]])
    record(store, "me", [examples.started("r3"), events[12]])
    assert store.load("r1", "me").events == tuple(events[:11])
    assert store.load("r2", "me").events[1:] == (events[11],)
    assert store.load("r3", "me").events[1:] == (events[12],)


def test_events_may_come_one_by_one(store: RunStore):
    first, rest = examples.started("r1"), examples.complete("r1")[1:]
    store.create("r1", "me", first)
    for event in rest:
        store.append("r1", [event])
    assert store.load("r1", "me").events == (first, *rest)
    together = record(store, "me", examples.complete("r2"))
    both = {run.id: run.model_dump(exclude={"id", "created"}) for run in store.list("me")}
    assert both["r1"] == both[together]


def test_tokens_are_not_stored(store: RunStore):
    store.create("r1", "me", examples.started("r1"))
    store.append("r1", [examples.token("r1", 1)])
    store.append("r1", [examples.token("r1", 1), examples.steps("r1")[0], examples.token("r1", 2)])
    assert [event.kind for event in store.load("r1", "me").events] == [
        "run_started",
        "span_started",
    ]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (examples.finished("r1", 10), "finished"),
        (examples.failed("r1", 10), "failed"),
        (examples.cancelled("r1", 10), "cancelled"),
    ],
)
def test_the_last_event_decides_the_status(store: RunStore, end: TerminalEvent, status: str):
    store.create("r1", "me", examples.started("r1"))
    store.append("r1", examples.steps("r1"))
    assert store.list("me")[0].status == "running"
    store.append("r1", [end])
    assert store.list("me")[0].status == status


def test_a_run_is_only_its_owners(store: RunStore):
    run = record(store, "me", examples.complete(new_run_id()))
    for call in (store.load, store.delete, store.export):
        with pytest.raises(NotFoundError) as foreign:
            call(run, "you")
        with pytest.raises(NotFoundError) as missing:
            call(new_run_id(), "you")
        # Nobody can tell another's run from one that never was.
        assert str(foreign.value) == str(missing.value)
    assert store.list("you") == []
    assert len(store.load(run, "me").events) == 11


@pytest.mark.parametrize("run_id", ["", "\x00", "\ud800", "' OR 1=1 --", "x" * 10_000, "r_", "%"])
def test_an_id_from_anywhere_finds_nothing(store: RunStore, run_id: str):
    record(store, "me", examples.complete("r1"))
    with pytest.raises(NotFoundError):
        store.load(run_id, "me")
    with pytest.raises(NotFoundError):
        store.delete(run_id, "me")


def rows(url: str, table: str) -> int:
    engine = create_engine(url)
    with engine.connect() as connection:
        count: int = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
    engine.dispose()
    return count


def test_deleting_a_run_deletes_its_events(store: RunStore, url: str):
    record(store, "me", examples.complete("r1"))
    record(store, "me", examples.complete("r2"))
    assert (rows(url, "runs"), rows(url, "events")) == (2, 22)
    store.delete("r1", "me")
    assert (rows(url, "runs"), rows(url, "events")) == (1, 11)
    with pytest.raises(NotFoundError):
        store.append("r1", [examples.finished("r1", 11)])


def test_old_runs_go_and_running_ones_stay(store: RunStore, url: str):
    record(store, "me", examples.complete("old"))
    store.create("going", "me", examples.started("going"))
    recent = store.import_run(store.export("old", "me"), "me")
    assert store.delete_older_than(3600) == 1
    assert {run.id for run in store.list("me")} == {"going", recent}
    assert rows(url, "events") == 1 + 11
    assert store.delete_older_than(3600) == 0


@pytest.mark.parametrize(
    "events",
    [
        [examples.finished("r1", 2)],
        [examples.steps("r1")[0], examples.finished("r1", 1)],
        [examples.finished("other", 1)],
        [examples.started("r1").model_copy(update={"seq": 1})],
        [examples.finished("r1", 1), examples.called("r1", 2)],
    ],
    ids=["gap", "repeated", "other run", "second beginning", "after the end"],
)
def test_events_that_do_not_continue_the_run_are_refused_whole(
    store: RunStore, events: list[Event]
):
    store.create("r1", "me", examples.started("r1"))
    with pytest.raises(ValueError, match=r"number 1|another run|has ended"):
        store.append("r1", events)
    assert store.load("r1", "me").events == (examples.started("r1"),)
    assert store.list("me")[0].status == "running"


def test_nothing_follows_the_end(store: RunStore):
    record(store, "me", examples.complete("r1"))
    with pytest.raises(ValueError, match="has ended"):
        store.append("r1", [examples.called("r1", 11)])


def test_a_run_begins_once_and_with_its_first_event(store: RunStore):
    store.create("r1", "me", examples.started("r1"))
    with pytest.raises(ValueError, match="stored already"):
        store.create("r1", "you", examples.started("r1"))
    with pytest.raises(ValueError, match="not the first"):
        store.create("r2", "me", examples.started("r1"))
    with pytest.raises(NotFoundError):
        store.append("r2", [examples.finished("r2", 1)])


@pytest.mark.parametrize(
    "question",
    [
        "'; DROP TABLE runs; --",
        '" OR ""="',
        "量子纠缠是什么？",
        "🧪👩‍🔬 e\u0301",
        "line\nbreak\ttab \\ %s %(x)s :x ?",
        "",
        "字" * 20_000,
    ],
)
def test_any_question_is_kept(store: RunStore, question: str):
    store.create("r1", "me", examples.started("r1", question))
    assert store.list("me")[0].question == question
    assert store.load("r1", "me").header.spec.question == question


@pytest.mark.parametrize("owner", ["'; DROP TABLE runs; --", "主人 🧪", "%", ""])
def test_any_owner_is_distinguished_from_others(store: RunStore, owner: str):
    store.create("r1", owner, examples.started("r1"))
    store.create("r2", "me", examples.started("r2"))
    assert [run.id for run in store.list(owner)] == ["r1"]
    assert store.load("r1", owner).header.run == "r1"


def test_characters_a_database_refuses_are_replaced_in_the_list_only_where_they_must(
    store: RunStore,
):
    store.create("r1", "me", examples.started("r1", "a\x00b\ud800c"))
    assert store.list("me")[0].question == "a\ufffdb\ufffdc"
    assert store.load("r1", "me").header.spec.question == "a\x00b\ufffdc"


def test_a_run_whose_model_carries_a_key_is_refused(store: RunStore):
    started = examples.started("r1")
    model = ModelSpec(kind="openai", base_url="https://me:hunter2@host/v1")
    spec = started.spec.model_copy(update={"models": {"main": model}})
    with pytest.raises(InvalidInputError, match="password"):
        store.create("r1", "me", started.model_copy(update={"spec": spec}))
    assert store.list("me") == []


def test_a_run_of_an_unknown_format_says_so(store: RunStore, url: str):
    record(store, "me", examples.complete("r1"))
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE events SET kind = 'dreamt' WHERE seq = 3"))
    engine.dispose()
    with pytest.raises(StorageError, match="cannot read"):
        store.load("r1", "me")


@pytest.mark.parametrize("make", [new_run_id, new_owner])
def test_names_cannot_be_guessed_and_fit_anywhere(make: Any):
    names = {make() for _ in range(1000)}
    assert len(names) == 1000
    # Four bits a digit: no less than 128 bits, and no more than a column holds.
    assert all(32 <= len(name) <= 64 and set(name) <= set("0123456789abcdef") for name in names)


def test_a_shared_run_is_everybodys_and_nobodys(store: RunStore):
    run = record(store, "me", examples.complete(new_run_id()))
    copy = store.share(run, "me")
    assert copy != run
    assert store.share(run, "me") == store.share(copy, "you") == copy
    shared = store.load(copy, "you")
    assert [event.kind for event in shared.events] == [
        event.kind for event in store.load(run, "me").events
    ]
    # The copy does not lead to the run itself.
    assert {event.run for event in shared.events} == {copy}
    assert run not in "".join(store.export(copy, "you"))
    assert store.list("you") == []
    with pytest.raises(NotFoundError):
        store.load(run, "you")
    with pytest.raises(NotFoundError):
        store.delete(copy, "you")
    store.delete(run, "me")
    assert len(store.load(copy, "you").events) == len(shared.events)


def test_only_the_owner_shares(store: RunStore):
    run = record(store, "me", examples.complete(new_run_id()))
    with pytest.raises(NotFoundError):
        store.share(run, "you")


def test_shared_runs_expire_like_others(store: RunStore):
    copy = store.share(record(store, "me", examples.complete(new_run_id())), "me")
    assert store.delete_older_than(-1) == 2
    with pytest.raises(NotFoundError):
        store.load(copy, "me")
