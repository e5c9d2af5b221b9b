"""Questions to begin with."""

from __future__ import annotations

import pytest

from components.examples import examples
from pipelines.text.languages import detect_language


def test_the_first_example_is_the_one_everybody_knows():
    assert examples("en")[0] == "Where was Bill Clinton born and raised?"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_are_different_and_in_the_pages_language(language):
    assert len(set(examples(language))) == len(examples(language)) >= 5
    assert {detect_language(question) for question in examples(language)} == {language}
