"""The sentence that supports a claim best."""

from __future__ import annotations

import pytest

from pipelines.retrieval.highlight import best_sentence

CLINTON = (
    "Bill Clinton is an American politician. Clinton was born in Hope, Arkansas, in 1946. "
    "Clinton served as governor of Arkansas. Clinton was president from 1993 to 2001."
)
PANDA = "大熊猫是中国特有的动物。大熊猫主要吃竹子。大熊猫的数量约为1864只。"


@pytest.mark.parametrize(
    ("target", "beginning"),
    [
        ("Bill Clinton was born in 1946.", "Clinton was born"),
        ("Clinton became president in 1993", "Clinton was president"),
        ("He was the governor.", "Clinton served"),
        # "Arkansas" is in two sentences, "Hope" in one: what is rarer decides.
        ("Arkansas? Hope!", "Clinton was born"),
        # Both hold it once; the shorter is the more to the point.
        ("Arkansas", "Clinton served"),
        # In every sentence: the shortest again.
        ("Clinton", "Bill Clinton is"),
    ],
)
def test_english(target: str, beginning: str):
    found = best_sentence(CLINTON, target)
    assert found is not None
    assert found.text.startswith(beginning)
    assert CLINTON[found.start : found.end] == found.text


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("大熊猫吃什么？主要是竹子。", "大熊猫主要吃竹子。"),
        ("大熊猫有1864只", "大熊猫的数量约为1864只。"),
        ("这种动物在中国", "大熊猫是中国特有的动物。"),
    ],
)
def test_chinese(target: str, expected: str):
    found = best_sentence(PANDA, target)
    assert found is not None
    assert found.text == expected == PANDA[found.start : found.end]


def test_one_rare_term_outweighs_a_common_one():
    # n = 3: "river" in 2 sentences weighs ln 2.5 = 0.92, "salmon" in 1 ln 4 = 1.39.
    passage = "The river is wide. The river is cold. Salmon spawn upstream."
    found = best_sentence(passage, "river salmon")
    assert found is not None
    assert found.text == "Salmon spawn upstream."


@pytest.mark.parametrize(
    ("passage", "target"),
    [
        (CLINTON, "Whales swim."),
        (CLINTON, "the of and"),
        (CLINTON, ""),
        ("", "Clinton"),
        ("?!", "?!"),
    ],
)
def test_nothing_in_common(passage: str, target: str):
    assert best_sentence(passage, target) is None
