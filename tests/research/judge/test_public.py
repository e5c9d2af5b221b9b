"""Public files in small: what becomes of their records, and which half they are in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.published import Stance
from pipelines.evaluation.datasets.records import read_records
from research.judge.labelled import (
    answer_as_statement,
    article_pairs,
    article_texts,
    biography_pairs,
    facts_pairs,
    facts_texts,
    other_answer_pairs,
    qa_pairs,
    qa_texts,
    resampled_texts,
    same_pairs,
    stance_pairs,
    truthful_pairs,
)
from research.judge.made import Names
from research.samples.files import read_biographies, read_qa
from research.samples.pairs import TrainingPair


def lines(path: Path, *records: Mapping[str, object]) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in records) + "\n", encoding="utf-8")
    return path


def question(number: int) -> dict[str, object]:
    return {
        "knowledge": f"Town {number} lies in Norway.It has a church.",
        "question": f"Where is town {number}?",
        "right_answer": "Norway",
        "hallucinated_answer": f"Town {number} lies in Sweden.",
    }


def test_halves_are_the_even_and_the_odd_records(tmp_path: Path):
    path = lines(tmp_path / "qa.jsonl", *map(question, range(5)))
    read = [[one.question[14] for one in read_qa(path)[half::2]] for half in (0, 1)]
    assert read == [["0", "2", "4"], ["1", "3"]]


def test_answers_are_paired_with_the_text_that_decides_them(tmp_path: Path):
    records = read_qa(lines(tmp_path / "qa.jsonl", *map(question, range(6))))[0::2]
    texts = list(qa_texts(records))
    # Sentences of different sources are parted.
    assert texts[0].sentences == ("Town 0 lies in Norway.",)
    names = Names()
    names.learn(texts)
    found = list(qa_pairs(records, names, Random(4)))
    assert {(one.make, one.label) for one in found} >= {
        ("qa", "supported"),
        ("qa", "contradicted"),
        ("qa-foreign", "not_enough"),
    }
    right = next(one for one in found if one.make == "qa" and one.label == "supported")
    assert (right.statement, right.question) == ("Norway", "Where is town 0?")
    foreign = next(one for one in found if one.make == "qa-foreign")
    assert foreign.evidence != next(o.evidence for o in found if o.group == foreign.group)


def test_an_inaccurate_sentence_is_unsupported(tmp_path: Path):
    record = {
        "concept": "ann lee",
        "gpt3_text": "She sang. She won  a prize.",
        "gpt3_sentences": ["She sang.", "She won  a prize."],
        "annotation": ["accurate", "minor_inaccurate"],
        "wiki_bio_text": "Ann Lee sang.",
    }
    found = list(biography_pairs(read_biographies(lines(tmp_path / "bio.jsonl", record), 0)))
    assert [(one.statement, one.label) for one in found] == [
        ("She sang.", "supported"),
        ("She won a prize.", "unsupported"),
    ]


def test_partial_support_is_support(tmp_path: Path):
    said = ("completely-support", "partially-support", "refute", "irrelevant")
    records = [{"claim": "It is.", "evidence": "Maybe.", "stance": stance} for stance in said]
    path = lines(tmp_path / "stances.jsonl", *(one for one in records for _ in range(2)))
    found = [one.label for one in stance_pairs(path, 1)]
    assert found == ["supported", "supported", "contradicted", "not_enough"]


def test_questions_on_articles(tmp_path: Path):
    context = (
        "Oslo is a city in Norway. It has about 700,000 people. Paris is a city in France. "
        "Rome is a city in Italy."
    )
    asked = [
        {"question": f"Where is Oslo, {n}?", "answers": [{"text": "Norway"}]} for n in range(4)
    ]
    paragraph = {"context": context, "qas": asked}
    articles = [{"title": "Oslo_City", "paragraphs": [paragraph]}] * 2
    path = tmp_path / "articles.json"
    path.write_text(json.dumps({"data": articles}), encoding="utf-8")
    texts = list(article_texts(path))
    assert texts[0].title == "Oslo City"
    names = Names()
    names.learn(texts)
    found = list(article_pairs(path, 0, names, Random(0)))
    assert len({one.question for one in found}) == 2
    by_label = {one.label: one for one in found}
    assert by_label["supported"].statement == "Norway"
    assert "Norway" in by_label["supported"].evidence
    assert by_label["contradicted"].statement in ("France", "Italy", "Oslo", "Paris", "Rome")
    assert "Norway" not in by_label["not_enough"].evidence


def test_the_same_answer_in_other_words_and_another_one():
    names = Names()
    asked = [("Where is Oslo?", "Norway", "Oslo is in Norway. Paris is in France.")] * 12
    found = list(same_pairs(asked, names, Random(0)))
    assert {one.label for one in found} == {"supported", "contradicted"}
    for one in found:
        both = "Norway" in one.evidence and "Norway" in one.statement
        assert both == (one.label == "supported")
        assert (one.question, one.relation) == ("Where is Oslo?", "same")


def test_best_answers_against_other_right_and_wrong_ones(tmp_path: Path):
    record = {
        "Question": "Is it?",
        "Best Answer": "Yes",
        "Correct Answers": "Yes; It is",
        "Incorrect Answers": "No; Never; Not at all",
    }
    found = list(truthful_pairs(lines(tmp_path / "t.jsonl", record), 0, Random(0)))
    assert [one.label for one in found] == ["supported", "contradicted", "contradicted"]
    assert found[0].statement == "It is"
    assert {one.evidence for one in found} == {"Yes"}


def test_facts_are_whole_sentences(tmp_path: Path):
    told = ["Oslo is a large city", "It lies on a fjord."]
    record = {"question": "?", "answer": True, "facts": told}
    (text,) = facts_texts(lines(tmp_path / "facts.jsonl", record), 0)
    assert text.sentences == ("Oslo is a large city.", "It lies on a fjord.")


def test_a_question_is_answered_by_its_facts(tmp_path: Path):
    records = [
        {"question": f"Is {n} even?", "answer": n % 4 == 0, "facts": [f"So much for {n}."]}
        for n in range(12)
    ]
    path = lines(tmp_path / "facts.jsonl", *records)
    found = list(facts_pairs(path, 0, Random(2)))
    assert {one.statement for one in found} == {f"Is {n} even?" for n in range(0, 12, 2)}
    own = [one for one in found if one.label != "not_enough"]
    assert {(one.evidence, one.label) for one in own} >= {
        ("So much for 4.", "supported"),
        ("So much for 6.", "contradicted"),
    }
    assert all(one.statement[3:-6] not in one.evidence for one in found if one not in own)


def test_texts_in_the_style_to_be_judged(tmp_path: Path):
    record = {
        "concept": "ann lee -lrb- singer -rrb-",
        "gpt3_text": "",
        "gpt3_sentences": [],
        "annotation": [],
        "wiki_bio_text": "Ann Lee was a singer.",
        "gpt3_text_samples": ["Ann Lee was a famous singer.", "Ann Lee came from old Leeds."],
    }
    read = read_biographies(lines(tmp_path / "bio.jsonl", record), 0)
    found = list(resampled_texts(read, Random(0), 5))
    assert {text.sentences[0] for text in found} == set(record["gpt3_text_samples"])
    # They are about the same person as the article: never parted from it.
    assert {(text.title, text.group) for text in found} == {
        ("Ann Lee", "wikibio-ann lee -lrb- singer -rrb-")
    }


def test_answers_to_other_questions_of_the_paragraph(tmp_path: Path):
    asked = [
        {"question": f"Wo {n}?", "answers": [{"text": text}]}
        for n, text in enumerate(("挪威", "挪威北部", "五月", "六月"))
    ]
    path = tmp_path / "articles.json"
    paragraph = {"context": "挪威北部五月下雪，六月不下。", "qas": asked}
    short = {"context": "雪。", "qas": asked[:1]}
    path.write_text(
        json.dumps({"data": [{"title": "X", "paragraphs": [one]} for one in (paragraph, short)]})
    )
    found = list(other_answer_pairs(path, 0))
    # An answer that holds the right one is not wrong: the next one is taken.
    assert [(one.question, one.statement, one.label) for one in found] == [
        ("Wo 0?", "挪威", "supported"),
        ("Wo 0?", "五月", "contradicted"),
        ("Wo 2?", "五月", "supported"),
        ("Wo 2?", "挪威", "contradicted"),
    ]


def test_a_file_of_something_else_is_named(tmp_path: Path):
    path = lines(tmp_path / "other.jsonl", {"a": 1})
    with pytest.raises(InvalidInputError, match="line 1 does not have the expected form"):
        read_records(path, Stance)


def answer(said: str, question: str = "Who wrote the play?", **more) -> TrainingPair:
    return TrainingPair(
        evidence="Ann Lee wrote it.",
        statement=said,
        label="contradicted",
        make="qa-span",
        group="g",
        question=question,
        **more,
    )


def test_only_the_answer_is_wrong():
    found = answer_as_statement(answer("Bob").wholly_wrong)
    assert found is not None
    assert (found.statement, found.question) == ("Bob wrote the play.", "")
    assert (found.label, found.make, found.group) == ("contradicted", "told", "g")
    assert found.wrong == ((0, 3),)


def test_where_the_wrong_words_are_unknown_they_stay_so():
    unknown = answer_as_statement(answer("Bob"))
    right = answer_as_statement(answer("Bob").wholly_right)
    assert unknown is not None
    assert right is not None
    assert (unknown.wrong, right.wrong) == (None, ())


def test_long_answers_and_odd_questions_are_left_out():
    long = "He who was called the first of all the poets of the town"
    for pair in (answer(long), answer("Bob", "Why?"), answer("Bob", "")):
        assert answer_as_statement(pair) is None
