"""Numbers as words and dates in other forms, with values worked out by hand."""

from __future__ import annotations

from random import Random

import pytest

from research.judge.numerals import (
    dates_changed,
    number_words,
    numbers_changed,
    ordinal_words,
    year_widened,
)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (86, "eighty-six"),
        (100, "one hundred"),
        (345, "three hundred and forty-five"),
        (1066, "one thousand and sixty-six"),
        (21_300, "twenty-one thousand three hundred"),
        (1_500_003, "one million five hundred thousand and three"),
        (2_000_000_000, "two billion"),
    ],
)
def test_numbers_are_said_in_words(number: int, words: str):
    assert number_words(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "first"),
        (12, "twelfth"),
        (20, "twentieth"),
        (21, "twenty-first"),
        (112, "one hundred and twelfth"),
    ],
)
def test_ordinals_are_said_in_words(number: int, words: str):
    assert ordinal_words(number) == words


@pytest.mark.parametrize("date", ["9 June 1946", "June 9, 1946", "1946-06-09"])
def test_a_date_is_written_in_other_ways_that_mean_the_same_day(date: str):
    forms = {dates_changed(f"It was {date}.", Random(seed)) for seed in range(60)}
    said = {form.removeprefix("It was ").removesuffix(".") for form in forms if form}
    allowed = {
        *("9 June 1946", "June 9, 1946", "the 9th of June 1946", "1946-06-09"),
        *("June 9th, 1946", "9 Jun 1946", "the ninth of June, 1946"),
    }
    assert said <= allowed - {date}
    assert len(said) >= 4


@pytest.mark.parametrize("text", ["It was 1946.", "It was 1946-13-09.", "It was May."])
def test_what_is_no_date_is_left(text: str):
    assert dates_changed(text, Random(0)) is None


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("It has 12 rooms.", "It has twelve rooms."),
        ("It has 1,200 rooms.", "It has one thousand two hundred rooms."),
        ("It cost 1,500,000 in all.", "It cost 1.5 million in all."),
        ("It was the 19th room.", "It was the nineteenth room."),
        ("It has 25% of them.", "It has a quarter of them."),
        ("It has 17 per cent of them.", "It has seventeen percent of them."),
    ],
)
def test_a_number_is_written_in_words(text: str, changed: str):
    assert numbers_changed(text, Random(0)) == changed


@pytest.mark.parametrize(
    "text",
    [
        "It was in 1946.",
        "It was on 9 June.",
        "It was on 9 Jun.",
        "It was Jun 9, the day of it.",
        "It is 3.5 long.",
        "It is A4.",
        "It cost £30.",
        "It won 3-1.",
    ],
)
def test_years_days_and_parts_of_other_signs_are_no_numbers(text: str):
    assert numbers_changed(text, Random(0)) is None


def test_a_year_becomes_its_decade_or_century():
    found = {year_widened("He died in 1946, at home.", Random(seed)) for seed in range(40)}
    assert found == {
        "He died in the 1940s, at home.",
        "He died in the mid-1940s, at home.",
        "He died in the twentieth century, at home.",
    }
    early = {year_widened("In 1901 he died.", Random(seed)) for seed in range(40)}
    assert early == {
        "In the 1900s he died.",
        "In the early 1900s he died.",
        "In the twentieth century he died.",
    }
    # 1900 is the last year of the nineteenth century.
    last = {year_widened("He died in 1900.", Random(seed)) for seed in range(40)}
    assert "He died in the nineteenth century." in last


@pytest.mark.parametrize(
    "text", ["He lived from 1901 to 1946.", "It was in 1914-18.", "In 12 days."]
)
def test_without_a_single_year_nothing_is_widened(text: str):
    assert year_widened(text, Random(0)) is None
