"""What the generic part of a page shows of a method that corrects an answer."""

from __future__ import annotations

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.methods.panel import detector_view
from pipelines.base import Language
from pipelines.run.view import fold
from tests.components.html_tree import Node, read
from tests.scripted.bench import Outcome
from tests.scripted.script import QUESTION, play

DRAFT = "Clinton was born in York in 1946."
EDITED = "Clinton was born in Hope in 1946."


def drawn(outcome: Outcome, language: Language = "en") -> Node:
    view = fold(outcome.trace.events)
    return read(detector_view(view, Catalogue(language), method=outcome.method.name))


async def edited() -> Outcome:
    return await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most 6 questions", "1. In which town was Clinton born?"),
        ("In which town", "False"),
        ("Corrected text:", EDITED),
        finds={"town": ["Clinton was born in Hope."]},
    )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_question_is_shown_with_its_verdict_and_what_was_read(language: Language):
    t = Catalogue(language)
    words = drawn(await edited(), language).text()
    for part in (
        "In which town was Clinton born?",
        t("verdict.contradicted"),
        "Clinton was born in Hope.",
        t("score.preservation.title"),
        t("ask.corrected"),
    ):
        assert part in words


async def test_an_answer_to_a_question_is_shown():
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "It was the town of Hope."),
        ("Final answer:", EDITED),
    )
    words = drawn(outcome).text()
    assert Catalogue("en")("detector.said") in words
    assert "It was the town of Hope." in words


async def test_a_method_without_a_verdict_shows_its_remarks_all_the_same():
    outcome = await play("chain_of_thought", ("First think", "I wonder."), ("I wonder.", ""))
    t = Catalogue("en")
    words = drawn(outcome).text()
    assert t("verdict.none") in words
    assert t("flag.no_final_answer") in words
