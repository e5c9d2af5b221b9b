"""Texts of calls that are written once."""

from __future__ import annotations

from components.base.words import Catalogue
from components.run.calls import CallsOnce, calls_once, writing_once
from pipelines.prompts import Prompts
from tests.components.html_tree import read

PREFACE = "Answer in one word, whatever you are asked. " * 20
"""880 characters."""


def test_while_pages_are_drawn_nothing_is_changed():
    assert calls_once() is None
    once = CallsOnce()
    with writing_once(once):
        assert calls_once() is once
    assert calls_once() is None


def test_a_short_text_is_written_every_time(t: Catalogue):
    once = CallsOnce()
    for _ in range(2):
        assert read(once.text("Why?", t)).one("pre").text() == "Why?"


def test_a_long_text_is_referred_to_the_second_time(t: Catalogue):
    once = CallsOnce()
    first = read(once.text(PREFACE, t)).one("pre")
    assert first.text() == PREFACE
    again = read(once.text(PREFACE, t))
    assert not again.all("pre")
    assert again.one("a").attributes["href"] == f"#{first.attributes['id']}"
    assert again.text() == t("report.same_text", count="880")


def test_a_beginning_is_referred_to_and_the_rest_written(t: Catalogue):
    once = CallsOnce()
    once.text(f"{PREFACE}Who was Ada?", t)
    found = read(once.text(f"{PREFACE}Where was she born?", t))
    assert found.one("a").text() == t("report.same_beginning", count="880")
    assert found.one("pre").text() == "Where was she born?"
    # The third is the second in full, by way of the first.
    third = read(once.text(f"{PREFACE}Where was she born?", t))
    assert third.one("a").attributes["href"] == f"#{found.one('div').attributes['id']}"


def test_no_word_is_divided(t: Catalogue):
    once = CallsOnce()
    once.text(f"{PREFACE}abcdef", t)
    assert read(once.text(f"{PREFACE}abcxyz", t)).one("pre").text() == "abcxyz"


def test_what_shares_little_is_written(t: Catalogue):
    once = CallsOnce()
    once.text("a" * 200 + "b" * 300, t)
    assert read(once.text("a" * 200 + "c" * 300, t)).one("pre").text() == "a" * 200 + "c" * 300


def test_what_is_cut_is_counted_and_told(t: Catalogue):
    once = CallsOnce(most=500)
    found = read(once.text("x" * 1_700, t))
    assert found.one("pre").text() == "x" * 500
    assert t("report.cut", count="1,200", total="1,700") in found.text()
    once.text("y" * 501, t)
    once.text("y" * 501, t)
    assert (once.cut, once.left_out) == (2, 1_201)


def test_values_are_marked_in_what_is_written(t: Catalogue):
    prompts = Prompts("x", f'[en]\nask = "{PREFACE}Who was $name?"')
    once = CallsOnce()
    once.text(prompts.fill("en", "ask", name="Ada"), t)
    found = read(once.text(prompts.fill("en", "ask", name="Marie"), t))
    assert found.one("pre").text() == "Marie?"
    assert found.one(".vs-value").text() == "Marie"
    cut = read(CallsOnce(most=len(PREFACE) + 10).text(prompts.fill("en", "ask", name="Ada"), t))
    assert cut.one(".vs-value").text() == "Ad"
