"""Files of questions in their original forms, in small: what becomes of their records."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.error_words import phrase_in
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import open_data_set
from tests.pipelines.evaluation.datasets.small_files import document, items, lines

TRUTHFUL = {
    "Type": "Adversarial",
    "Category": "Myths",
    "Question": "Do bulls hate red?",
    "Best Answer": "No, they see no red",
    "Correct Answers": "No, they see no red; Bulls react to movement; no, they see no red",
    "Incorrect Answers": "Yes, it angers them; Yes",
    "Source": "https://example.org",
}


def test_truthfulqa_as_a_table_and_as_lines(tmp_path: Path):
    table = tmp_path / "TruthfulQA.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, TRUTHFUL)
        writer.writeheader()
        writer.writerow(TRUTHFUL)
    (item,) = items(table)
    assert item.question == "Do bulls hate red?"
    # The best answer comes first, and is not repeated.
    assert item.answers == ("No, they see no red", "Bulls react to movement")
    assert item.wrong_answers == ("Yes, it angers them", "Yes")
    assert item.tags == ("Adversarial", "Myths")
    assert items(lines(tmp_path / "truthful.jsonl", TRUTHFUL)) == (item,)


def test_truthfulqa_in_the_form_of_the_hub(tmp_path: Path):
    row = {
        "type": "Adversarial",
        "category": "Myths",
        "question": "Do bulls hate red?",
        "best_answer": "No",
        "correct_answers": ["No", "Bulls react to movement"],
        "incorrect_answers": ["Yes"],
        "source": "",
    }
    (item,) = items(lines(tmp_path / "rows.jsonl", row))
    assert item.answers == ("No", "Bulls react to movement")
    assert (item.wrong_answers, item.tags) == (("Yes",), ("Adversarial", "Myths"))


def test_strategyqa_answers_yes_or_no_with_facts_as_passages(tmp_path: Path):
    rows = [
        {"qid": "a1", "question": "Is Oslo in Norway?", "answer": True, "facts": ["Oslo is."]},
        {"qid": "a2", "question": "Is Rome?", "answer": False, "facts": []},
    ]
    yes, no = items(document(tmp_path / "strategyqa.json", rows))
    assert (yes.id, yes.answers, yes.passages[0].text) == ("a1", ("yes",), "Oslo is.")
    assert (no.id, no.answers, no.passages) == ("a2", ("no",), ())


def test_nq_open_and_triviaqa_as_lines(tmp_path: Path):
    natural = lines(tmp_path / "nq.jsonl", {"question": "who?", "answer": ["Ann", "ann", "Bo"]})
    trivia = lines(tmp_path / "trivia.jsonl", {"question": "who?", "answers": ["Ann", "Bo"]})
    assert open_data_set(natural).source.startswith("Kwiatkowski")
    assert open_data_set(trivia).source.startswith("Joshi")
    assert items(natural)[0].answers == items(trivia)[0].answers == ("Ann", "Bo")


def test_triviaqa_as_published(tmp_path: Path):
    answer = {
        "Value": "Sunset Boulevard",
        "Aliases": ["Sunset Bvd", "Sunset Boulevard"],
        "NormalizedAliases": ["sunset bvd", "sunset blvd"],
        "NormalizedValue": "sunset boulevard",
        "Type": "WikipediaEntity",
    }
    found = {"Title": "Films", "Description": "It is a film.", "Filename": "a.txt", "Rank": 0}
    row = {"Question": "Which?", "QuestionId": "tc_1", "Answer": answer, "SearchResults": [found],
           "EntityPages": [{"Title": "Sunset Boulevard", "Filename": "b.txt"}]}  # fmt: skip
    published = {"Data": [row], "Domain": "unfiltered-web", "Version": 1.0}
    (item,) = items(document(tmp_path / "unfiltered-web-dev.json", published))
    assert item.id == "tc_1"
    assert item.answers == ("Sunset Boulevard", "Sunset Bvd", "sunset blvd")
    # The page of the entity is a file of its own.
    assert [(one.title, one.text) for one in item.passages] == [("Films", "It is a film.")]


def trivia(name: str, *, entities: Sequence[str] = (), results: Sequence[str] = ()) -> dict:
    return {
        "Question": f"Which {name}?",
        "QuestionId": name,
        "Answer": {"Value": "Ada", "Aliases": ["Ada"], "NormalizedAliases": ["ada"]},
        "EntityPages": [{"Title": one, "Filename": f"{one}.txt"} for one in entities],
        "SearchResults": [
            {"Title": one, "Description": "shown", "Filename": f"1/{one}.txt"} for one in results
        ],
    }


def test_triviaqa_with_the_pages_that_lie_beside_its_questions(tmp_path: Path):
    pages = {"wikipedia/Ada": f"Ada was.{'x' * 4991}", "web/1/one": "y" * 4000, "web/1/two": "z"}
    for name, text in pages.items():
        file = tmp_path / "evidence" / f"{name}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "outside.txt").write_text("not evidence", "utf-8")
    (tmp_path / "qa").mkdir()
    whole = trivia("tc_1", entities=["Ada"], results=["one", "two"])
    bare = trivia("tc_2") | {"SearchResults": [{"Title": "Bo", "Description": "It shows Bo."}]}
    gone = trivia("tc_3", entities=["Cy"])
    outside = trivia("tc_4", entities=["../../outside"])
    path = tmp_path / "qa" / "wikipedia-dev.json"
    item, other = items(document(path, {"Data": [whole, bare]}))
    # 4,999 + 4,000 characters are more than the 8,000 of a run: the third page is not opened.
    assert [(one.title, len(one.text)) for one in item.passages] == [("Ada", 4999), ("one", 4000)]
    assert item.passages[0].text.startswith("Ada was.")
    assert [one.text for one in other.passages] == ["It shows Bo."]
    reading = open_data_set(path).reading
    assert reading is not None
    assert [phrase_in(one, "en") for one in reading.notes] == [
        "pages are read from the folder 'evidence' beside it"
    ]
    document(path, {"Data": [whole, gone, outside]})
    with pytest.raises(InvalidInputError) as caught:
        open_data_set(path)
    said = str(caught.value)
    assert "record 2: evidence/wikipedia/Cy.txt is missing" in said
    assert "record 3: evidence/wikipedia/../../outside.txt is missing" in said
    assert [one.id for one in items(path, leave_out=True)] == ["tc_1"]
    with pytest.raises(InvalidInputError, match=r"Cy\.txt is missing.*without it"):
        items(document(path, {"Data": [gone]}), leave_out=True)


def test_triviaqa_of_the_hub_with_its_pages(tmp_path: Path):
    row = {
        "question": "Which?",
        "question_id": "tc_1",
        "answer": {"value": "Ada", "aliases": ["Ada"], "normalized_aliases": ["ada"]},
        "entity_pages": {"title": ["Ada"], "wiki_context": [f"Ada was. {'x' * 9000}"]},
        "search_results": {
            "title": ["One", "Two"],
            "description": ["short", "short"],
            "search_context": ["The page.", ""],
        },
    }
    (item,) = items(document(tmp_path / "trivia.json", [row]))
    ada, one = item.passages
    assert (ada.title, ada.text[:8], len(ada.text)) == ("Ada", "Ada was.", 8000)
    assert (one.title, one.text) == ("One", "The page.")
    bare = {**row, "entity_pages": {}, "search_results": None}
    (item,) = items(document(tmp_path / "bare.json", [bare]))
    assert (item.answers, item.passages) == (("Ada",), ())


HOTPOT = {
    "_id": "5a8b",
    "question": "Were they of one nation?",
    "answer": "yes",
    "context": [["Ed Wood", ["Ed was American.", " He made films."]], ["Other", ["No."]]],
    "supporting_facts": [["Ed Wood", 0]],
    "type": "comparison",
    "level": "hard",
}


def test_hotpotqa_with_its_paragraphs(tmp_path: Path):
    (item,) = items(document(tmp_path / "hotpot.json", [HOTPOT]))
    assert (item.id, item.answers, item.tags) == ("5a8b", ("yes",), ("comparison", "hard"))
    first, second = item.passages
    assert (first.title, first.text) == ("Ed Wood", "Ed was American. He made films.")
    assert (first.scores, second.scores) == ({"supporting": 1.0}, {})
    assert item.group == ""


def test_hotpotqa_in_the_form_of_the_hub(tmp_path: Path):
    row = {
        **HOTPOT,
        "context": {"title": ["Ed Wood"], "sentences": [["Ed was American.", "He made films."]]},
        "supporting_facts": {"title": ["Ed Wood"], "sent_id": [0]},
    }
    (item,) = items(document(tmp_path / "hotpot.json", [row]))
    assert item.passages[0].text == "Ed was American. He made films."
    assert item.passages[0].scores == {"supporting": 1.0}


def test_two_wiki_is_told_from_hotpotqa_by_its_evidences(tmp_path: Path):
    row = {**HOTPOT, "evidences": [["Ed Wood", "country", "America"]]}
    data_set = open_data_set(document(tmp_path / "dev.json", [row]))
    assert data_set.source.endswith("2WikiMultihopQA")
    assert data_set.items[0].passages[0].source == "2WikiMultihopQA"


def test_qampari_has_a_list_of_entities_with_aliases(tmp_path: Path):
    row = {
        "qid": "12__wikidata_simple__dev",
        "question_text": "Which films did she make?",
        "answer_list": [
            {"answer_text": "One", "aliases": ["One", "The One"], "proof": []},
            {"answer_text": "Two", "aliases": []},
        ],
    }
    (item,) = items(lines(tmp_path / "dev_data.jsonl", row))
    assert item.lists == (("One", "The One"), ("Two",))
    assert (item.answers, item.tags) == ((), ("wikidata_simple",))
    assert item.offers == {"questions", "lists"}


def test_qampari_in_the_form_of_alce(tmp_path: Path):
    docs = [{"id": "7", "title": "Films", "text": "One is a film.", "score": 0.8}]
    row = {"id": "12", "question": "Which?", "answers": [["One", "The One"], ["Two"]], "docs": docs}
    data_set = open_data_set(document(tmp_path / "qampari_eval.json", [row]))
    assert data_set.items[0].lists == (("One", "The One"), ("Two",))
    (passage,) = data_set.items[0].passages
    assert (passage.title, passage.text, passage.source) == ("Films", "One is a film.", "ALCE")
    assert data_set.source.endswith("QAMPARI")


def test_halluqa_gathers_numbered_columns(tmp_path: Path):
    row = {
        "question_id": 7,
        "Category": "Misleading",
        "Question": "月亮会发光吗？",
        "Best Answer1": "不会。",
        "Best Answer2": "月亮反射太阳光。",
        "Best Answer3": "",
        "Wrong_Answer1": "会。",
        "Wrong_Answer2": None,
    }
    (item,) = items(document(tmp_path / "HalluQA.json", [row]))
    assert (item.id, item.language) == ("7", "zh")
    assert item.answers == ("不会。", "月亮反射太阳光。")
    assert (item.wrong_answers, item.tags) == (("会。",), ("Misleading",))


def squad(*titles: str) -> dict[str, Any]:
    return {
        "version": "1.1",
        "data": [
            {
                "title": title,
                "paragraphs": [
                    {
                        "context": f"{title} lies in Norway.",
                        "qas": [
                            {
                                "id": f"{title}-{number}",
                                "question": f"Where is {title}, asked {number}?",
                                "answers": [{"text": "Norway", "answer_start": 8}],
                            }
                            for number in range(2)
                        ],
                    }
                ],
            }
            for title in titles
        ],
    }


def test_xquad_groups_questions_by_article(tmp_path: Path):
    found = items(document(tmp_path / "xquad.en.json", squad("Oslo", "Bergen")))
    assert [item.id for item in found] == ["Oslo-0", "Oslo-1", "Bergen-0", "Bergen-1"]
    assert [item.group for item in found] == ["Oslo", "Oslo", "Bergen", "Bergen"]
    assert found[0].passages[0].text == "Oslo lies in Norway."


def test_questions_without_an_answer_are_left_out(tmp_path: Path):
    value = squad("Oslo")
    value["data"][0]["paragraphs"][0]["qas"][0]["answers"] = []
    assert [item.id for item in items(document(tmp_path / "squad2.json", value))] == ["Oslo-1"]


def test_squad_as_rows_of_the_hub(tmp_path: Path):
    row = {
        "id": "x",
        "title": "Oslo",
        "context": "Oslo lies in Norway.",
        "question": "Where?",
        "answers": {"text": ["Norway"], "answer_start": [13]},
    }
    (item,) = items(lines(tmp_path / "rows.jsonl", row))
    assert (item.id, item.group, item.answers) == ("x", "Oslo", ("Norway",))


@pytest.mark.parametrize("missing", ["Question", "Correct Answers"])
def test_a_wrong_record_is_named_with_its_line(tmp_path: Path, missing: str):
    wrong = {name: cell for name, cell in TRUTHFUL.items() if name != missing}
    path = lines(tmp_path / "truthful.jsonl", TRUTHFUL, wrong)
    wanted = rf"truthful\.jsonl .*line 2 does not have the expected form \({missing}"
    with pytest.raises(Exception, match=wanted):
        open_data_set(path)
