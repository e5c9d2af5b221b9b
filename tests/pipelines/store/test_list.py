"""The list of runs: order, search, and what it says of each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipelines.errors import InvalidInputError
from pipelines.store import RunStore, RunSummary
from pipelines.store.tables import RunRow
from tests.pipelines.store import examples


def ask(store: RunStore, run: str, created: float, question: str = "?") -> None:
    store.create(run, "me", examples.started(run, question, created))


def ids(runs: list[RunSummary]) -> list[str]:
    return [run.id for run in runs]


def test_a_line_says_what_happened(store: RunStore):
    store.create("r1", "me", examples.started("r1"))
    store.append("r1", examples.steps("r1"))
    expected = {
        "id": "r1",
        "question": examples.QUESTION,
        "language": "zh",
        "status": "running",
        "created": datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC),
        "methods": ("drad", "rag"),
        "duration": 9.0,
        "model_calls": 2,
        "cached_calls": 1,
        "retrievals": 1,
        "verdicts": {"doubtful": 1},
        "flags": ("unverified",),
        "reason": None,
        "originals": {"Lu Xun": 1},
        "answers": {"曹雪芹": 1},
        "name": "",
        "note": "",
        "starred": False,
        "tags": (),
        "findings": (),
    }
    assert store.list("me")[0].model_dump() == expected
    store.append("r1", [examples.finished("r1", 10)])
    assert store.list("me")[0].model_dump() == {
        **expected,
        "status": "finished",
        "duration": 10.0,
    }


def test_newest_first(store: RunStore):
    for run, created in (("b", 20.0), ("a", 30.0), ("c", 10.0), ("d", 20.000_001)):
        ask(store, run, created)
    assert ids(store.list("me")) == ["a", "d", "b", "c"]


def test_runs_of_one_moment_have_an_order(store: RunStore):
    for number in range(9):
        ask(store, f"r{number}", float(number // 3))
    assert ids(store.list("me")) == [f"r{number}" for number in (8, 7, 6, 5, 4, 3, 2, 1, 0)]
    assert ids(store.list("me", limit=2)) == ["r8", "r7"]


def test_a_list_may_be_empty(store: RunStore):
    assert store.list("me") == []
    ask(store, "r1", 1.0)
    assert store.list("me", limit=0) == []
    assert store.list("me", limit=-1) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("moon", ["en"]),
        ("MOON", ["en"]),
        ("月球", ["zh"]),
        ("100%", ["percent"]),
        ("%", ["percent"]),
        ("_", []),
        ("\\", []),
        ("' OR '1'='1", []),
        ("\x00", []),
        ("\ud800", []),
        ("", ["percent", "zh", "en"]),
        (None, ["percent", "zh", "en"]),
    ],
)
def test_search_takes_the_text_literally(store: RunStore, text: str | None, found: list[str]):
    ask(store, "en", 1.0, "Who walked on the Moon first?")
    ask(store, "zh", 2.0, "谁第一个登上月球？")
    ask(store, "percent", 3.0, "Is it 100% certain?")
    assert ids(store.list("me", text=text)) == found


def test_search_stays_with_the_owner(store: RunStore):
    for number in range(6):
        ask(store, f"r{number}", float(number), "odd" if number % 2 else "even")
    store.create("foreign", "you", examples.started("foreign", "odd"))
    page = store.list("me", limit=2, text="odd")
    assert ids(page) == ["r5", "r3"]


def test_a_search_text_has_a_limit(store: RunStore):
    with pytest.raises(InvalidInputError, match="1000 characters"):
        store.list("me", text="x" * 1001)


def test_finished_runs_are_listed_with_the_model_that_answered(store: RunStore):
    for run, created in (("old", 10.0), ("new", 20.0), ("failed", 30.0), ("running", 40.0)):
        ask(store, run, created)
    store.append("old", [examples.finished("old", 1)])
    store.append("new", [examples.finished("new", 1)])
    store.append("failed", [examples.failed("failed", 1)])
    store.create("other", "you", examples.started("other", created=50.0))
    store.append("other", [examples.finished("other", 1)])
    found = store.finished("me")
    assert [one.id for one in found] == ["new", "old"]
    assert found[0].created == datetime.fromtimestamp(20.0, UTC)
    assert found[0].main == examples.started("new").spec.models["main"]
    assert [one.id for one in store.finished("me", limit=1)] == ["new"]


def test_a_finished_run_whose_model_cannot_be_read_is_left_out(store: RunStore):
    for run in ("a", "b"):
        ask(store, run, 1.0)
        store.append(run, [examples.finished(run, 1)])
    with store._database.write() as session:
        row = session.get(RunRow, "a")
        assert row is not None
        row.spec = {"models": {"main": {"of a later": "version"}}}
    assert [one.id for one in store.finished("me")] == ["b"]
