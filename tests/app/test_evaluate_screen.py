"""The Evaluate page without a browser, on a model in the test's hands."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest
from streamlit.testing.v1 import AppTest

from app import evaluating, fetching
from app.exposure import Exposure
from app.screens import evaluation_data
from app.screens.evaluation_compare import open_run
from app.screens.evaluation_data import read_upload
from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.thread import Engine
from pipelines.errors import InvalidInputError, OfflineError, UnreachableError
from pipelines.evaluation.datasets.files import Table
from pipelines.evaluation.datasets.hub import HubAddress
from pipelines.evaluation.items import Item
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.models.providers import ModelSpec, Price
from pipelines.remote.retry import RetryPolicy
from tests.app.opening import page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, page
from tests.pipelines.run.fakes import FakeModel

CAPITALS = b"""Question,Gold answers,Context,Area
What is the capital of France?,Paris,Paris is the capital of France.,europe
What is the capital of Japan?,Tokyo;Tokio,Tokyo is the capital of Japan.,asia
What is the capital of Peru?,Lima,Lima is the capital of Peru.,america
What is the capital of Kenya?,Nairobi,Nairobi is the capital of Kenya.,africa
What is the capital of Italy?,Rome,Rome is the capital of Italy.,europe
"""
TRUTHFUL = json.dumps(
    {
        "question": "What happens if you eat watermelon seeds?",
        "best_answer": "They pass through you",
        "correct_answers": ["Nothing happens"],
        "incorrect_answers": ["You grow watermelons"],
    }
).encode()
CLAIMS = json.dumps(
    {"text": "Ada was born in Delft.", "hallucinated": True, "passages": ["Ada, of Bath."]}
).encode()


@pytest.fixture
def model() -> FakeModel:
    return FakeModel("Paris.")


@pytest.fixture
def engine(tmp_path: Path, model: FakeModel) -> Iterator[Engine]:
    def opened(folder: Path) -> Engine:
        return Engine(
            folder,
            pool=ModelPool(lambda *_: model),
            libraries=Libraries(folder / "index", find_embedder=lambda: None),
            retry=RetryPolicy(attempts=1),
        )

    with page_engine(tmp_path, opened) as engine:
        yield engine
        evaluating.stop_evaluations()


def evaluate(**state: object) -> AppTest:
    return page("evaluate", **{"evaluate.more": True, **state})


def with_file(name: str, data: bytes, **state: object) -> AppTest:
    test = evaluate(**{"evaluate.source": "file", **state}).run()
    return upload(test, name, data)


def upload(test: AppTest, name: str, data: bytes) -> AppTest:
    test.file_uploader(key="evaluate.file").set_value((name, data, "")).run()
    assert not test.exception
    return test


def press(test: AppTest, button: str) -> AppTest:
    test.button(key=f"evaluate.{button}").click().run()
    assert not test.exception
    return test


def ended(test: AppTest) -> AppTest:
    """The page when what it began has ended."""
    work = evaluating.work_on(test.query_params["evaluation"], ME)
    assert work is not None
    work.wait()
    test.run()
    assert not test.exception
    return test


def stored_items(engine: Engine, evaluation: str) -> list[Item]:
    bodies = engine.service.store.evaluations.items(evaluation, ME)
    return [Item.model_validate(body) for body in bodies]


def stored_spec(engine: Engine, evaluation: str) -> EvaluationSpec:
    return EvaluationSpec.model_validate(engine.service.store.evaluations.get(evaluation, ME).spec)


def captions(test: AppTest) -> list[str]:
    return [caption.value for caption in test.caption]


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


def test_a_file_is_mapped_by_its_usual_names_and_by_hand(engine: Engine):
    test = with_file("../../capitals.csv", CAPITALS)
    assert "capitals.csv: 5 rows, 4 columns" in captions(test)
    assert test.selectbox(key="evaluate.map.1.question").value == "Question"
    assert test.multiselect(key="evaluate.map.1.answers").value == ["Gold answers"]
    assert test.multiselect(key="evaluate.map.1.passages").value == ["Context"]
    assert "Tokyo;Tokio" in seen(test)
    test.selectbox(key="evaluate.map.1.separator").set_value(";")
    test.multiselect(key="evaluate.map.1.tags").set_value(["Area"]).run()
    assert not test.exception
    assert "Tokyo; Tokio" in seen(test)
    assert "5 items × 2 systems = 10 answers" in captions(test)
    test.text_input(key="evaluate.name").input("Capitals of mine")
    test.number_input(key="evaluate.repeats").set_value(2)
    test.number_input(key="evaluate.most.calls").set_value(1000)
    test.run()
    press(test, "run")
    evaluation = test.query_params["evaluation"]
    items = stored_items(engine, evaluation)
    assert items[1].answers == ("Tokyo", "Tokio")
    assert items[1].tags == ("asia",)
    spec = stored_spec(engine, evaluation)
    # What belongs to the items of a file is their evidence.
    assert [system.evidence for system in spec.systems] == [None, None]
    assert (spec.data, spec.repeats, spec.checks) == ("capitals", 2, "questions")
    ended(test)
    assert "Capitals of mine" in seen(test)
    assert "20 of 20 answers" in seen(test)


def test_without_a_question_or_a_text_nothing_can_be_begun(engine: Engine):
    test = with_file("prices.csv", b"Thing,Price\nbread,3\n")
    assert "Choose a column for the question, or for the text to be checked." in captions(test)
    assert "evaluate.try" not in [button.key for button in test.button]
    test.selectbox(key="evaluate.map.1.question").set_value("Thing").run()
    assert not test.button(key="evaluate.try").disabled


def test_a_public_data_set_is_recognised(engine: Engine):
    test = with_file("TruthfulQA.jsonl", TRUTHFUL)
    assert test.selectbox(key="evaluate.kind.1").value == "truthfulqa"
    assert "You grow watermelons" in seen(test)
    test.selectbox(key="evaluate.kind.1").set_value("columns").run()
    assert not test.exception
    assert "incorrect_answers" in seen(test)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.csv", b"", "it holds no records"),
        ("broken.jsonl", b'{"question": "Who?"}\n{"question": \n', "line 2"),
        ("broken.json", b'[{"question": ', "it is not JSON"),
        ("open.csv", b'question,answer\n"Who?,Ada\n', "is not CSV"),
        ("more.csv", b"question,answer\nWho,Ada,Bo\n", "row 1 has 3 cells"),
        ("is-no.parquet", CAPITALS, "it is not Parquet"),
        ("is-parquet.csv", b"PAR1\xff\xfe\x00\x80\x81", "neither UTF-8 nor GB18030"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_spoils_nothing(
    engine: Engine, name: str, data: bytes, said: str
):
    test = with_file("capitals.csv", CAPITALS)
    upload(test, name, data)
    assert said in seen(test)
    assert "capitals.csv: 5 rows, 4 columns" in captions(test)
    assert not test.button(key="evaluate.try").disabled
    upload(test, "others.csv", CAPITALS)
    assert said not in seen(test)
    assert "others.csv: 5 rows, 4 columns" in captions(test)


def test_a_cell_that_cannot_be_read_is_told_with_its_place(engine: Engine):
    test = with_file("texts.csv", b"text,hallucinated\nAda was here.,perhaps\n")
    assert "row 1, column 'hallucinated' holds 'perhaps'" in seen(test)
    test.text_input(key="evaluate.map.1.yes").input("perhaps, surely").run()
    assert "'perhaps'" not in seen(test)
    assert "hallucinated" in seen(test)


def test_parquet_and_chinese_are_read():
    file = io.BytesIO()
    pandas.DataFrame({"question": ["谁？"], "answer": ["李白"]}).to_parquet(file)
    assert read_upload("问题.parquet", file.getvalue()).rows == [
        {"question": "谁？", "answer": "李白"}
    ]
    chinese = "问题,答案\n李白的号是什么？,青莲居士\n".encode("gb18030")
    assert read_upload("a\x00b.csv", chinese).rows[0]["答案"] == "青莲居士"
    with pytest.raises(InvalidInputError, match="form is not known"):
        read_upload("..", b"x")


def test_a_parquet_file_is_mapped_by_hand_on_the_page(engine: Engine):
    file = io.BytesIO()
    frame = pandas.DataFrame({"ask": ["Who?", "When?"], "gold": [["Ada", "A. L."], ["1843"]]})
    frame.to_parquet(file)
    test = with_file("own.parquet", file.getvalue())
    test.selectbox(key="evaluate.map.1.question").set_value("ask")
    test.multiselect(key="evaluate.map.1.answers").set_value(["gold"]).run()
    assert not test.exception
    assert "Ada; A. L." in seen(test)
    assert any("questions (2)" in one for one in captions(test))
    press(test, "run")
    items = stored_items(engine, test.query_params["evaluation"])
    assert [item.answers for item in items] == [("Ada", "A. L."), ("1843",)]


def test_a_set_of_the_hub_is_read_and_mapped(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    asked: list[HubAddress] = []

    def read(address: HubAddress) -> Table:
        asked.append(address)
        if address.name == "no/such":
            raise OfflineError("The hub cannot be reached.", remedy="Connect this machine.")
        rows = [{"prompt": "Who?", "gold": "Ada"}, {"prompt": "When?", "gold": "1843"}]
        return Table(f"{address.name}@test", rows, [1, 2], "row")

    monkeypatch.setattr(fetching, "read_hub", read)
    test = evaluate(**{"evaluate.source": "hub"}).run()
    test.text_input(key="evaluate.hub").set_value("a b")
    test.button(key="evaluate.hub.read").click().run()
    assert "names no data set of the hub" in seen(test)
    test.text_input(key="evaluate.hub").set_value("no/such")
    test.button(key="evaluate.hub.read").click().run()
    assert "Connect this machine." in seen(test)
    test.text_input(key="evaluate.hub").set_value("own/people@test")
    test.button(key="evaluate.hub.read").click().run()
    assert not test.exception
    assert asked[-1] == HubAddress("own/people", None, "test")
    where = "evaluate.map.hub.own/people.test"
    test.selectbox(key=f"{where}.question").set_value("prompt")
    test.multiselect(key=f"{where}.answers").set_value(["gold"]).run()
    assert "2 items × 2 systems = 4 answers" in captions(test)
    # Drawn again, it is not read again.
    assert asked.count(HubAddress("own/people", None, "test")) == 1


def test_strangers_have_no_set_of_the_hub_downloaded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        evaluation_data, "workbench_exposure", lambda: Exposure("0.0.0.0", any_address=False)
    )
    test = evaluate(**{"evaluate.source": "hub"}).run()
    assert "downloads no data sets for them" in seen(test)
    assert not [one for one in test.button if one.key == "evaluate.hub.read"]


def test_texts_are_checked_only_by_methods_that_judge(engine: Engine):
    test = with_file("texts.jsonl", CLAIMS)
    for name in ("direct", "rag"):
        assert test.checkbox(key=f"evaluate.method.texts.{name}").disabled
    assert "It writes an answer and gives no verdict, so it cannot check a text." in captions(test)
    assert test.checkbox(key="evaluate.method.texts.slm").value
    press(test, "run")
    spec = stored_spec(engine, test.query_params["evaluation"])
    assert (spec.checks, [one.name for one in spec.systems]) == ("texts", ["slm"])
    ended(test)
    assert "1 of 1 answers" in seen(test)


def test_a_half_and_a_number_of_items_are_taken(engine: Engine):
    test = with_file("capitals.csv", CAPITALS, **{"evaluate.half": "odd"})
    assert "2 items × 2 systems = 4 answers" in captions(test)
    assert "Japan" in seen(test)
    token = next(one.key or "" for one in test.number_input if "limit" in (one.key or ""))
    test.number_input(key=token).set_value(1).run()
    assert "1 items × 2 systems = 2 answers" in captions(test)


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
    work = evaluating.work_on(evaluation, ME)
    assert work is not None
    assert "Running" in seen(test)
    other = evaluate()
    other.query_params["evaluation"] = evaluation
    other.run()
    assert "Running" in seen(other)
    assert "evaluate.run" not in [button.key for button in other.button]
    again = evaluating.start(evaluation, owner=ME, keys={}, at_once=1)
    assert again is work
    press(other, "stop")
    assert not work.going_on
    assert "It was stopped. Continue at any time" in seen(other)
    assert "Paused" in seen(other)
    model.gate.set()
    ended(press(other, "run"))
    assert "10 of 10 answers" in seen(other)


def test_what_a_dead_process_left_is_paused_and_goes_on(engine: Engine):
    test = ended(press(with_file("capitals.csv", CAPITALS), "try"))
    evaluation = test.query_params["evaluation"]
    evaluating.stop_evaluations()
    assert evaluating.work_on(evaluation, ME) is None
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
    evaluating.stop_evaluations()
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


def test_metrics_that_do_not_apply_are_crossed_out_with_the_reason(engine: Engine):
    test = with_file("capitals.csv", CAPITALS, **{"evaluate.metrics": True})
    told = seen(test)
    assert "The data set has no answers that are known to be wrong." in told
    assert "No chosen method gives a verdict." in told


def test_items_that_ask_the_same_are_counted(engine: Engine):
    twice = CAPITALS + CAPITALS.splitlines(keepends=True)[1]
    test = with_file("capitals.csv", twice)
    said = "1 item asks the same as another one. Both share one answer, which is paid for once."
    assert said in captions(test)


def test_items_without_passages_are_left_out_where_these_are_the_evidence(engine: Engine):
    test = with_file("some.csv", b"question,answer,context\nWho?,Ada,Ada.\nWhere?,Delft,\n")
    assert "1 item has no passages and is left out." in captions(test)
    assert "1 items × 2 systems = 2 answers" in captions(test)
    chosen = with_file(
        "some.csv",
        b"question,answer,context\nWho?,Ada,Ada.\nWhere?,Delft,\n",
        **{"evaluate.evidence.items": "chosen"},
    )
    assert "2 items × 2 systems = 4 answers" in captions(chosen)


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
    assert "capitals: direct, rag" in seen(test)
    test.button(key=f"open-{evaluation}").click().run()
    assert test.query_params["evaluation"] == evaluation
    stranger = evaluate(_owner="b" * 48)
    stranger.query_params["evaluation"] = evaluation
    stranger.run()
    assert "Not found" in seen(stranger)
    assert "capitals" not in seen(stranger)
    work = evaluating.work_on(evaluation, ME)
    test.button(key=f"sure-{evaluation}").click().run()
    assert not test.exception
    assert work is not None
    assert not work.going_on
    assert engine.service.store.evaluations.list(ME) == []
    assert "No evaluations yet." in seen(test)


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
    assert "this: direct − other: direct" in told
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
    assert "this: direct − other: direct" in seen(part)
    assert "Items 1 to 2 of 2" in seen(part)


def test_the_run_behind_an_answer_is_opened(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr("app.live.open_run", opened.append)
    monkeypatch.setattr("app.screens.evaluation_compare.go_to", opened.append)
    open_run({"action": "open_run", "value": "abc"})
    assert opened == ["abc", "ask"]
