"""Evaluations in a store: whose they are, what is missing, what deleting takes along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import event, text

from pipelines.errors import NotFoundError
from pipelines.evaluation.plan import Item
from pipelines.store import RunStore
from pipelines.store.evaluations import AnswerTask, EvaluationStore
from tests.pipelines.store import examples

SYSTEMS = 2


def tasks(items: int, prefix: str = "") -> Iterator[AnswerTask]:
    for number in range(items * SYSTEMS):
        position, system = divmod(number, SYSTEMS)
        yield AnswerTask(number, position, system, 0, f"{prefix}{position}-{system}")


def create(store: RunStore, name: str = "e", owner: str = "me", items: int = 3) -> EvaluationStore:
    rows = [(f"q{number}", Item(id=f"q{number}", question="Who?")) for number in range(items)]
    store.evaluations.create(name, owner, f"Evaluation {name}", {"s": 1}, rows, tasks(items))
    return store.evaluations


def answer(store: EvaluationStore, task: AnswerTask, name: str = "e", owner: str = "me") -> None:
    run = f"run-{name}-{task.number}"
    store.attempt(name, task.number, run)
    store.finish(name, owner, task, run, {"answer": task.key}, {"calls": 1})


def count(store: RunStore, table: str) -> int:
    with store._database.read() as session:
        return session.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()


def test_what_is_missing_is_found_in_order_and_in_parts(store: RunStore):
    found = create(store)
    listed = list(tasks(3))
    assert found.open_tasks("e") == listed
    answer(found, listed[1])
    assert found.open_tasks("e") == [listed[0], *listed[2:]]
    assert found.open_tasks("e", after=2, limit=2) == listed[3:5]
    assert (found.get("e", "me").done, found.get("e", "me").tasks) == (1, 6)


def test_a_failure_leaves_its_task_open_and_counts_what_it_took(store: RunStore):
    found = create(store)
    task = next(tasks(1))
    found.attempt("e", task.number, "broken")
    assert [one.run for one in found.attempts("e", counted=False)] == ["broken"]
    found.finish("e", "me", task, "broken", None, {"calls": 3})
    assert found.open_tasks("e")[0] == task
    assert found.outcomes("e", "me") == []
    (attempt,) = found.attempts("e", counted=True)
    assert (attempt.number, attempt.spent) == (0, {"calls": 3})


def test_what_a_dead_process_spent_is_counted_once(store: RunStore):
    found = create(store)
    found.attempt("e", 4, "died")
    found.count("died", {"calls": 2})
    assert found.attempts("e", counted=False) == []
    assert [one.spent for one in found.attempts("e", counted=True)] == [{"calls": 2}]


def test_the_first_answer_stays(store: RunStore):
    found = create(store)
    task = next(tasks(1))
    answer(found, task)
    found.attempt("e", task.number, "late")
    found.finish("e", "me", task, "late", {"answer": "other"}, {"calls": 1})
    ((kept, run, body),) = found.outcomes("e", "me")
    assert (kept, run, body) == (task, "run-e-0", {"answer": task.key})
    # Both were paid.
    assert len(found.attempts("e", counted=True)) == 2


def test_what_was_answered_is_done_in_the_next_evaluation_of_its_owner_alone(store: RunStore):
    found = create(store)
    for task in list(tasks(3))[:3]:
        answer(found, task)
    create(store, "again")
    assert found.get("again", "me").done == 3
    create(store, "theirs", "you")
    assert found.get("theirs", "you").done == 0
    assert found.outcomes("theirs", "you") == []
    assert [task.number for task, _, _ in found.outcomes("again", "me")] == [0, 1, 2]


def test_runs_on_an_item_are_found_with_those_that_answered_it_elsewhere(store: RunStore):
    found = create(store)
    answer(found, next(tasks(1)))
    create(store, "again")
    found.attempt("again", 1, "tried")
    found.attempt("again", 2, "next item")
    assert sorted(found.runs_at("again", "me", 0, 1)) == [(0, "run-e-0"), (1, "tried")]
    assert found.runs_at("again", "you", 0, 0) == []


def test_nobody_sees_what_is_not_theirs(store: RunStore):
    found = create(store)
    for ask in (found.get, found.delete, found.items, found.outcomes):
        with pytest.raises(NotFoundError, match="no evaluation"):
            ask("e", "you")
    with pytest.raises(NotFoundError):
        found.get("other", "me")
    assert found.list("you") == []
    assert found.get("e", "me").name == "Evaluation e"


def test_they_are_listed_newest_first(store: RunStore):
    for name in ("a", "b", "c"):
        create(store, name, items=1)
    assert [one.id for one in store.evaluations.list("me")] == ["c", "b", "a"]


def test_deleting_takes_items_tasks_and_attempts_along_and_leaves_answers(store: RunStore):
    found = create(store)
    create(store, "other", items=1)
    store.create("run-e-0", "me", examples.started("run-e-0"))
    answer(found, next(tasks(1)))
    found.delete("e", "me")
    assert [one.id for one in found.list("me")] == ["other"]
    counts = {
        table: count(store, table)
        for table in ("evaluation_items", "evaluation_tasks", "evaluation_attempts", "outcomes")
    }
    assert counts == {
        "evaluation_items": 1, "evaluation_tasks": 2, "evaluation_attempts": 0, "outcomes": 1,
    }  # fmt: skip
    assert store.load("run-e-0", "me")
    with pytest.raises(NotFoundError):
        found.item("e", 0)


def test_items_come_in_order_and_in_parts(store: RunStore):
    found = create(store, items=1100)
    after, names = -1, []
    while some := found.items("e", "me", after):
        assert len(some) <= 500
        after += len(some)
        names += [body["id"] for body in some]
    assert names == [f"q{number}" for number in range(1100)]
    assert found.item("e", 1099)["id"] == "q1099"
    after, numbers = -1, []
    while some := found.open_tasks("e", after):
        after = some[-1].number
        numbers += [task.number for task in some]
    assert numbers == list(range(2200))


def test_nothing_of_an_evaluation_is_stored_where_a_part_cannot_be(store: RunStore):
    rows = [("q0", Item(id="q0", question="Who?"))]

    def broken() -> Iterator[AnswerTask]:
        yield from tasks(1)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        store.evaluations.create("e", "me", "e", {}, rows, broken())
    assert store.evaluations.list("me") == []
    assert count(store, "evaluation_items") == 0


def test_texts_that_a_database_refuses_are_kept_as_far_as_they_can_be(store: RunStore):
    odd = Item(id="q\x00", question="a\x00b \ud800 中")
    store.evaluations.create("e", "me", "n\x00", {}, [(odd.id, odd)], tasks(1))
    assert "中" in store.evaluations.item("e", 0)["question"]


def test_finding_what_is_missing_reads_an_index(url: str):
    """In proportion to what is missing: neither tasks that are done are read, nor other ones."""
    asked: list[tuple[str, Any]] = []
    with closing(RunStore(url)) as store:
        found = create(store, items=1000)
        answered = list(tasks(1000))[:-3]
        with store._database.write() as session:
            session.execute(
                text("UPDATE evaluation_tasks SET done = :yes WHERE number <= :last"),
                {"yes": True, "last": answered[-1].number},
            )
        if not url.startswith("sqlite"):
            with store._database.write() as session:
                session.execute(text("ANALYZE evaluation_tasks"))
        engine = store._database._engine

        def note(_c: Any, _cur: Any, statement: str, parameters: Any, *_: Any) -> None:
            asked.append((statement, parameters))

        event.listen(engine, "before_cursor_execute", note)
        assert len(found.open_tasks("e")) == 3
        event.remove(engine, "before_cursor_execute", note)
        ((statement, parameters),) = [one for one in asked if "evaluation_tasks" in one[0]]
        explain = "EXPLAIN QUERY PLAN " if url.startswith("sqlite") else "EXPLAIN "
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(explain + statement, parameters)
            plan = " ".join(str(row) for row in rows)
    assert "ix_evaluation_tasks_evaluation_done_number" in plan, plan
    assert "SCAN evaluation_tasks" not in plan
    assert "Seq Scan" not in plan
    # Sorting would need all of them first.
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan
