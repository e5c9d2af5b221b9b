"""What the labelling component gets and what it sends, as data."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from components.annotate.labelling import (
    CONFIDENCE,
    KINDS,
    LabellingProgress,
    Last,
    Opinion,
    confidence_of,
    decision_data,
    label_data,
    label_look,
    label_words,
    stored_value,
)
from components.base.theme import labelling_code
from components.base.words import LANGUAGES, Catalogue
from pipelines.annotation.labelling import Adjudication, AssignedItem
from pipelines.annotation.types import (
    VERDICTS,
    AnswerLabel,
    ComparisonLabel,
    ConceptLabel,
    Evidence,
    Hidden,
    ItemBody,
    Label,
    LabelSpan,
    ModelVerdict,
    SpanLabel,
    label_adapter,
)
from pipelines.base import Language
from tests.pipelines.annotation.bench import TEXT, VALUES, item

EN = Catalogue("en")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def given(
    task: str = "span", *, swapped: bool = False, hidden: Hidden | None = None
) -> AssignedItem:
    return AssignedItem(item=3, body=item(task).body, expires=NOW, swapped=swapped, hidden=hidden)


def shown(found: AssignedItem, t: Catalogue = EN, **more: Any) -> dict[str, Any]:
    data = label_data(found, t, scope="s.0", progress=LabellingProgress(12, 40), **more)
    # It has to go through JSON.
    return json.loads(json.dumps(data))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", list(VALUES))
def test_every_task_has_its_words_in_both_languages(task: str, language: Language):
    label = label_adapter.validate_python(VALUES[task])
    t = Catalogue(language)
    last = Last(1, label, "a piece", can_reveal=True)
    data = shown(given(task), t, label=label, last=last)
    assert len(data["verdicts"]) == len(VERDICTS[label.task])
    assert [kind["value"] for kind in data["kinds"]] == list(KINDS)
    assert data["last"]["word"] == data["said"]["word"]
    assert all(one["sign"] and one["word"] for one in data["verdicts"])
    decided = decision_data(3, given(task).body, [Opinion("Ann", label, (), 0)], None, t)
    assert json.loads(json.dumps(decided))["people"][0]["word"]


def test_the_script_is_one_module():
    code = labelling_code()
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE)
    # A second declaration of a name would be an error of the whole.
    names = re.findall(r"^(?:const|let|class|function) (\w+)", code, re.MULTILINE)
    assert len(names) == len(set(names))


def test_an_item_is_placed_and_counted():
    data = shown(given("sentence"))
    assert (data["item"], data["task"], data["start"], data["end"]) == (3, "sentence", 0, 32)
    assert data["at"] == "12 of 40"
    assert data["share"] == 11 / 40
    assert data["label"] is None
    assert data["text"] == TEXT


@pytest.mark.parametrize("swapped", [False, True])
def test_compared_texts_are_named_by_their_places_alone(swapped: bool):
    found = given("comparison", swapped=swapped)
    first = "corrected" if swapped else "original"
    label = ComparisonLabel(verdict=first)
    data = shown(found, label=label, last=Last(1, label, "", swapped))
    said = json.dumps({name: value for name, value in data.items() if name != "words"})
    assert "original" not in said
    assert "corrected" not in said
    assert data["text"] == ""
    texts = [one["text"] for one in data["texts"]]
    assert texts == [found.body.text, found.body.other][:: -1 if swapped else 1]
    assert [one["name"] for one in data["texts"]] == ["Text A", "Text B"]
    assert data["label"] == {"verdict": "first"}
    assert data["last"]["word"] == "Text A is better"
    assert stored_value("comparison", {"verdict": "first"}, swapped=swapped) == {
        "task": "comparison",
        "verdict": first,
    }
    assert stored_value("comparison", {"verdict": "same"}, swapped=swapped)["verdict"] == "same"


def test_what_is_no_label_is_left_for_the_store_to_refuse():
    assert stored_value("answer", {"verdict": "perhaps"})["verdict"] == "perhaps"
    assert stored_value("span", None) == {"task": "span", "verdict": None}
    # An item's task is not for a browser to say, but it may not say another either.
    assert stored_value("span", {"task": "answer"})["task"] == "answer"


def test_hidden_characters_are_spelled_out_but_in_the_text_that_is_marked():
    body = ItemBody(
        task="span",
        question="Who\u202e?",
        text="Ada\u202e",
        evidence=(Evidence(title="t\u200f", text="x", url="javascript:alert(1)"),),
    )
    data = shown(AssignedItem(item=0, body=body, expires=NOW))
    assert data["question"] == "Who⟨U+202E⟩?"
    assert data["text"] == "Ada\u202e"
    assert data["evidence"] == [{"title": "t⟨U+200F⟩", "text": "x", "source": "", "url": ""}]


def test_detectors_are_shown_as_the_session_says():
    spans = (ModelVerdict(method="drad", verdict="doubtful", doubt=0.9, at=(4, 9)),)
    verdict = ModelVerdict(
        method="slm", verdict="doubtful", doubt=0.8, score="slm_score", value=0.25
    )
    hidden = Hidden(verdicts=(verdict,), spans=spans, judge=0.5)
    data = shown(given(hidden=hidden), offer=True)
    assert data["offered"] == [{"start": 4, "end": 9}]
    assert [one["name"] for one in data["revealed"]][-1] == "Judge"
    assert "0.25" in data["revealed"][0]["word"]
    assert data["revealed"][0]["css"] == "vs-verdict-doubtful"
    # Spans are offered before a label and not after it.
    assert shown(given(hidden=hidden), offer=True, label=SpanLabel())["offered"] == []
    assert shown(given(hidden=hidden))["offered"] == []
    alone = shown(given(hidden=Hidden(spans=spans)), offer=True)
    assert alone["revealed"] is None
    assert shown(given())["revealed"] is None


def test_words_are_offered_instead_of_the_sentence_that_holds_them_and_each_place_once():
    spans = (
        ModelVerdict(method="ever", verdict="contradicted", at=(0, 20), words=((4, 9), (12, 16))),
        ModelVerdict(method="haarag", verdict="contradicted", at=(0, 20), words=((4, 9),)),
        ModelVerdict(method="slm", verdict="doubtful", at=(0, 20)),
        ModelVerdict(method="rag", verdict="doubtful"),
    )
    places = [
        (one["start"], one["end"])
        for one in shown(given(hidden=Hidden(spans=spans)), offer=True)["offered"]
    ]
    assert places == [(4, 9), (12, 16), (0, 20)]
    # Older sessions know no words, and what has none is stored as it was.
    assert "words" not in spans[2].model_dump()
    assert ModelVerdict.model_validate(spans[0].model_dump(mode="json")) == spans[0]


def test_what_was_taken_back_can_be_restored():
    found = given("answer").model_copy(update={"redo": AnswerLabel(verdict="wrong")})
    data = shown(found, undo=2)
    assert data["can"] == {"undo": 2, "redo": True, "reveal": False}
    assert (data["redo"], data["undone"]) == ("Wrong", {"verdict": "wrong"})
    assert shown(given())["can"] == {"undo": None, "redo": False, "reveal": False}


def test_everybodys_labels_and_the_decision():
    spans = SpanLabel(spans=(LabelSpan(start=4, end=9, kind="entity"), LabelSpan(start=0, end=3)))
    people = [Opinion("Ann", spans, ("Why \u202e?",), 0), Opinion("Bo", SpanLabel(), (), 4)]
    decision = Adjudication(label=SpanLabel(), note="No.", confidence=0.5, gap=True)
    data = decision_data(3, given().body, people, decision, EN, draft=spans)
    assert [one["word"] for one in data["people"]] == ["2 spans", "No hallucination"]
    assert data["people"][0]["comments"] == ["Why ⟨U+202E⟩?"]
    assert [one["start"] for one in data["people"][0]["label"]["spans"]] == [0, 4]
    assert data["draft"]["spans"][1] == {"start": 4, "end": 9, "kind": "entity"}
    assert (data["note"], data["confidence"], data["gap"]) == ("No.", "unsure", True)
    assert data["at"] == "Item 4"


def test_an_adjudicator_knows_which_text_is_which():
    data = decision_data(0, given("comparison").body, [], None, EN)
    assert [one["value"] for one in data["verdicts"]] == ["original", "corrected", "same"]
    assert [one["name"] for one in data["texts"]] == ["Original", "Corrected text"]


def test_confidence_comes_back_as_it_was_said():
    assert {word: confidence_of(value) for word, value in CONFIDENCE.items()} == {
        "": "",
        "sure": "sure",
        "unsure": "unsure",
    }


@pytest.mark.parametrize(
    ("label", "words", "sign"),
    [
        (ConceptLabel(verdict="not_enough"), "Not enough information", "?"),
        (SpanLabel(), "No hallucination", "✓"),
        (SpanLabel(spans=(LabelSpan(start=0, end=1),)), "1 span", "✗"),
        (ComparisonLabel(verdict="same"), "Both are the same", "="),
        (ComparisonLabel(verdict="corrected"), "The corrected text is better", "↔"),
    ],
)
def test_a_label_in_words(label: Label, words: str, sign: str):
    assert label_words(label, EN) == words
    assert label_look(label)[0] == sign
