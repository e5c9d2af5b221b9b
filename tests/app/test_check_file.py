"""A file of texts on the Check page: all are checked, what cannot be is said in its place."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.jobs import FileChecks, TextCheck, check_texts, checks
from app.screens.check import MAX_TEXTS
from components.base.words import Catalogue
from components.run.check_many import CheckOutcome, as_json_lines, as_table, many_view
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import TextToCheck
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.errors import ErrorInfo
from pipelines.run.events import MethodSpec
from tests.app.opening import page_engine
from tests.app.playing import load, open_engine, seen
from tests.app.test_check_screen import ONE, TEXT
from tests.app.test_screens import ME, page
from tests.scripted.fakes import FakeModel

TEA = "Tea is hot. Ice is cold."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, open_engine) as opened:
        yield opened
        checks.clear()


def check(name: str, data: str, **state: object) -> AppTest:
    test = page("check", **ONE, **{"check.many.form": True, **state}).run()
    test.file_uploader(key="check.file").set_value((name, data.encode(), "")).run()
    test.button(key="check.many.run").click().run()
    assert not test.exception
    return test


def over(test: AppTest) -> FileChecks:
    job = checks.get(ME)
    assert job is not None
    assert job.wait(60)
    test.run()
    assert not test.exception
    return job.progress


def test_every_text_is_a_run_and_what_cannot_be_checked_is_said(engine: Engine):
    rows = [
        {"id": "a", "text": TEXT},
        {"id": "b", "text": "…"},
        {"id": "c", "answer": TEA, "question": "How is tea?", "sources": ["Tea is hot."]},
    ]
    test = check("My texts.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    many = over(test)
    text = seen(test)
    assert "3 of 3 texts are done." in text
    assert "The text holds no word that could be checked." in text
    first, second, third = many.outcomes
    assert (first.status, second.run, third.status) == ("finished", "", "finished")
    # Its own sources are what it was held against, and lists find all of the file by its tag.
    assert load(engine, third.run).header.spec.evidence.text == "Tea is hot."
    assert load(engine, first.run).header.spec.evidence.source == "library"
    known = {run.id: run for run in engine.service.store.list(ME)}
    assert known[first.run].tags == ("My texts",)
    assert known[first.run].title == TEXT
    assert known[third.run].title == "How is tea?"

    lines = [json.loads(line) for line in as_json_lines(many.outcomes).splitlines()]
    assert [one["status"] for one in lines] == ["finished", "refused", "finished"]
    assert [one["text"] for one in lines[0]["sentences"]] == TEXT.replace(". ", ".|").split("|")
    table = list(csv.DictReader(io.StringIO(as_table(many.outcomes))))
    assert [row["id"] for row in table] == ["a", "a", "a", "b", "c", "c", "c"]
    assert table[3]["error"]
    assert table[0]["slm_verdict"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", "id,question\n1,Who?\n", "has no column of a usual name"),
        ("a.txt", " \n", "holds no text"),
        ("a.json", "{", "cannot be used"),
        ("a.txt", "Tea.\n\n" * (MAX_TEXTS + 1), "100 can be checked at once"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(engine: Engine, name: str, data: str, said: str):
    test = check(name, data)
    assert said in seen(test)
    assert checks.get(ME) is None
    assert engine.service.store.list(ME) == []


def test_a_limit_holds_for_each_text(engine: Engine):
    test = check("two.txt", f"Tea is hot.\n\n{' '.join([TEXT] * 20)}", **{"limit.calls": 20})
    short, long = over(test).outcomes
    assert short.status == "finished"
    assert long.error is not None
    assert "limit 20" in long.error.message


def test_stopped_it_ends_the_run_under_way_and_begins_no_other_text(tmp_path: Path):
    model = FakeModel("yes", gated=True)
    with page_engine(tmp_path, partial(Engine, pool=ModelPool(lambda *_: model))) as engine:
        # With a question, its first step asks the model for samples.
        given = TextToCheck(text=TEXT, question="Where was she born?")
        asked = RunRequest(text=given, methods=[MethodSpec(name="selfcheck")])
        spec = plan_run(asked).spec
        job = check_texts("two", [TextCheck(name, TEXT, spec) for name in "ab"], {}, ME)
        engine.call(model.until_asked())
        job.stop()
        assert job.wait(60)
    (outcome,) = job.progress.outcomes
    assert (job.state, outcome.status) == ("stopped", "cancelled")


def test_a_file_belongs_to_its_visitor(engine: Engine):
    over(check("mine.txt", "Tea is hot."))
    assert checks.get("b" * 48) is None
    shown = seen(page("check", **{"_owner": "b" * 48, "check.many.form": True}).run())
    assert "texts are over" not in shown


def test_what_a_file_says_is_text_and_no_formula_or_markup():
    error = ErrorInfo(code="x", message="=1+1", remedy="")
    bad = CheckOutcome("=cmd()", "<b>bold</b>", error=error)
    (row,) = csv.DictReader(io.StringIO(as_table([bad])))
    assert (row["id"], row["error"]) == ("'=cmd()", "'=1+1")
    assert "<b>bold" not in many_view([bad], 1, Catalogue("en"))
