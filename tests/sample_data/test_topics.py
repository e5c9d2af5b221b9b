"""Each topic has an article in both languages, and both give the same numbers and dates."""

from __future__ import annotations

import calendar
import csv
import math
import re

import pytest

from tests.sample_data.test_library import SAMPLE_DATA, articles

# These four were written apart from each other, each with facts that the other does not have.
APART = {"bill-clinton", "canberra", "marie-curie", "mount-everest"}

ONES = re.findall(
    r"\w+",
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen""",
)
TENS = re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety")
ORDINALS = re.findall(
    r"\w+",
    """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""",
)
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
DIGITS = "\u96f6\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d"
UNITS = {"\u5341": 10, "\u767e": 100, "\u5343": 1000, "\u4e07": 10_000, "\u4ebf": 100_000_000}

WORDS = (
    {word: float(value) for value, word in enumerate(ONES)}
    | {word: 10.0 * value for value, word in enumerate(TENS, start=2)}
    | {word: float(value) for value, word in enumerate(ORDINALS, start=1)}
    | {"eightieth": 80.0}
)


def english(text: str) -> tuple[set[float], set[float]]:
    """The numbers written in digits or as months, and all numbers with those written as words."""
    for value, month in enumerate(calendar.month_name[1:], start=1):
        text = re.sub(rf"\b{month}\b", f" {value} ", text)
    # "the 1790s" are the nineties of the 18th century.
    text = re.sub(r"\b(\d\d)(\d)0s\b", lambda m: f"{int(m[1]) + 1} {m[2]}0", text)
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    written: set[float] = set()
    for number, scale in re.findall(
        r"(?<![\w.])(\d+(?:\.\d+)*)(?: (million|billion|trillion))?", text
    ):
        if number.count(".") <= 1:
            written.add(round(float(number) * SCALES.get(scale, 1), 7))
    said = set(written)
    words = re.findall(r"[a-z]+|[^a-z\s]", text.lower().replace("-", " "))
    value = 0.0
    for word in [*words, ""]:
        if word in WORDS:
            value += WORDS[word]
            said.add(WORDS[word])
        elif word in SCALES and value:
            value *= SCALES[word]
        elif word != "and":
            said.add(value)
            value = 0.0
        said.add(value)
    return written, said


def chinese(text: str) -> tuple[set[float], set[float]]:
    """The numbers written in digits, and all numbers with those in Chinese numerals."""
    written: set[float] = set()
    for number, units in re.findall(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)*)([\u4e07\u4ebf]*)", text):
        if number.count(".") <= 1:
            scale = math.prod(UNITS[unit] for unit in units)
            written.add(round(float(number) * scale, 7))
    said = set(written)
    for numeral in re.findall(rf"[{DIGITS}\u4e24{''.join(UNITS)}]+", text):
        said.add(numeral_value(numeral))
    return written, said


def numeral_value(numeral: str) -> float:
    """The value of a Chinese numeral, such as 250 of \u4e8c\u767e\u4e94\u5341."""
    numeral = numeral.replace("\u4e24", "\u4e8c")
    if not any(unit in numeral for unit in UNITS):
        return float("".join(str(DIGITS.index(char)) for char in numeral))
    total = section = digit = 0
    for char in numeral:
        if char in DIGITS:
            digit = DIGITS.index(char)
        elif UNITS[char] < 10_000:
            section += max(digit, 1) * UNITS[char]
            digit = 0
        else:
            total = (total + section + digit) * UNITS[char]
            section = digit = 0
    return float(total + section + digit)


def topics() -> list[tuple[str, str]]:
    with (SAMPLE_DATA / "topics.csv").open(encoding="utf-8", newline="") as file:
        return [(row["en"], row["zh"]) for row in csv.DictReader(file)]


def test_helpers_on_small_examples():
    assert english("On 3 May 1,250 of 2.4 million in the 1790s") == (
        {3, 5, 1250, 2.4e6, 18, 90},
        {0, 3, 5, 1250, 2.4e6, 18, 90},
    )
    assert {38, 1500} <= english("thirty-eight, fifteen hundred")[1]
    assert chinese("1815\u5e74\u6709240\u4e07\u4eba")[0] == {1815, 2.4e6}
    assert numeral_value("\u4e8c\u767e\u4e94\u5341\u4e07") == 2.5e6
    assert numeral_value("\u5341\u516d") == 16


def test_every_article_belongs_to_one_topic():
    pairs = topics()
    assert pairs == sorted(pairs)
    found = [f"en/{one}" for one, _ in pairs] + [f"zh/{other}" for _, other in pairs]
    assert sorted(found) == sorted(articles())


@pytest.mark.parametrize(("one", "other"), [pair for pair in topics() if pair[0] not in APART])
def test_both_articles_of_a_topic_give_the_same_numbers(one: str, other: str):
    in_english, said_in_english = english(articles()[f"en/{one}"].text)
    in_chinese, said_in_chinese = chinese(articles()[f"zh/{other}"].text)
    assert in_english <= said_in_chinese
    assert in_chinese <= said_in_english
