"""The Evaluate page: an evaluation is begun, forecast, stopped, continued and deleted."""

from __future__ import annotations

import pytest

from app.jobs import evaluations, start_evaluation
from pipelines.engine.service import Engine
from pipelines.errors import UnreachableError
from pipelines.evaluation.forms import forms
from pipelines.evaluation.plan import Budget
from pipelines.models.providers import ModelSpec, Price
from tests.app.evaluate_page import (
    CAPITALS,
    captions,
    ended,
    evaluate,
    press,
    stored_spec,
    with_file,
)
from tests.app.evaluate_page import engine as engine
from tests.app.evaluate_page import model as model
from tests.app.playing import seen
from tests.app.test_screens import ME
from tests.scripted.fakes import FakeModel


@pytest.mark.parametrize(
    ("lang", "title", "size"),
    [("en", "Evaluate", "20 items × 2 systems = 40 answers"), ("zh", "评测", "= 40 个回答")],
)
def test_a_new_visitor_can_begin_at_once(engine: Engine, lang: str, title: str, size: str):
    test = evaluate(lang=lang).run()
    assert not test.exception
    assert title in seen(test)
    assert any(size in one for one in captions(test))
    assert not test.button(key="evaluate.try").disabled


def test_without_a_method_there_is_nothing_to_begin(engine: Engine):
    test = evaluate().run()
    for name in ("direct", "rag"):
        test.checkbox(key=f"evaluate.method.questions.{name}").uncheck()
    test.run()
    assert "Choose at least one method." in seen(test)
    assert test.button(key="evaluate.run").disabled


def test_the_first_items_tell_what_the_rest_takes(engine: Engine, model: FakeModel):
    test = with_file("capitals.csv", CAPITALS)
    test.checkbox(key="evaluate.method.questions.rag").uncheck().run()
    ended(press(test, "try"))
    told = seen(test)
    # Three of five items by one system; each took one call of one token.
    assert "3 of 5 answers" in told
    assert "Spent: 3 calls · 3 tokens" not in told or len(model.asked) == 3
    assert "Forecast: what the rest will take" in told
    assert "Answers2Calls2Tokens read and written2" in told
    assert "Paused" in told
    ended(press(test, "run"))
    assert "5 of 5 answers" in seen(test)
    assert len(model.asked) == 5
    assert "Forecast" not in seen(test)
    # One in five: Paris.
    assert "0.20 [" in seen(test)


def test_two_tabs_carry_an_evaluation_out_once(engine: Engine, model: FakeModel):
    model.gate.clear()
    test = press(with_file("capitals.csv", CAPITALS), "run")
    evaluation = test.query_params["evaluation"]
    job = evaluations.get((ME, evaluation))
    assert job is not None
    assert "Running" in seen(test)
    other = evaluate()
    other.query_params["evaluation"] = evaluation
    other.run()
    assert "Running" in seen(other)
    assert "evaluate.run" not in [button.key for button in other.button]
    assert start_evaluation(evaluation, owner=ME, keys={}, at_once=1) is job
    press(other, "stop")
    assert not job.going_on
    assert "It was stopped. Continue at any time" in seen(other)
    assert "Paused" in seen(other)
    model.gate.set()
    ended(press(other, "run"))
    assert "10 of 10 answers" in seen(other)


def test_what_a_dead_process_left_is_paused_and_goes_on(engine: Engine):
    test = ended(press(with_file("capitals.csv", CAPITALS), "try"))
    evaluation = test.query_params["evaluation"]
    evaluations.clear()
    later = evaluate()
    later.query_params["evaluation"] = evaluation
    later.run()
    assert "Paused" in seen(later)
    assert "6 of 10 answers" in seen(later)
    ended(press(later, "run"))
    assert "10 of 10 answers" in seen(later)


def test_it_stops_at_a_limit(engine: Engine, model: FakeModel):
    test = with_file("capitals.csv", CAPITALS)
    test.number_input(key="evaluate.most.calls").set_value(2)
    test.number_input(key="evaluate.at_once").set_value(1).run()
    ended(press(test, "run"))
    assert "It stopped because the limit of 2 calls was reached. 2 of 10 answers" in seen(test)
    assert len(model.asked) == 2
    # Another browser session is told, and stops there too.
    evaluation = test.query_params["evaluation"]
    evaluations.clear()
    later = evaluate()
    later.query_params["evaluation"] = evaluation
    later.run()
    assert "stops at 2 calls" in seen(later)
    assert "Spent: 2 calls" in seen(later)
    assert later.number_input(key=f"evaluate.{evaluation}.most.calls").value == 2
    later.number_input(key=f"evaluate.{evaluation}.most.calls").set_value(1000).run()
    ended(press(later, "run"))
    assert "10 of 10 answers" in seen(later)
    assert stored_spec(engine, evaluation).limits == Budget(calls=1000)


