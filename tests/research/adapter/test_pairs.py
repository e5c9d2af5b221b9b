"""The pairs that the adapter is trained on."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pipelines.evaluation.datasets.published import Article
from pipelines.methods.base import Question
from pipelines.methods.ever.concepts import concepts_in, read_concepts
from pipelines.methods.replies.paraphrases import paraphrases_in
from research.adapter.pairs import (
    ABSENT,
    PARAPHRASES,
    TASKS,
    PromptReply,
    pairs,
    paraphrase_prompt,
)
from research.samples.files import read_articles

CITIES = ("Arlen", "Brandtburg", "Carrville", "Dunmore", "Eastwick", "Fairholt")
PEOPLE = ("Ada Brandt", "Emil Carr", "Nora Dunn", "Otto Eberle", "Paul Fischer", "Rita Graf")


def article(number: int) -> dict[str, object]:
    """An article of the tests about a city, with questions whose answers are in its text."""
    city, person, year = CITIES[number], PEOPLE[number], 1810 + 7 * number
    text = (
        f"{city} was founded by {person} in {year}. The bridge of {city} was built in {year + 9}. "
        f"{person} was born in London in {year - 40}."
    )
    asked = {
        f"Who founded {city}?": person,
        f"When was {city} founded?": str(year),
        f"When was the bridge of {city} built?": str(year + 9),
        f"Where was {person} born?": "London",
        f"In what year was {person} born?": str(year - 40),
        f"Who was the founder of {city}?": person,
    }
    qas = [{"question": q, "answers": [{"text": a}]} for q, a in asked.items()]
    return {"title": city, "paragraphs": [{"context": text, "qas": qas}]}


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> list[Article]:
    path = tmp_path_factory.mktemp("squad") / "cities.json"
    data = [article(number) for number in range(len(CITIES))]
    path.write_text(json.dumps({"data": data}), encoding="utf-8")
    return read_articles(path)


@pytest.fixture(scope="module")
def made(articles: list[Article]) -> list[PromptReply]:
    return pairs(articles, most=8)


def test_every_task_is_trained_and_none_more_often_than_asked(made: list[PromptReply]) -> None:
    counts = Counter(pair.task for pair in made)
    assert set(counts) == set(TASKS)
    assert counts["paraphrase"] == 12
    assert max(count for task, count in counts.items() if task != "paraphrase") <= 8


def test_the_same_seed_makes_the_same_pairs(
    articles: list[Article], made: list[PromptReply]
) -> None:
    assert pairs(articles, most=8) == made
    assert pairs(articles, most=8, seed=8) != made


def test_a_prompt_is_the_app_s_without_its_demonstrations(made: list[PromptReply]) -> None:
    for pair in made:
        assert pair.messages[-1].role == "user"
        assert not any(message.role == "assistant" for message in pair.messages)
    with_shots = paraphrase_prompt("Who founded Arlen?", shots=True)
    assert with_shots[-1] == paraphrase_prompt("Who founded Arlen?")[-1]
    assert len(with_shots) > 1


def test_what_is_learned_can_be_used_by_the_methods(made: list[PromptReply]) -> None:
    for pair in made:
        if pair.task == "paraphrase":
            asked = pair.messages[-1].content.rpartition("Question: ")[2]
            taken, discarded = paraphrases_in(pair.reply, Question(text=asked, language="en"))
            assert (len(taken), discarded) == (PARAPHRASES, [])
        if pair.task == "absent":
            assert pair.reply == ABSENT
        if pair.task == "verify":
            assert pair.reply in ("YES", "NO")
        if pair.task == "extract":
            sentence = pair.messages[-1].content.rpartition("Sentence: ")[2]
            listed = read_concepts(pair.reply)
            assert listed
            assert all(concept in sentence for concept in listed)
            assert concepts_in(sentence, listed, 12).spans


def test_questions_that_report_are_not_trained_on(articles: list[Article]) -> None:
    every = [one.question for a in articles for p in a.paragraphs for one in p.qas]
    kept = set(every[1::2])
    for pair in pairs(articles, most=40):
        # A paraphrase is of a question in the text or of a shape with names in it.
        if pair.task != "paraphrase":
            assert not any(question in pair.messages[-1].content for question in kept)


def test_a_sentence_stands_with_its_title(made: list[PromptReply]) -> None:
    (pair, *_) = [pair for pair in made if pair.task == "answer"]
    assert any(pair.messages[-1].content.startswith(f"{city}: ") for city in CITIES)
