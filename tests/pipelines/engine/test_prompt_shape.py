"""Which texts are a filled prompt, and with which values; as a regular expression would find it."""

from __future__ import annotations

import re
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.prompt_shape import Shape


@pytest.mark.parametrize(
    ("prompt", "text", "values"),
    [
        ("Be brief.", "Be brief.", {}),
        ("Be brief.", "Be brief. Now.", None),
        ("$question", "Who?", {"question": "Who?"}),
        ("$question", "", {"question": ""}),
        ("  Q: $question  \n", "Q: Who?", {"question": "Who?"}),
        ("Q: $q A: ${a}.", "Q: Who? A: She.", {"q": "Who?", "a": "She"}),
        # The shortest from the left.
        ("$a, $b", "one, two, three", {"a": "one", "b": "two, three"}),
        ("$a$b", "xy", {"a": "", "b": "xy"}),
        ("It costs $$$price.", "It costs $5.", {"price": "5"}),
        ("50 $ for $what", "50 $ for it", {"what": "it"}),
        # Begin and end may not share a character.
        ("ab${x}b", "ab", None),
        ("ab${x}b", "abb", {"x": ""}),
        # The same value twice.
        ("$a and $a", "so and so", {"a": "so"}),
        ("$a and $a", "so and no", None),
        ("$a, $b: $a!", "1, 2: 1!", {"a": "1", "b": "2"}),
        ("$a, $b: $a!", "1, 2: 1", None),
    ],
)
def test_values_of_a_prompt(prompt: str, text: str, values: dict[str, str] | None):
    assert Shape(prompt).fit(text) == values


def test_a_prompt_inside_tells_where_its_value_ends():
    inside = {"passage": "[$rank] $title: $text"}
    shape = Shape("Read $passage. Again: $passage. Then say $what.", inside)
    text = "Read [1] A. B: It rains. Again: [1] A. B: It rains. Then say yes."
    assert shape.fit(text) == {
        "passage": "[1] A. B: It rains",
        "passage__rank": "1",
        "passage__title": "A. B",
        "passage__text": "It rains",
        "what": "yes",
    }
    assert shape.fit("Read it. Again: it. Then say yes.") is None
    # One without placeholders of its own is words.
    assert Shape("$none, $x", {"none": "Nothing."}).fit("Nothing., y") == {
        "none": "Nothing.",
        "x": "y",
    }


def test_whether_it_begins_with_words():
    assert Shape("Q: $q").begins_with_words
    assert not Shape("$q A").begins_with_words


def test_a_long_text_that_does_not_fit_is_told_as_such():
    lines = "line\n" * 8000
    assert Shape("$a\n$b\n$c\n$d\nAnswer:").fit(lines) is None
    assert Shape("$a\n$b\n$c\n$d\nAnswer:").fit(f"{lines}Answer:") is not None


PIECES = st.lists(
    st.sampled_from(["${a}", "${b}", "${c}", " ", "x", ", ", "."]), min_size=1, max_size=6
)


@given(PIECES, st.text(alphabet="x, .", max_size=10))
def test_values_are_those_of_a_regular_expression(pieces: list[str], text: str):
    prompt = "".join(dict.fromkeys(pieces)).strip()
    escaped = re.sub(r"\\\$\\\{([abc])\\\}", r"(?P<\1>.*?)", re.escape(prompt))
    found = re.fullmatch(escaped, text, re.DOTALL)
    assert Shape(prompt).fit(text) == (found and found.groupdict())


@given(PIECES, st.text(alphabet="x, .", max_size=10))
def test_what_fits_is_what_the_values_fill(pieces: list[str], text: str):
    prompt = "".join(pieces).strip()
    values = Shape(prompt).fit(text)
    assert values is None or Template(prompt).substitute(values) == text
