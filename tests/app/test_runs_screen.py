"""The Runs page without a browser: finding, naming, picking, comparing, deleting."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import page as saving
from app.screens import runs
from app.screens import runs as run_selection
from pipelines.engine.service import Engine
from pipelines.run.events import RunStarted
from pipelines.store import RunFilter, new_run_id
from tests.app.opening import page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, QUESTION, page, told
from tests.scripted.recorded import Record, full_method

SOMEBODY_ELSE = "b" * 48


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path) as engine:
        yield engine


def run_of(
    engine: Engine,
    question: str = QUESTION,
    *methods: str,
    verdict: str = "doubtful",
    created: float = 0.0,
    owner: str = ME,
) -> str:
    """A recorded run, by its id."""
    run = new_run_id()
    record = Record(*(methods or ("drad",)), run=run, question=question)
    for method in methods or ("drad",):
        full_method(record, method, verdict)  # pyright: ignore[reportArgumentType]
    record.finish()
    started, *rest = record.events
    assert isinstance(started, RunStarted)
    engine.service.store.create(run, owner, started.model_copy(update={"created": created}))
    engine.service.store.append(run, rest)
    return run


def listed(test: AppTest) -> list[str]:
    """The runs of the list, in its order."""
    assert not test.exception
    keys = [button.key or "" for button in test.button]
    return [key.removeprefix("open-") for key in keys if key.startswith("open-")]


def said(test: AppTest) -> str:
    return " ".join(caption.value for caption in test.caption)


def test_runs_are_found_by_what_they_hold(opened: Engine):
    day = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    first = run_of(opened, "Where was Ada born?", "drad", created=day)
    second = run_of(opened, "Who wrote it?", "rag", verdict="confident", created=day + 86_400)
    store = opened.service.store
    store.labels.save(first, ME, name="The first", note="", tags=["paper"])
    test = page("runs").run()
    assert listed(test) == [second, first]
    assert "2 runs" in said(test)
    test.multiselect(key="runs.methods").select("drad").run()
    assert listed(test) == [first]
    assert "1 of 2 runs" in said(test)
    test.multiselect(key="runs.verdicts").select("confident").run()
    assert listed(test) == []
    assert "No run matches." in told(test)
    test.button(key="runs-clear").click().run()
    assert listed(test) == [second, first]
    test.multiselect(key="runs.tags").select("paper").run()
    assert listed(test) == [first]
    test.button(key="runs-clear").click().run()
    test.text_input(key="runs.text").input("the FIRST").run()
    assert listed(test) == [first]
    test.text_input(key="runs.text").input("").run()
    test.toggle(key="runs.starred").set_value(True).run()
    assert listed(test) == []
    test.toggle(key="runs.starred").set_value(False).run()
    test.date_input(key="runs.since").set_value(date(2026, 1, 2)).run()
    assert listed(test) == [second]
    test.date_input(key="runs.until").set_value(date(2026, 1, 1)).run()
    assert "comes after the last one" in told(test)


def test_the_address_says_what_is_listed(opened: Engine):
    found = run_of(opened, "Where was Ada born?", "drad")
    run_of(opened, "Who wrote it?", "rag")
    test = page("runs")
    test.query_params["runs.methods"] = "drad"
    test.run()
    assert listed(test) == [found]
    other = page("runs")
    other.query_params["runs.text"] = "wrote"
    assert found not in listed(other.run())
    # What cannot be meant is passed over.
    odd = page("runs")
    odd.query_params.update({"runs.since": "yesterday", "runs.starred": "maybe"})
    odd.query_params.update({"runs.verdicts": "so", "runs.page": "x"})
    assert len(listed(odd.run())) == 2


def test_an_address_sets_every_filter(opened: Engine):
    day = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
    found = run_of(opened, "Where was Ada born?", "drad", created=day)
    opened.service.store.labels.star(found, ME, True)
    run_of(opened, "Where was Ada raised?", "drad")
    test = page("runs")
    test.query_params.update(
        {
            "runs.text": "Ada",
            "runs.starred": "true",
            "runs.since": "2026-01-02",
            # By its name and not by its title, which is another in another language.
            "runs.methods": "drad",
        }
    )
    assert listed(test.run()) == [found]
    assert test.date_input(key="runs.since").value == date(2026, 1, 2)
    assert test.toggle(key="runs.starred").value
    assert test.text_input(key="runs.text").value == "Ada"
    assert test.query_params["runs.methods"] == "drad"


def test_a_long_list_has_pages(opened: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "LISTED", 2)
    every = [run_of(opened, created=float(number)) for number in range(5)][::-1]
    test = page("runs").run()
    assert listed(test) == every[:2]
    test.query_params["runs.page"] = "3"
    test.run()
    last = page("runs")
    last.query_params["runs.page"] = "3"
    assert listed(last.run()) == every[4:]


def test_a_run_is_named_tagged_noted_and_starred(opened: Engine):
    run = run_of(opened)
    test = page("runs", **{f"more-{run}": True}).run()
    test.text_input(key=f"name-{run}").input("The first")
    test.text_area(key=f"note-{run}").input("Look again.")
    test.multiselect(key=f"tags-{run}").set_value(["paper"])
    test.button(key=f"save-{run}").click().run()
    summary = opened.service.store.summary(run, ME)
    assert (summary.name, summary.note, summary.tags) == ("The first", "Look again.", ("paper",))
    for words in ("The first", "Look again.", "paper", QUESTION):
        assert words in told(test)
    assert test.button(key=f"star-{run}").label == "☆ Star"
    test.button(key=f"star-{run}").click().run()
    assert test.button(key=f"star-{run}").label == "★ Starred"
    assert opened.service.store.summary(run, ME).starred


def test_what_looks_like_a_key_is_refused_and_what_was_typed_stays(opened: Engine):
    run = run_of(opened)
    test = page("runs", **{f"more-{run}": True}).run()
    key = "sk-" + "a" * 30
    test.text_input(key=f"name-{run}").input(key)
    test.button(key=f"save-{run}").click().run()
    assert "looks like a key" in told(test)
    assert opened.service.store.summary(run, ME).name == ""
    assert test.text_input(key=f"name-{run}").value == key


def test_picked_runs_are_tagged_and_deleted_together(opened: Engine):
    kept, *gone = [run_of(opened, created=float(number)) for number in range(3)]
    test = page("runs").run()
    assert test.button(key="delete-nothing").disabled
    for run in gone:
        test.checkbox(key=f"pick-{run}").check()
    test.run()
    test.session_state["tag-picked"] = True
    test.run()
    test.multiselect(key="tag-add").set_value(["draft"])
    test.button(key="tag-save").click().run()
    store = opened.service.store
    assert {one.id for one in store.list(ME, where=RunFilter(tags=("draft",)))} == set(gone)
    assert "Delete 2 picked runs permanently?" in [text.value for text in test.text]
    test.button(key="sure-picked").click().run()
    assert listed(test) == [kept]
    assert test.button(key="compare").disabled


def test_what_is_picked_stays_picked_on_other_pages(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runs, "LISTED", 2)
    every = [run_of(opened, created=float(number)) for number in range(3)][::-1]
    test = page("runs").run()
    test.button(key="pick-page").click().run()
    assert test.button(key="compare").label == "Compare 2 runs"
    assert test.button(key="pick-page").label == "Unpick this page"
    test.button(key="pick-found").click().run()
    assert test.session_state["_runs.picked"] == every
    texts = [text.value for text in test.text]
    assert "Delete 3 picked runs permanently? 1 of them is not on this page." in texts
    test.button(key="pick-clear").click().run()
    assert test.session_state["_runs.picked"] == []
    assert not test.checkbox(key=f"pick-{every[0]}").value


def test_a_run_that_is_gone_is_not_picked_any_more(opened: Engine):
    run, other = run_of(opened), run_of(opened)
    test = page("runs").run()
    test.button(key="pick-page").click().run()
    opened.service.store.delete(run, ME)
    test.run()
    assert test.session_state["_runs.picked"] == [other]


def test_two_runs_lead_to_what_changed(opened: Engine):
    first, second = run_of(opened), run_of(opened, verdict="confident", created=5.0)
    test = page("runs").run()
    test.checkbox(key=f"pick-{first}").check().run()
    assert test.button(key="changes").disabled
    test.checkbox(key=f"pick-{second}").check().run()
    test.button(key="changes").click().run()
    wanted = {name: test.session_state[name] for name in ("_compare.wanted", "_compare.view")}
    test = page("compare", **wanted).run()
    assert not test.exception
    assert test.query_params["view"] == "changes"
    assert "What differs in the conditions" in seen(test)
    assert "1 of 1 methods has another" in seen(test)
    # The address alone does the same, whatever the order.
    again = page("compare")
    again.query_params.update({"runs": f"{second},{first}", "view": "changes"})
    assert seen(again.run()).count("Earlier run") == seen(test).count("Earlier run")


def test_runs_are_saved_together(opened: Engine):
    first = run_of(opened)
    foreign = run_of(opened, owner=SOMEBODY_ELSE)
    with zipfile.ZipFile(io.BytesIO(run_selection._archive((first, foreign), ME))) as archive:
        assert archive.namelist() == [f"veriscope-{first}.jsonl"]


def test_the_report_and_the_record_are_made_when_they_are_asked_for(opened: Engine):
    run = run_of(opened)
    html = saving._report(run, ME, "zh")
    assert html.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert QUESTION in html
    lines = saving._exported(run, ME).splitlines()
    assert json.loads(lines[0])["format"] == "veriscope-run"


def test_a_finished_run_can_be_saved_where_it_is_looked_at(opened: Engine):
    run = run_of(opened)
    test = page("ask")
    test.query_params["run"] = run
    test.run()
    assert not test.exception
    assert [one.proto.label for one in test.get("download_button")] == ["Report", "Export"]
    assert f"/?run={run}" in [code.value for code in test.code]


def test_chinese(opened: Engine):
    run = run_of(opened)
    test = page("runs", lang="zh", **{f"more-{run}": True}).run()
    assert listed(test) == [run]
    assert "1 次运行" in said(test)
