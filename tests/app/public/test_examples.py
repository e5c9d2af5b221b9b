"""The examples of the public page, in a language that its model speaks and in another."""

from __future__ import annotations

import pytest

from app.public.walkthrough import example_html, examples_for
from components.ask import examples
from components.base.words import Catalogue
from pipelines.run.events import ModelSpec
from pipelines.samples.walkthroughs import walkthroughs
from pipelines.store.exchange import recordings
from tests.components.html_tree import read

BOTH = {"main": ModelSpec(kind="local", name="Two", model="a/b", languages=("en", "zh"))}


def test_recorded_questions_come_first_and_each_question_once():
    found = examples_for("en")
    recorded = {one.question: one.id for one in recordings() if one.language == "en"}
    assert [one.run for one in found[: len(recorded)]] == [
        recorded[one.question] for one in found[: len(recorded)]
    ]
    questions = [one.question for one in examples_for("en")]
    assert len(set(questions)) == len(questions)
    assert set(examples("en")) <= set(questions)


@pytest.mark.usefixtures("nothing_fetched")
def test_no_question_is_offered_that_would_be_answered_with_noise():
    found = examples_for("zh")
    assert all(one.run for one in found)
    chinese = [one.run_id for one in walkthroughs() if one.language == "zh"]
    assert [one.run for one in found[: len(chinese)]] == chinese
    assert {one.run for one in found[len(chinese) :]} == {one.id for one in recordings()}
    # A model that speaks Chinese is asked in Chinese.
    assert set(examples("zh")) <= {one.question for one in examples_for("zh", BOTH)}


@pytest.mark.usefixtures("nothing_fetched")
def test_an_example_says_what_is_shown_in_its_own_language():
    t = Catalogue("zh")
    first, *_, last = (read(example_html(one, t)) for one in examples_for("zh"))
    title = walkthroughs()[1].title["zh"]
    assert first.one("li").text() == t("space.example.walkthrough", title=title)
    assert last.all("li")
    plain = next(one for one in examples_for("zh", BOTH) if not one.run)
    assert example_html(plain, t) == plain.question
