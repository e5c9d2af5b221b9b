"""Pairs in fours: what is supported by one evidence is contradicted by the other."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from research.judge.made import ContrastMaker, Names, _said_of, contrasts_of
from research.samples.pairs import TrainingPair
from tests.research.judge.examples import OTHER, TEXT


@pytest.fixture(scope="module")
def names() -> Names:
    known = Names()
    known.learn([TEXT, OTHER])
    return known


@pytest.fixture(scope="module")
def pairs(names: Names) -> list[TrainingPair]:
    return [
        pair
        for seed in range(30)
        for pair in contrasts_of(TEXT, [TEXT, OTHER], names, Random(seed))
    ]


def test_every_family_is_there(pairs: list[TrainingPair]):
    families = {pair.make.split("-")[0] for pair in pairs}
    assert families == {"far", "less exact", "two sentences"}
    assert {pair.label for pair in pairs} == {"supported", "contradicted", "not_enough"}


def test_a_statement_has_both_labels_and_so_has_the_evidence(pairs: list[TrainingPair]):
    chosen = [p for p in pairs if p.make.startswith("far-") or p.make == "less exact"]
    for at in range(0, len(chosen), 4):
        four = chosen[at : at + 4]
        assert [one.label for one in four] == ["supported", "contradicted"] * 2
        for side in ("statement", "evidence"):
            labels: dict[str, set[str]] = defaultdict(set)
            for one in four:
                labels[getattr(one, side)].add(one.label)
            assert list(labels.values()) == [{"supported", "contradicted"}] * 2


def test_the_words_that_are_wrong_are_known(pairs: list[TrainingPair]):
    for pair in pairs:
        if pair.label == "supported":
            assert pair.wrong == ()
        elif pair.label == "contradicted":
            assert pair.wrong
            said = [pair.statement[start:end] for start, end in pair.wrong]
            assert all(said)


def test_a_statement_over_two_sentences_needs_both(pairs: list[TrainingPair]):
    two = [pair for pair in pairs if pair.make == "two sentences"]
    whole = [pair for pair in two if pair.label == "supported"]
    assert all(pair.statement.startswith("Ada Lovelace, who ") for pair in two)
    assert any(
        "was born in London" in p.statement and "wrote 3 notes" in p.statement for p in whole
    )
    for pair in two:
        if pair.label == "not_enough":
            assert pair.wrong is not None
            ((start, end),) = pair.wrong
            assert pair.statement[start:end] not in pair.evidence


def test_the_same_seed_makes_the_same_pairs(names: Names):
    first, second = (list(contrasts_of(TEXT, [TEXT, OTHER], names, Random(3))) for _ in range(2))
    assert first == second


def test_a_sentence_without_anything_to_change_makes_none(names: Names):
    maker = ContrastMaker(TEXT, [TEXT, OTHER], names, Random(0), 2, TEXT.sentences[2])
    assert list(maker.less_exact()) == []


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Ada Lovelace was born in London.", "was born in London"),
        ("She wrote notes.", "wrote notes"),
        ("Babbage met her.", None),
        ("She wrote notes, and she died.", None),
        ("She often wrote.", None),
    ],
)
def test_what_is_said_of_the_subject(sentence: str, said: str | None):
    assert _said_of(sentence, "Ada Lovelace") == said
    assert _said_of(sentence, "") is None
