"""What is shown in a terminal moves and hides nothing, and JSON stays the JSON it was."""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.base import guard_log, is_blank, mixes_scripts, printable, printable_json, skeleton

CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
HIDING = ["\u202a", "\u202e", "\u2066", "\u2069"]
TEXTS = st.text(st.characters() | st.sampled_from([*CONTROLS, *HIDING]))


def obeyed(text: str) -> list[str]:
    """The characters of `text` that a terminal obeys instead of showing them."""
    return [one for one in text if one in HIDING or unicodedata.category(one) == "Cc"]


@given(TEXTS)
def test_a_terminal_obeys_nothing_but_line_breaks_and_tabs(text: str):
    assert set(obeyed(printable(text))) <= {"\n", "\t"}


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS)))
def test_json_says_the_same(value: dict[str, object]):
    text = json.dumps(value, ensure_ascii=False)
    assert obeyed(printable_json(text)) == []
    assert json.loads(printable_json(text)) == value


@pytest.fixture
def last_resort() -> Iterator[logging.Handler]:
    handler = logging.lastResort
    assert handler is not None
    before = handler.formatter
    yield handler
    handler.setFormatter(before)


def test_the_log_quotes_nobody_word_for_word(last_resort: logging.Handler):
    guard_log()
    record = logging.LogRecord("a", logging.ERROR, "f", 1, "It said %s", ("\x1b[2J\x9b",), None)
    assert last_resort.format(record) == "It said \\x1b[2J\\x9b"


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ("", True),
        (" \t\n", True),
        ("\u200b\u2060\ufeff", True),
        ("\u3164\u2800\u115f\ufe0f", True),
        ("\u0301", True),
        ("?", False),
        ("谁", False),
        ("e\u0301", False),
    ],
)
def test_what_shows_nothing_is_blank(text: str, blank: bool):
    assert is_blank(text) == blank


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ann", "ann", True),
        ("Ann", "Ａｎｎ", True),
        ("Ann", "A\u200bnn ", True),
        ("Ann Lee", "AnnLee", True),
        # Cyrillic letters that look Latin.
        ("Cop", "Сор", True),
        ("ﬁn", "fin", True),
        ("Ann", "Anna", False),
        ("王芳", "王方", False),
    ],
)
def test_names_that_look_the_same_have_one_skeleton(one: str, other: str, same: bool):
    assert (skeleton(one) == skeleton(other)) == same


@pytest.mark.parametrize(
    ("name", "mixes"),
    [("Аnn", True), ("Ann Анна", False), ("王Ann", False), ("Ωmega", True), ("Ann-2", False)],
)
def test_words_of_several_scripts(name: str, mixes: bool):
    assert mixes_scripts(name) == mixes
