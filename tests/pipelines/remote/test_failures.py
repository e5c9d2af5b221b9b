"""What services say went wrong, and how long they ask to wait."""

from __future__ import annotations

import pytest

from pipelines.remote import retry_after, server_words, showable

KEY = "k-secret-key"


@pytest.mark.parametrize("value", ["soon", "-3", "inf", ""])
def test_a_senseless_wait_is_no_wait(value: str):
    assert retry_after({"retry-after": value}) is None


def test_a_date_that_has_passed_is_now():
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "a"}, "a"),
        ({"error": {"message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ({"detail": [{"msg": "a"}, {"msg": "b"}]}, "a; b"),
        ("a", "a"),
        ("<!doctype html>", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_words_of_a_server(body: object, words: str):
    assert server_words(body) == words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("  Odd\n key. ", "Odd key"),
        (f"{KEY} is odd", "[key] is odd"),
        ("sk-12ab****89yz is odd", "[key] is odd"),
        ("x" * 240, "x" * 240),
        ("x" * 241, "x" * 239 + "…"),
    ],
)
def test_words_that_may_be_shown(words: str, shown: str):
    assert showable(words, KEY) == shown
