"""Annotation sessions in a store: what they hold, links to them, and how items are given out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from pipelines.errors import InvalidInputError, NotFoundError, TooOftenError
from pipelines.store import RunStore
from pipelines.store.annotations import (
    MOST_WRONG,
    AnnotationLinks,
    AnnotationStore,
    EventKind,
    NewItem,
    locked,
    set_priorities,
)
from pipelines.store.labelling import Action, AnnotationWork, Given, NothingToDo
from pipelines.store.tables import AnnotationItemRow

LEASE = 60.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def set_seed(store: RunStore, session_id: str) -> None:
    """Give a session the same random order in every test."""
    with store._database.write() as session:
        query = text("UPDATE annotation_sessions SET seed = 'seed' WHERE id = :id")
        session.execute(query, {"id": session_id})


class Bench:
    """A session of some items and people, on a clock of its own."""

    def __init__(
        self, store: RunStore, items: int = 3, overlap: int = 2, people: int = 3, gold: int = 0
    ) -> None:
        self.clock = Clock()
        self.database = database = store._database
        self.store = AnnotationStore(database, self.clock)
        self.work = AnnotationWork(database, self.clock)
        self.id = self.store.create("me", "Session", {"s": 1}, overlap, "Read *well*.")
        set_seed(store, self.id)
        self.store.add_items(
            self.id,
            [
                NewItem(f"k{n}", "answer", {"n": n}, {"secret": n}, {"v": n} if n < gold else None)
                for n in range(items)
            ],
        )
        for number in range(people):
            self.store.add_annotator(self.id, f"P{number}", "person")
        self.requests = 0

    def claim(self, who: int, gold_every: int = 0) -> Given | NothingToDo:
        return self.work.claim(self.id, who, lease=LEASE, gold_every=gold_every)

    def take(self, who: int) -> int:
        found = self.claim(who)
        assert isinstance(found, Given), found
        return found.item

    def act(self, who: int, item: int, kind: EventKind = "given", **value: Any) -> int:
        self.requests += 1
        action = Action(f"c{self.requests}", kind, value or {"v": 1})
        return self.work.act(self.id, who, item, action, lease=LEASE).seq


def test_what_a_session_holds(store: RunStore):
    bench = Bench(store, items=2)
    found = bench.store.get(bench.id, "me")
    assert (found.name, found.items, found.overlap, found.guidelines) == ("Session", 2, 2, 1)
    assert [one.name for one in bench.store.annotators(bench.id)] == ["P0", "P1", "P2"]
    assert bench.store.item(bench.id, 1).hidden == {"secret": 1}
    assert bench.store.add_items(bench.id, [NewItem("k1", "answer", {}, {})]) == 0
    for ask in (lambda: bench.store.get(bench.id, "you"), lambda: bench.store.item(bench.id, 9)):
        with pytest.raises(NotFoundError):
            ask()
    with pytest.raises(InvalidInputError, match="joined the session under this name"):
        bench.store.add_annotator(bench.id, " P1 ", "person")
    with pytest.raises(InvalidInputError, match="allows, 3,"):
        bench.store.add_annotator(bench.id, "P9", "person", most=3)


def test_deleting_a_session_takes_everything_along(store: RunStore):
    bench = Bench(store)
    bench.act(0, bench.take(0))
    store.annotation_links.create(bench.id, "join")
    bench.store.delete(bench.id, "me")
    with store._database.read() as session:
        for table in ("items", "claims", "events", "links", "guidelines"):
            query = text(f"SELECT count(*) FROM annotation_{table}")
            assert session.execute(query).scalar_one() == 0


def test_guidelines_and_overlap_change_and_labels_keep_theirs(store: RunStore):
    bench = Bench(store)
    bench.act(0, bench.take(0))
    assert bench.store.set_guidelines(bench.id, "Read *well*.") == 1
    assert bench.store.set_guidelines(bench.id, "Read twice.") == 2
    bench.store.set_overlap(bench.id, 3)
    bench.act(0, bench.take(0))
    kept = [(one.guidelines, one.overlap) for one in bench.store.events(bench.id)]
    assert kept == [(1, 2), (2, 3)]
    assert [one.text for one in bench.store.guidelines(bench.id)] == ["Read *well*.", "Read twice."]


def test_begun_items_are_finished_before_others_are_opened(store: RunStore):
    bench = Bench(store, items=20, overlap=3, people=4)
    first = bench.take(0)
    bench.act(0, first)
    # The second and third person are given what the first began; the fourth begins another.
    assert bench.take(1) == bench.take(2) == first
    assert bench.take(3) != first


def test_of_begun_items_that_with_the_fewest_labels_comes_first(store: RunStore):
    bench = Bench(store, items=20, overlap=3, people=4)
    one = bench.take(0)
    bench.act(0, one)
    other = bench.take(0)
    # One label on the first; the second, which the first person has begun, has none.
    assert bench.take(1) == bench.take(2) == other != one


def test_everybody_has_an_order_of_their_own_that_stays(store: RunStore):
    bench = Bench(store, items=40, overlap=1, people=2)

    def order(who: int) -> list[int]:
        found = []
        for _ in range(5):
            found.append(bench.take(who))
            bench.act(who, found[-1])
        return found

    first, second = order(0), order(1)
    assert first != sorted(first)
    assert first != second
    assert not set(first) & set(second)


def test_one_comes_back_to_the_item_one_left(store: RunStore):
    bench = Bench(store, items=20)
    item = bench.take(0)
    bench.clock.move(10 * LEASE)
    assert bench.take(0) == item


def test_two_people_are_never_stuck_on_the_last_item(store: RunStore):
    bench = Bench(store, items=1, overlap=1, people=2)
    item = bench.take(0)
    waiting = bench.claim(1)
    assert isinstance(waiting, NothingToDo)
    assert (waiting.status, waiting.others) == ("wait", 1)
    assert waiting.until == bench.clock.now + timedelta(seconds=LEASE)
    bench.clock.move(LEASE)
    assert bench.take(1) == item
    # The first comes back: the place is gone, and nothing is left.
    left = bench.claim(0)
    assert isinstance(left, NothingToDo)
    assert left.status == "wait"
    bench.act(1, item)
    left = bench.claim(0)
    assert isinstance(left, NothingToDo)
    assert left.status == "done"
    with pytest.raises(InvalidInputError, match="enough other people"):
        bench.act(0, item)


def test_a_late_label_counts_while_nobody_needed_the_place(store: RunStore):
    bench = Bench(store, items=1, overlap=1, people=2)
    item = bench.take(0)
    bench.clock.move(100 * LEASE)
    bench.act(0, item)
    assert bench.store.item(bench.id, item).labels == 1


def test_a_renewed_lease_keeps_the_item(store: RunStore):
    bench = Bench(store, items=1, overlap=1, people=2)
    item = bench.take(0)
    for _ in range(5):
        bench.clock.move(LEASE - 1)
        bench.work.renew(bench.id, 0, item, lease=LEASE)
    assert isinstance(bench.claim(1), NothingToDo)
    bench.clock.move(LEASE)
    bench.take(1)
    with pytest.raises(InvalidInputError, match="enough other people"):
        bench.work.renew(bench.id, 0, item, lease=LEASE)


def test_a_skipped_item_goes_to_others_and_not_back(store: RunStore):
    bench = Bench(store, items=1, overlap=1, people=2)
    item = bench.take(0)
    bench.act(0, item, "skipped", reason="unclear")
    found = bench.claim(0)
    assert isinstance(found, NothingToDo)
    assert found.status == "done"
    with pytest.raises(InvalidInputError, match="not given to you"):
        bench.act(0, item)
    assert bench.take(1) == item


def test_a_larger_overlap_reopens_items_and_a_smaller_one_takes_nothing_away(store: RunStore):
    bench = Bench(store, items=1, overlap=2, people=3)
    for who in (0, 1):
        bench.act(who, bench.take(who))
    assert isinstance(bench.claim(2), NothingToDo)
    bench.store.set_overlap(bench.id, 3)
    bench.act(2, bench.take(2))
    bench.store.set_overlap(bench.id, 1)
    assert bench.store.item(bench.id, 0).labels == 3


def test_after_the_overlap_is_lowered_expired_places_give_way(store: RunStore):
    bench = Bench(store, items=1, overlap=2, people=4)
    item = bench.take(0)
    assert bench.take(1) == item
    bench.clock.move(LEASE)
    bench.store.set_overlap(bench.id, 1)
    # Both places have expired, and both have to go for one that is below the overlap.
    assert bench.take(2) == item
    bench.act(2, item)
    assert bench.store.item(bench.id, item).labels == 1
    for late in (0, 1):
        with pytest.raises(InvalidInputError, match="enough other people"):
            bench.act(late, item)
    found = bench.claim(3)
    assert isinstance(found, NothingToDo)
    assert found.status == "done"


def test_an_item_with_all_its_labels_is_not_waited_for(store: RunStore):
    bench = Bench(store, items=1, overlap=2, people=3)
    item = bench.take(0)
    bench.take(1)
    bench.act(0, item)
    bench.store.set_overlap(bench.id, 1)
    found = bench.claim(2)
    assert isinstance(found, NothingToDo)
    assert found.status == "done"


def test_undo_redo_and_change(store: RunStore):
    bench = Bench(store, items=2, overlap=1)
    item = bench.take(0)
    with pytest.raises(InvalidInputError, match="it is open"):
        bench.act(0, item, "undone")
    bench.act(0, item)
    bench.act(0, item, "undone")
    # It is the one to label again, and nobody else can take it meanwhile.
    assert bench.take(0) == item
    assert bench.take(1) != item
    bench.act(0, item, "redone")
    bench.act(0, item, "changed", v=2)
    with pytest.raises(InvalidInputError, match="it is labelled"):
        bench.act(0, item)
    assert bench.store.item(bench.id, item).labels == 1
    kinds = [one.kind for one in bench.store.events(bench.id, annotator=0, item=item)]
    assert kinds == ["given", "undone", "redone", "changed"]


def test_what_models_said_is_shown_after_the_label_and_the_change_says_so(store: RunStore):
    bench = Bench(store, items=1)
    item = bench.take(0)
    with pytest.raises(InvalidInputError, match="once your label"):
        bench.act(0, item, "revealed")
    bench.act(0, item)
    bench.act(0, item, "revealed")
    bench.act(0, item, "changed", v=2)
    bench.act(0, item, "undone")
    bench.act(0, item, v=3)
    assert [one.revealed for one in bench.store.events(bench.id)] == [False, True, True, True, True]


def test_a_repeated_request_is_stored_once_even_after_the_session_is_closed(store: RunStore):
    bench = Bench(store)
    item = bench.take(0)
    action = Action("once", "given", {"v": 1}, seconds=3.5, run="r1")
    first = bench.work.act(bench.id, 0, item, action, lease=LEASE)
    bench.store.close(bench.id)
    assert bench.work.act(bench.id, 0, item, action, lease=LEASE) == first
    assert bench.store.events(bench.id) == [first]
    with pytest.raises(InvalidInputError, match="same name was stored"):
        bench.work.act(bench.id, 0, item, action._replace(value={"v": 2}), lease=LEASE)
    with pytest.raises(InvalidInputError, match="closed"):
        bench.claim(1)
    bench.store.close(bench.id, closed=False)
    bench.take(1)


def test_control_items_are_given_to_everybody_at_places_of_their_own(store: RunStore):
    bench = Bench(store, items=40, overlap=1, people=2, gold=4)
    places = []
    for who in range(2):
        found = []
        for _ in range(16):
            given = bench.claim(who, gold_every=4)
            assert isinstance(given, Given)
            found.append(given.item < 4)
            bench.act(who, given.item)
        # Every fourth, but for where the first is: three or four of 16.
        assert sum(found) in (3, 4)
        places.append(found)
    assert bench.store.item(bench.id, 0).labels == 0
    with pytest.raises(InvalidInputError, match="given to somebody"):
        bench.store.set_gold(bench.id, bench.store.events(bench.id)[0].item, None)


def test_the_database_itself_refuses_a_place_twice(store: RunStore):
    bench = Bench(store, items=1, overlap=1)
    bench.take(0)
    columns = "session, item, annotator, slot, state, taken, expires, revealed"
    with pytest.raises(Exception, match=r"(?i)unique"), store._database.write() as session:
        session.execute(
            text(
                f"INSERT INTO annotation_claims ({columns}) SELECT session, item, 1, slot, state,"
                " taken, expires, revealed FROM annotation_claims"
            )
        )


def test_people_at_the_same_time_fill_every_item_exactly(store: RunStore):
    bench = Bench(store, items=12, overlap=3, people=6)
    barrier = Barrier(6)

    def label(who: int) -> None:
        barrier.wait()
        count = 0
        while isinstance(found := bench.claim(who), Given):
            action = Action(f"{who}-{count}", "given", {"who": who})
            bench.work.act(bench.id, who, found.item, action, lease=LEASE)
            count += 1

    threads = [Thread(target=label, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = bench.store.events(bench.id)
    labels = Counter(one.item for one in events)
    # An annotator leaves when others hold all items; no item gets more labels than its overlap.
    assert max(labels.values()) <= 3
    assert len({(one.item, one.annotator) for one in events}) == len(events)
    assert all(one.value == {"who": one.annotator} for one in events)
    assert [one.seq for one in events] == list(range(len(events)))
    assert {one.number: one.labels for one in bench.store.items(bench.id)} == {
        number: labels[number] for number in range(12)
    }


@pytest.mark.verify
def test_the_next_item_waits_neither_for_who_labels_nor_for_an_item_in_use(
    new_postgresql: Callable[[], str],
):
    with closing(RunStore(new_postgresql())) as store, ThreadPoolExecutor(1) as pool:
        bench = Bench(store, items=2, overlap=2, people=2)
        begun = bench.take(0)
        with store._database.write() as session:
            locked(session, bench.id, "writing")
            session.get(AnnotationItemRow, (bench.id, begun), with_for_update=True)
            # It would come first. What is asked for here does not end before this block does.
            other = pool.submit(bench.take, 1).result(timeout=30)
        assert other == 1 - begun


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["claim", "given", "undone", "redone", "skipped", "changed", "wait"]),
    ),
    max_size=60,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, overlap=st.integers(1, 3))
def test_whatever_happens_the_overlap_holds(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, str]],
    overlap: int,
):
    store = RunStore(f"sqlite:///{_database(tmp_path_factory)}")
    bench = Bench(store, items=4, overlap=overlap, people=4)
    current: dict[int, int] = {}
    for who, step in steps:
        if step == "wait":
            bench.clock.move(LEASE / 2)
        elif step == "claim":
            found = bench.claim(who)
            if isinstance(found, Given):
                current[who] = found.item
        elif who in current:
            try:
                bench.act(who, current[who], step)  # type: ignore[arg-type]
            except InvalidInputError:
                continue
        _check(bench, overlap)
    store.close()


def _check(bench: Bench, overlap: int) -> None:
    """The counts are those of the claims, and these those of the events."""
    claims = bench.store.claims(bench.id)
    labelled = Counter(one.item for one in claims if one.state == "labelled")
    assert all(count <= overlap for count in labelled.values())
    held = Counter(one.item for one in claims if one.slot is not None)
    assert all(count <= overlap for count in held.values())
    stand: dict[tuple[int, int], bool] = {}
    for event in bench.store.events(bench.id):
        stand[event.item, event.annotator] = event.kind in ("given", "redone", "changed")
    assert {key for key, stands in stand.items() if stands} == {
        (one.item, one.annotator) for one in claims if one.state == "labelled"
    }
    for item in bench.store.items(bench.id):
        assert item.labels == labelled[item.number]
    # What is kept from step to step is what all claims come to.
    with bench.database.write() as session:
        query = select(AnnotationItemRow.number, AnnotationItemRow.priority)
        kept = session.execute(query.order_by(AnnotationItemRow.number)).all()
        set_priorities(session, bench.id)
        assert session.execute(query.order_by(AnnotationItemRow.number)).all() == kept


def _database(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("annotations") / "runs.db"


def test_links_are_secret_and_can_expire_and_be_withdrawn(store: RunStore):
    bench = Bench(store)
    links = AnnotationLinks(store._database, bench.clock)
    token = links.create(bench.id, "annotator", annotator=1, seconds=100)
    found = links.check(f" {token} ", "10.0.0.1")
    assert (found.session, found.role, found.annotator) == (bench.id, "annotator", 1)
    with store._database.read() as session:
        stored = str(session.execute(text("SELECT * FROM annotation_links")).all())
    assert token.split(".")[1] not in stored
    lasting = links.create(bench.id, "lead")
    bench.clock.move(100)
    for wrong in (token, "nonsense", f"{lasting[:-1]}!", f"{lasting.split('.')[0]}.{'A' * 43}"):
        with pytest.raises(NotFoundError, match="wrong, or was withdrawn, or has expired"):
            links.check(wrong, "10.0.0.1")
    links.revoke(bench.id, lasting.split(".")[0])
    kept = {one.role: one.revoked is None for one in links.list(bench.id)}
    assert kept == {"annotator": True, "lead": False}
    with pytest.raises(NotFoundError):
        links.check(lasting, "10.0.0.1")
    with pytest.raises(NotFoundError):
        links.revoke(bench.id, "0" * 16)


def guess(links: AnnotationLinks, tokens: Callable[[int], str], address: str) -> int:
    """How many wrong links are tried before it is refused."""
    for count in range(MOST_WRONG + 5):
        try:
            links.check(tokens(count), address)
        except TooOftenError:
            return count
        except NotFoundError:
            continue
    raise AssertionError("It was never refused.")


def test_links_that_are_no_longer_valid_are_no_guesses(store: RunStore):
    bench = Bench(store)
    links = AnnotationLinks(store._database, bench.clock)
    expired, withdrawn = links.create(bench.id, "join", seconds=1), links.create(bench.id, "join")
    bench.clock.move(1)
    links.revoke(bench.id, withdrawn.split(".")[0])
    for _ in range(MOST_WRONG):
        for token in (expired, withdrawn):
            with pytest.raises(NotFoundError):
                links.check(token, "a")
    assert links.check(links.create(bench.id, "join"), "a").role == "join"


def test_guessing_is_limited_by_address_and_by_link(store: RunStore):
    bench = Bench(store)
    links = AnnotationLinks(store._database, bench.clock)
    token, other = links.create(bench.id, "join"), links.create(bench.id, "join")
    random = Random(1)
    assert guess(links, lambda _: f"{random.getrandbits(64):016x}.{'A' * 43}", "a") == MOST_WRONG
    # Behind a proxy the address is that of many: who has a link comes in.
    assert links.check(token, "a").role == "join"
    wrong = f"{token.split('.')[0]}.{'A' * 43}"
    assert guess(links, lambda _: wrong, "b") == MOST_WRONG
    with pytest.raises(TooOftenError):
        links.check(token, "b")
    # Another link at the same address, and the same link at another address.
    assert links.check(other, "b").role == links.check(token, "c").role == "join"
    bench.clock.move(601)
    assert links.check(token, "b").role == "join"


def test_names_that_look_the_same_are_one_name(store: RunStore):
    bench = Bench(store)
    annotations = store.annotations
    annotations.add_annotator(bench.id, "Anna Lee", "person")
    for name in ("anna lee", "Ａnna Lee", "Anna\u200b Lee", "Anna  Lee"):
        with pytest.raises(InvalidInputError, match="name"):
            annotations.add_annotator(bench.id, name, "person")
    for name in ("\u200b\u3164", "Аnna"):
        with pytest.raises(InvalidInputError):
            annotations.add_annotator(bench.id, name, "person")
    assert annotations.add_annotator(bench.id, "李安娜", "person").name == "李安娜"


def test_a_number_that_is_too_large_is_told_so(store: RunStore):
    bench = Bench(store)
    with pytest.raises(InvalidInputError, match="too large"):
        store.annotations.events(bench.id, item=2**63)
