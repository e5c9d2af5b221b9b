"""Pairs and changes made by rule."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from random import Random

import pytest

from research.judge import made as module
from research.judge.made import Names, Swap, examples_of, swapped
from research.samples.pairs import Text, TrainingPair, library, text_of

TEXT = text_of(
    "ada",
    "Ada Lovelace",
    "Ada Lovelace was born in London in 1815. Charles Babbage met her in Paris. "
    "She wrote 3 notes about the engine of Babbage.",
)


@pytest.fixture(scope="module")
def names() -> Names:
    known = Names()
    known.learn([TEXT])
    return known


def test_a_name_becomes_another_of_its_kind(names: Names):
    found = {
        swap.text
        for seed in range(40)
        if (swap := module._entity("She was born in London.", TEXT, names, Random(seed)))
    }
    assert found == {"She was born in Paris."}


def test_two_names_of_a_kind_are_exchanged(names: Names):
    swap = module._two_names("He went from London to Paris.", names, Random(0))
    assert swap is not None
    assert swap.text == "He went from Paris to London."
    # This says the same the other way round.
    assert module._two_names("He saw London and Paris.", names, Random(0)) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_year_becomes_another_year(seed: int):
    swap = module._year("Born in 1815, in London.", Random(seed))
    assert swap is not None
    assert re.fullmatch(r"Born in 1[789]\d\d, in London\.", swap.text)
    assert swap.before == "1815"
    assert swap.after in swap.text
    assert "1815" not in swap.text


@pytest.mark.parametrize("sentence", ["It has 3 notes.", "About 6,650 kilometres.", "It is 2.5 m."])
@pytest.mark.parametrize("seed", range(10))
def test_a_number_becomes_another_of_its_form(sentence: str, seed: int):
    swap = module._number(sentence, Random(seed))
    assert swap is not None
    assert swap.text != sentence
    assert re.sub(r"[\d.,]+", "#", swap.text) == re.sub(r"[\d.,]+", "#", sentence)


def test_negation_comes_and_goes():
    assert module._negation("It was not red.", Random(0)) == Swap("negation", "It was red.")
    assert module._negation("It never was.", Random(0)) == Swap("negation", "It was.")
    found = {
        swap.text for seed in range(30) if (swap := module._negation("It is red.", Random(seed)))
    }
    assert found == {"It is not red.", "It is never red."}


def test_a_sentence_with_nothing_to_change(names: Names):
    assert swapped("So be it.", TEXT, names, Random(0)) is None


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    return [text_of(one.id, one.title, one.text) for one in library("en")][:12]


@pytest.fixture(scope="module")
def pairs(texts: list[Text]) -> list[TrainingPair]:
    return made(texts)


def made(texts: list[Text]) -> list[TrainingPair]:
    names = Names()
    names.learn(texts)
    random = Random(5)
    return [pair for text in texts for pair in examples_of(text, texts, names, random)]


def test_the_same_seed_makes_the_same_pairs(texts: list[Text], pairs: list[TrainingPair]):
    assert made(texts) == pairs


def test_every_label_and_family_is_there(pairs: list[TrainingPair]):
    labels = Counter(pair.label for pair in pairs)
    assert set(labels) == {"supported", "contradicted", "not_enough", "unsupported"}
    del labels["unsupported"]
    assert min(labels.values()) > len(pairs) / 6
    families = {pair.make.split("-")[0] for pair in pairs}
    assert families == {"evidence", "statement", "more", "merged", "claim", "another"}


def test_a_contradicted_statement_is_not_in_its_evidence(pairs: list[TrainingPair]):
    wrong = [
        pair for pair in pairs if pair.label == "contradicted" and pair.statement in pair.evidence
    ]
    assert not wrong


def test_one_statement_has_several_labels(pairs: list[TrainingPair]):
    labels: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        labels[pair.statement].add(pair.label)
    several = sum(len(found) > 1 for found in labels.values())
    assert several > len(labels) / 4


def test_pairs_belong_to_the_text_they_come_from(texts: list[Text], pairs: list[TrainingPair]):
    assert {pair.group for pair in pairs} == {text.name for text in texts}


def test_only_whole_sentences_are_made_use_of():
    text = text_of("x", "X", "A heading\n\nThis is a whole sentence here. Too short. and no more")
    assert text.sentences == ("This is a whole sentence here.",)


def test_what_contradicts_here_is_supported_elsewhere(pairs: list[TrainingPair]):
    changed = [pair for pair in pairs if pair.make.startswith("statement-")]
    sides = {
        label: {pair.statement for pair in changed if pair.label == label}
        for label in ("supported", "contradicted")
    }
    # Some are put as questions under one of the two labels.
    assert len(sides["supported"] & sides["contradicted"]) > 0.7 * len(sides["contradicted"])


def test_what_is_told_of_another_is_made_up_unless_the_evidence_says_it(
    texts: list[Text], pairs: list[TrainingPair]
):
    told = [pair for pair in pairs if pair.make == "another"]
    assert {pair.label for pair in told} == {"supported", "unsupported"}
    last = {text.name: text.title.split()[-1] for text in texts}
    assert all(last[pair.group] in pair.statement for pair in told)


def test_some_statements_are_asked_as_questions(pairs: list[TrainingPair]):
    asked = [pair for pair in pairs if pair.statement.endswith("?")]
    assert 0.02 < len(asked) / len(pairs) < 0.15


def test_some_evidence_is_longer_than_a_window(pairs: list[TrainingPair]):
    assert max(len(pair.evidence.split()) for pair in pairs) > 250


def test_of_most_wrong_statements_it_is_known_which_words_are_wrong(pairs: list[TrainingPair]):
    assert all(pair.wrong == () for pair in pairs if pair.label == "supported")
    wrong = [pair for pair in pairs if pair.label == "contradicted"]
    assert sum(bool(pair.wrong) for pair in wrong) > 0.95 * len(wrong)
    # Where the sentence is merely missing, nobody knows which of its words are.
    assert any(pair.wrong is None for pair in pairs if pair.label == "not_enough")
    for pair in pairs:
        for start, end in pair.wrong or ():
            assert 0 <= start < end <= len(pair.statement)


def test_what_was_changed_in_the_evidence_is_what_is_wrong():
    (text,) = (text_of("x", "Oslo", "Oslo is a city that was founded in 1050 by King Harald."),)
    other = text_of("y", "Rome", "Rome was founded by King Romulus in the year 753.")
    names = Names()
    names.learn([text, other])
    found = [p for p in examples_of(text, [text, other], names, Random(1)) if p.wrong]
    assert found
    for pair in found:
        for start, end in pair.wrong or ():
            assert pair.statement[start:end] not in pair.evidence
