"""The results on the Evaluate page: filtered, compared, and each answer with its run."""

from __future__ import annotations

import pytest

from app import results
from app.screens.evaluate.compare import open_run
from pipelines.engine.service import Engine
from pipelines.errors import failure
from pipelines.evaluation.runner import keep_overview
from tests.app.evaluate_page import (
    CAPITALS,
    captions,
    ended,
    evaluate,
    press,
    with_file,
)
from tests.app.evaluate_page import engine as engine
from tests.app.evaluate_page import model as model
from tests.app.playing import seen
from tests.app.test_screens import ME
from tests.pipelines.evaluation.studies.recorded import TEXTS, record
from tests.scripted.fakes import FakeModel


def test_results_are_filtered_and_compared(engine: Engine):
    test = with_file("capitals.csv", CAPITALS)
    test.multiselect(key="evaluate.map.1.tags").set_value(["Area"]).run()
    ended(press(test, "run"))
    evaluation = test.query_params["evaluation"]
    assert test.multiselect(key=f"evaluate.compare.{evaluation}").value == ["direct", "rag"]
    test.multiselect(key="evaluate.filter.tags").set_value(["europe"])
    test.multiselect(key="evaluate.filter.metrics").set_value(["accuracy"]).run()
    assert not test.exception
    told = seen(test)
    assert "2 items · only europe" in told
    assert "BLEU" not in told
    assert "Items 1 to 2 of 2" in told
    test.selectbox(key="evaluate.compare.metric").set_value("accuracy")
    which = next(one for one in test.selectbox if (one.key or "").startswith("evaluate.which"))
    which.set_value("different").run()
    assert "No item fits this choice." in seen(test)
    which = next(one for one in test.selectbox if (one.key or "").startswith("evaluate.which"))
    which.set_value("wrong rag").run()
    assert "Items 1 to 1 of 1" in seen(test)
    assert "What is the capital of Italy?" in seen(test)
    # One system has its items, too, each with its run.
    test.multiselect(key=f"evaluate.compare.{evaluation}").set_value(["rag"]).run()
    assert not test.exception
    assert "Items 1 to 2 of 2" in seen(test)
    test.text_input(key="evaluate.search").input("FRANCE").run()
    assert "Items 1 to 1 of 1" in seen(test)
    test.multiselect(key=f"evaluate.compare.{evaluation}").set_value([]).run()
    assert "Choose a system, or several to compare them." in captions(test)


def test_the_detectors_are_those_of_the_part_that_is_shown(engine: Engine):
    items = [
        item.model_copy(update={"tags": ("early",) if number < 3 else ()})
        for number, item in enumerate(TEXTS)
    ]
    test = evaluate(**{"evaluate.export": True})
    test.query_params["evaluation"] = engine.call(record(engine.service, ME, items=items))
    test.run()
    assert not test.exception
    assert "Detection of hallucinated answers" in seen(test)
    assert "4 items with a label; share of hallucinated ones: 0.50" in seen(test)
    test.multiselect(key="evaluate.filter.tags").set_value(["early"]).run()
    assert not test.exception
    assert "3 items with a label; share of hallucinated ones: 0.67" in seen(test)
    # The files are there too, which hold the detectors.
    assert any("Tables hold what is shown above" in one for one in captions(test))


def test_a_stored_table_is_shown_before_the_scores_are_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    evaluation = engine.call(record(engine.service, ME, items=TEXTS))
    keep_overview(engine.service.store.evaluations, evaluation, ME)

    def unreadable(*_: object) -> None:
        raise failure("storage.lost")

    monkeypatch.setattr(results, "read_results", unreadable)
    test = evaluate()
    test.query_params["evaluation"] = evaluation
    test.run()
    assert not test.exception
    assert "4 items" in seen(test)
    assert failure("storage.lost").message in seen(test)


def test_two_evaluations_are_compared_item_by_item(engine: Engine, model: FakeModel):
    first = ended(press(with_file("capitals.csv", CAPITALS), "run")).query_params["evaluation"]
    model.replies[:] = ["Tokyo."]
    others = {"ask.direct.max_tokens": 99, "ask.rag.max_tokens": 99}
    test = with_file("capitals.csv", CAPITALS, **others, **{"evaluate.compare.fold": True})
    ended(press(test, "run"))
    second = test.query_params["evaluation"]
    assert first != second
    test.selectbox(key=f"evaluate.other.{second}").set_value(first).run()
    assert not test.exception
    chosen = next(
        one for one in test.multiselect if (one.key or "").startswith("evaluate.compare.")
    )
    assert chosen.value == ["this: direct", "other: direct"]
    told = seen(test)
    assert "this: Direct − other: Direct" in told
    assert "Items 1 to 5 of 5" in told

    # Other items: the reason, then equal ids.
    part = with_file("half.csv", CAPITALS, **{"evaluate.half": "odd"}, **others)
    # All of it was answered already.
    press(part, "run")
    third = part.query_params["evaluation"]
    part.session_state["evaluate.compare.fold"] = True
    part.run()
    part.selectbox(key=f"evaluate.other.{third}").set_value(first).run()
    assert "The other evaluation is not of the same items (half:odd, capitals)" in seen(part)
    part.toggle(key=f"evaluate.same_ids.{third}").set_value(True).run()
    assert not part.exception
    assert "this: Direct − other: Direct" in seen(part)
    assert "Items 1 to 2 of 2" in seen(part)


def test_the_run_behind_an_answer_is_opened(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("app.page.open_run", opened.append)
    monkeypatch.setattr("app.page.go_to", opened.append)
    open_run({"action": "open_run", "value": "abc"})
    assert opened == ["abc", "ask"]
