"""Sentences in words far from their own, which say the same."""

from __future__ import annotations

from random import Random

import pytest

from research.judge.rewriting import (
    cleft,
    far_from,
    fronted,
    nominalised,
    paraphrases,
    replaced,
    turned,
    voice_changed,
)


@pytest.mark.parametrize(
    ("active", "passive"),
    [
        ("Ada Lovelace wrote The Notes in 1843.", "The Notes was written by Ada Lovelace in 1843."),
        ("Marie Curie discovered Radium.", "Radium was discovered by Marie Curie."),
        ("The company bought Alaska.", "Alaska was bought by the company."),
    ],
)
def test_active_and_passive_turn_into_each_other(active: str, passive: str):
    assert voice_changed(active, Random(0)) == passive
    assert voice_changed(passive, Random(0)) in (active, active.replace("The Notes", "the Notes"))


def test_a_deed_or_its_doer_becomes_a_noun():
    found = {nominalised("Marie Curie discovered Radium in 1898.", Random(n)) for n in range(60)}
    assert found == {
        "The discovery of Radium by Marie Curie took place in 1898.",
        "Marie Curie was behind the discovery of Radium in 1898.",
        "The discovery of Radium was the work of Marie Curie in 1898.",
        "Marie Curie was the discoverer of Radium in 1898.",
        "The discoverer of Radium in 1898 was Marie Curie.",
        "Radium had Marie Curie as its discoverer in 1898.",
    }


def test_a_relation_is_told_from_its_other_side():
    found = {turned("Canberra is the capital of Australia.", Random(n)) for n in range(40)}
    assert found == {
        "Australia has Canberra as its capital.",
        "The capital of Australia is Canberra.",
        "Australia is governed from Canberra.",
    }
    assert turned("Smoking causes cancer.", Random(0)) is not None


def test_a_year_is_no_birthplace():
    assert turned("Ada was born in 1815.", Random(0)) is None
    assert turned("Ada, who was born in London, died in Paris.", Random(0)) is None


def test_other_sentences_are_left_by_these_rules():
    for rule in (voice_changed, nominalised, turned, cleft, fronted):
        assert rule("It rains.", Random(0)) is None


def test_time_and_doer_stand_elsewhere():
    assert fronted("The film was made by hand in 1946.", Random(0)) == (
        "In 1946, the film was made by hand."
    )
    assert cleft("Ada Lovelace wrote Notes.", Random(0)) == ("It was Ada Lovelace who wrote Notes.")


SENTENCES = [
    "Ada Lovelace wrote The Notes in 1843.",
    "Canberra is the capital of Australia.",
    "The company employs 345 people in 12 towns.",
    "Radium was discovered by Marie Curie in 1898.",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_same_seed_changes_two_sentences_alike(sentence: str):
    other = sentence.replace("Ada", "Eva").replace("Canberra", "Sydney").replace("345", "346")
    other = other.replace("Marie", "Lise")
    for seed in range(20):
        one, two = (far_from(said, Random(seed)) for said in (sentence, other))
        assert one != two
        back = two.replace("Eva", "Ada").replace("Sydney", "Canberra").replace("Lise", "Marie")
        assert back.replace("forty-six", "forty-five").replace("346", "345") == one


def test_names_keep_their_words():
    said = {far_from("She won the Nobel Prize for Physics.", Random(seed)) for seed in range(40)}
    assert all("Nobel Prize" in one for one in said)
    assert replaced("The prize was small.", Random(0), "far") != "The prize was small."


def test_every_turn_has_words_to_be_found_by_and_forms_with_both_sides():
    tables = paraphrases()
    assert set(tables["turns"]) == set(tables["between"])
    for name, forms in tables["turns"].items():
        assert forms[0] == f"{{a}} {tables['between'][name]} {{b}}."
        assert len(forms) > 1
        assert all("{a}" in form and "{b}" in form for form in forms)
    assert all(len(forms) == 4 for forms in tables["verbs"].values())
    assert all(len(set(words)) == len(words) > 1 for words in tables["same"]["sets"])
