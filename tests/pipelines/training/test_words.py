"""Words put in place of others, as the list of them says."""

from __future__ import annotations

import re
from random import Random

from pipelines.training.words import base_forms, exchanged, said_otherwise, turned_round


def drawn(change, sentence: str) -> set[str | None]:
    return {change(sentence, Random(seed)) for seed in range(80)}


def test_a_word_becomes_another_of_its_group_and_the_article_follows():
    found = drawn(exchanged, "He was a lawyer.")
    assert {"He was a biologist.", "He was a composer."} < found
    assert any(text and re.fullmatch(r"He was an [aei]\w+\.", text) for text in found)
    assert not any(text and re.search(r" a [aeio]| an [^aeio]", text) for text in found)
    assert "He was a lawyer." not in found


def test_a_word_becomes_its_opposite():
    assert drawn(turned_round, "It opened before noon.") == {
        "It closed before noon.",
        "It opened after noon.",
    }


def test_the_longest_expression_is_taken():
    # "more than" and not "more".
    assert drawn(turned_round, "There are more than ten.") == {"There are less than ten."}


def test_other_words_for_the_same():
    assert drawn(said_otherwise, "Nearly all came.") == {"Almost all came."}


def test_a_sentence_without_such_words_stays():
    assert exchanged("Nothing here.", Random(0)) is None
    assert turned_round("Nothing here.", Random(0)) is None
    assert said_otherwise("Nothing here.", Random(0)) is None


def test_parts_of_words_are_left_alone():
    # "art" of "party", "win" of "window".
    assert turned_round("The windows of the overall.", Random(0)) is None


def test_base_forms_are_those_of_past_forms():
    forms = base_forms()
    assert (forms["wrote"], forms["died"]) == ("write", "die")
    assert not [past for past, base in forms.items() if past == base]
