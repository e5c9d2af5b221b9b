"""The Compare page without a browser, on runs recorded by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pipelines.engine.estimate import Account, RunBudget
from pipelines.engine.service import Engine
from pipelines.run.events import RunStarted
from pipelines.run.ledger import Ledger, RunLimits
from pipelines.store import new_run_id
from tests.app.opening import page_engine
from tests.app.test_screens import ME, QUESTION, page, told
from tests.scripted.recorded import Record, full_method


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path) as engine:
        yield engine


def run_of(engine: Engine, question: str = QUESTION, *methods: str, finished: bool = True) -> str:
    """A recorded run, by its id."""
    run = new_run_id()
    record = Record(*(methods or ("direct", "rag")), run=run, question=question)
    for method in methods or ("direct", "rag"):
        full_method(record, method, "unchecked", "In Hope.", original="In York.")
    if finished:
        record.finish()
    started, *rest = record.events
    assert isinstance(started, RunStarted)
    engine.service.store.create(run, ME, started)
    engine.service.store.append(run, rest)
    return run


def compare(runs: str | None = None, **state: object) -> AppTest:
    test = page("compare", **state)
    if runs is not None:
        test.query_params["runs"] = runs
    return test


def shown(test: AppTest) -> int:
    """How many columns are drawn."""
    return told(test).count("vs-card vs-column")


def test_a_new_visitor_is_told_what_to_do(opened: Engine):
    test = compare().run()
    assert not test.exception
    assert "There is nothing to compare yet" in told(test)
    assert [button.label for button in test.button] == ["See a recorded run", "Ask"]


def test_one_run_is_compared_with_all_its_methods(opened: Engine):
    run = run_of(opened)
    test = compare(run).run()
    assert not test.exception
    assert shown(test) == 2
    assert test.multiselect(key="compare.columns").value == [f"{run}:direct", f"{run}:rag"]
    assert test.query_params["runs"] == run


def test_the_run_that_is_looked_at_is_taken(opened: Engine):
    run = run_of(opened)
    test = page("compare")
    test.query_params["run"] = run
    test.run()
    assert shown(test) == 2
    assert test.multiselect(key="compare.runs").value == [run]


def test_of_several_runs_the_same_methods_are_compared(opened: Engine):
    first, second = run_of(opened), run_of(opened, "Who was Ada?", "rag")
    test = compare(f"{first},{second}").run()
    assert test.multiselect(key="compare.columns").value == [f"{first}:rag", f"{second}:rag"]
    assert "answer different questions" in told(test)
    third = run_of(opened, QUESTION, "direct")
    test = compare(f"{second},{third}").run()
    assert test.multiselect(key="compare.columns").value == [f"{second}:rag", f"{third}:direct"]


def test_what_is_chosen_is_kept_in_the_address(opened: Engine):
    first, second = run_of(opened), run_of(opened)
    test = compare(first).run()
    test.multiselect(key="compare.runs").select(second).run()
    assert test.query_params["runs"] == f"{first},{second}"
    assert shown(test) == 4
    test.multiselect(key="compare.columns").unselect(f"{second}:rag").run()
    kept = [f"{first}:direct", f"{second}:direct", f"{first}:rag"]
    assert test.query_params["runs"].split(",") == kept
    assert shown(test) == 3
    test.multiselect(key="compare.columns").set_value([f"{first}:rag"]).run()
    assert test.query_params["runs"] == f"{first}:rag,{second}:"
    assert shown(test) == 1
    assert [caption.value for caption in test.caption] == ["Choose two or more columns."]
    test.multiselect(key="compare.runs").set_value([second]).run()
    assert (shown(test), test.query_params["runs"]) == (2, second)


def test_a_run_that_is_not_there_is_told_and_the_others_stay(opened: Engine):
    run = run_of(opened)
    test = compare(f"gone,{run},<b>:drad,{run}:nothing").run()
    assert not test.exception
    assert told(test).count("Not found") == 2
    assert test.multiselect(key="compare.runs").value == [run]
    assert "<b>" not in told(test)
    alone = compare("gone").run()
    assert not alone.exception
    assert "Not found" in told(alone)


def test_somebody_elses_run_is_not_shown(opened: Engine):
    run = run_of(opened)
    test = compare(run, _owner="b" * 48).run()
    assert "Not found" in told(test)
    assert "In Hope." not in told(test)


def test_the_reference_of_the_changes_can_be_chosen(opened: Engine):
    run = run_of(opened)
    test = compare(run, **{"compare.against": "first"}).run()
    assert not test.exception
    assert "No word was changed." in told(test)


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(opened: Engine):
    run = run_of(opened, finished=False)
    test = compare(run).run()
    assert not test.exception
    assert shown(test) == 2


def test_each_of_several_stop_buttons_says_which_run_it_stops(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
):
    account = Account(RunBudget(), Ledger(RunLimits()))
    monkeypatch.setattr(type(opened.service), "account", lambda *_, **__: account)
    first, second, over = (run_of(opened, finished=end) for end in (False, False, True))
    test = compare(f"{first},{over},{second}").run()
    assert not test.exception
    assert [b.label for b in test.button if "stop-" in (b.key or "")] == [
        "Stop run 1",
        "Stop run 3",
    ]
    test = compare(first).run()
    assert [b.label for b in test.button if "stop-" in (b.key or "")] == ["Stop"]


def test_runs_are_ticked_on_their_page_and_taken_along(opened: Engine):
    first, second = run_of(opened), run_of(opened)
    test = page("runs").run()
    assert test.button(key="compare").disabled
    test.checkbox(key=f"pick-{first}").check()
    test.checkbox(key=f"pick-{second}").check().run()
    assert test.button(key="compare").label == "Compare 2 runs"
    test.button(key="compare").click().run()
    wanted = test.session_state["_compare.wanted"]
    assert sorted(wanted) == sorted([first, second])
    test = compare(**{"_compare.wanted": wanted}).run()
    assert test.query_params["runs"] == ",".join(wanted)
    assert shown(test) == 4


def test_chinese(opened: Engine):
    run = run_of(opened)
    test = compare(run, lang="zh").run()
    assert not test.exception
    assert "<h1>比较</h1>" in told(test)
    assert [control.label for control in test.multiselect] == ["运行", "列"]