def test_a_limit_of_money_needs_a_price(engine: Engine, model: FakeModel):
    test = with_file("capitals.csv", CAPITALS)
    assert test.number_input(key="evaluate.most.money").disabled
    assert any("none of the chosen models has a price" in one for one in captions(test))
    price = Price(read=1, written=1, currency="CNY")
    engine.service.store.models.save(ME, ModelSpec(name="paid", model="paid", price=price))
    test.session_state["model.main"] = "paid"
    test.run()
    money = test.number_input(key="evaluate.most.money")
    assert (money.label, money.disabled) == ("Stop after money (CNY)", False)
    money.set_value(5.0).run()
    press(test, "run")
    assert stored_spec(engine, test.query_params["evaluation"]).limits == Budget(money=5)
    ended(test)
    assert "stops at CN¥5.00" in seen(test)


def test_a_method_takes_part_twice_with_settings_of_its_own(engine: Engine, model: FakeModel):
    test = with_file("capitals.csv", CAPITALS, **{"evaluate.settings": True})
    test.checkbox(key="evaluate.method.questions.rag").uncheck().run()
    test.number_input(key="evaluate.copies.direct").set_value(2).run()
    assert not test.exception
    assert "5 items × 2 systems = 10 answers" in captions(test)
    assert "direct and direct 2 have the same settings" in seen(test)
    field = next(
        one for one in test.number_input if (one.key or "").startswith("evaluate.direct 2")
    )
    field.set_value(99).run()
    assert "have the same settings" not in seen(test)
    ended(press(test, "run"))
    spec = stored_spec(engine, test.query_params["evaluation"])
    assert [(one.name, one.method.name) for one in spec.systems] == [
        ("direct", "direct"),
        ("direct 2", "direct"),
    ]
    assert spec.systems[0].method.settings == {}
    assert 99 in spec.systems[1].method.settings.values()
    assert "10 of 10 answers" in seen(test)


@pytest.mark.parametrize(
    ("lang", "said", "own"),
    [
        ("en", "form of the answers: Chain of thought that ends with yes or no", "a form of their"),
        ("zh", "回答的形式：以是或否结尾的思维链", "这些系统保留自己的形式：Rowen"),
    ],
)
def test_every_system_answers_in_the_form_that_is_chosen(
    engine: Engine, model: FakeModel, lang: str, said: str, own: str
):
    test = with_file("capitals.csv", CAPITALS, lang=lang)
    test.checkbox(key="evaluate.method.questions.rag").uncheck()
    test.checkbox(key="evaluate.method.questions.rowen").check().run()
    assert not any(own in one for one in captions(test))
    test.selectbox(key="evaluate.form").set_value("yes_no").run()
    assert any(own in one for one in captions(test))
    test.checkbox(key="evaluate.method.questions.rowen").uncheck().run()
    ended(press(test, "run"))
    spec = stored_spec(engine, test.query_params["evaluation"])
    assert spec.form == "yes_no"
    asked = {"direct": forms()["yes_no"]["direct"]}
    assert [one.prompts for one in spec.systems] == [asked]
    assert said in seen(test)
    # Every question was asked with the demonstrations.
    told = [" ".join(one.content for one in request.messages) for request in model.asked]
    assert len(told) == 5
    assert all("Could a hen's egg float in the Dead Sea?" in one for one in told)


def test_texts_that_are_there_have_the_form_they_have(engine: Engine):
    test = with_file("labelled.csv", b"Question,Answer,hallucinated\nWho?,Ada.,0\nWhen?,1815.,1\n")
    test.session_state["evaluate.form"] = "reasoned"
    test.segmented_control(key="evaluate.checks.questions.texts").set_value("texts").run()
    assert "evaluate.form" not in [box.key for box in test.selectbox]
    press(test, "run")
    assert stored_spec(engine, test.query_params["evaluation"]).form is None


def test_a_server_that_is_away_is_told(engine: Engine, model: FakeModel):
    model.replies[:] = [UnreachableError("Nobody answers.", remedy="Start it.")]
    test = ended(press(with_file("capitals.csv", CAPITALS), "run"))
    assert "Nobody answers." in seen(test)
    assert "0 of 10 answers" in seen(test)
    assert not test.button(key="evaluate.run").disabled


def test_evaluations_are_listed_opened_and_deleted(engine: Engine, model: FakeModel):
    model.gate.clear()
    test = press(with_file("capitals.csv", CAPITALS), "run")
    evaluation = test.query_params["evaluation"]
    press(test, "all")
    assert "evaluation" not in test.query_params
    assert "capitals: Direct, RAG" in seen(test)
    test.button(key=f"open-{evaluation}").click().run()
    assert test.query_params["evaluation"] == evaluation
    stranger = evaluate(_owner="b" * 48)
    stranger.query_params["evaluation"] = evaluation
    stranger.run()
    assert "Not found" in seen(stranger)
    assert "capitals" not in seen(stranger)
    job = evaluations.get((ME, evaluation))
    test.button(key=f"sure-{evaluation}").click().run()
    assert not test.exception
    assert job is not None
    assert not job.going_on
    assert engine.service.store.evaluations.list(ME) == []
    assert "No evaluations yet." in seen(test)
