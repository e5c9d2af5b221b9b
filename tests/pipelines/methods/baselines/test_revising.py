"""Queries made of texts: their last words, or the question."""

from __future__ import annotations

import pytest

from pipelines.methods.base import Question
from pipelines.methods.baselines.shared import MOST_QUERY_WORDS, query_of

QUESTION = Question(text="Where was Bill Clinton born?", language="en")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("He was  born\nin Hope.", "He was born in Hope."),
        ("", QUESTION.text),
        (" … !", QUESTION.text),
        ("first " + "word " * MOST_QUERY_WORDS, ("word " * MOST_QUERY_WORDS).strip()),
        # Chinese has no spaces: each character counts.
        ("前" + "字" * MOST_QUERY_WORDS, "字" * MOST_QUERY_WORDS),
    ],
)
def test_a_query_is_the_last_words_of_a_text(text: str, query: str):
    assert query_of(text, QUESTION) == query
