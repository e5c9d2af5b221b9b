"""Data sets on the Evaluate page: files, their columns, the hub, and what is left out."""

from __future__ import annotations

import io
import json

import pandas
import pytest

from app import jobs
from app.exposure import Exposure
from app.screens.evaluate import data as evaluation_data
from app.screens.evaluate.data import read_upload
from pipelines.engine.service import Engine
from pipelines.errors import InvalidInputError, OfflineError
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.opening import HubAddress
from tests.app.evaluate_page import (
    CAPITALS,
    captions,
    ended,
    evaluate,
    press,
    stored_items,
    stored_spec,
    upload,
    with_file,
)
from tests.app.evaluate_page import engine as engine
from tests.app.evaluate_page import model as model
from tests.app.playing import seen

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
        ("broken.jsonl", b'{"question": \n', "line 1"),
        ("broken.json", b'[{"question": ', "it is not JSON"),
        ("open.csv", b'question,answer\n"Who?,Ada\n', "is not CSV"),
        ("more.csv", b"question,answer\nWho,Ada,Bo\n", "row 1 has 3 cells"),
        ("is-no.parquet", CAPITALS, "it is not Parquet"),
        ("is-parquet.csv", b"PAR1\xff\xfe\x00\x80\x81", "it is a Parquet file"),
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


def test_what_labels_mean_is_filled_in(engine: Engine):
    rows = [{"question": "Where?", "answer": "In Bath.", "hallucination_type": kind}
            for kind in ("none", "place", "name")]  # fmt: skip
    test = with_file("kinds.json", json.dumps(rows).encode())
    assert test.selectbox(key="evaluate.map.1.hallucinated").value == "hallucination_type"
    assert test.text_input(key="evaluate.map.1.yes").value == "name, place"
    assert not test.error
    denied = [
        {"question": "Where?", "answer": "In Bath.", "unsupported_by_all": one} for one in (0, 1)
    ]
    test = with_file("denied.json", json.dumps(denied).encode())
    assert test.selectbox(key="evaluate.map.1.label_is").value == "hallucinated"
    assert not test.error


def test_a_conversation_is_read_answer_by_answer(engine: Engine):
    said = [{"speaker": "USER", "utterance": "Where?"}, {"speaker": "SYSTEM", "utterance": "Bath."}]
    table = read_upload("said.json", json.dumps({"samples": [{"turns": said}]}).encode())
    assert [(row["question"], row["text"]) for row in table.rows] == [("Where?", "Bath.")]


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

    def read(address: HubAddress) -> DataTable:
        asked.append(address)
        if address.name == "no/such":
            raise OfflineError("The hub cannot be reached.", remedy="Connect this machine.")
        rows = [{"prompt": "Who?", "gold": "Ada"}, {"prompt": "When?", "gold": "1843"}]
        return DataTable(f"{address.name}@test", rows, [1, 2], "row")

    monkeypatch.setattr(jobs, "read_hub", read)
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
