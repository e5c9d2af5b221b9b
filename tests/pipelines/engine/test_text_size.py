"""How much of a text there is to check: its sentences, and names and numbers for its facts."""

from __future__ import annotations

import pytest

from pipelines.engine.estimate import TextSize, size_of


@pytest.mark.parametrize(
    ("text", "sentences", "facts"),
    [
        # London and 1912; the name that the sentence begins with is what it speaks about.
        ("Alan Turing was born in London in 1912.", 1, 2),
        # Bletchley Park is one name.
        ("He worked at Bletchley Park during the war.", 1, 1),
        # What names nothing is a fact all the same.
        ("It is made of steel.", 1, 1),
        ("Alan Turing was born in London in 1912. He studied at Oxford. He was tall.", 3, 4),
        # Nobel Prize, Literature, Henri Becquerel and 1903.
        ("In 1903 she shared the Nobel Prize in Literature with Henri Becquerel.", 1, 4),
        ("About 1,500 people died at 11:40.", 1, 2),
        ("他于1903年获奖。他是化学家。", 2, 2),
        ("", 1, 1),
    ],
)
def test_a_text_has_sentences_and_facts(text: str, sentences: int, facts: int):
    assert size_of(text) == TextSize(sentences, facts)
