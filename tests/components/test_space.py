"""The head of the public page, and what is said to those who wait."""

from __future__ import annotations

import pytest

from components.messages import Catalogue
from components.space import queue_note, space_head
from pipelines.engine.admission import Turn
from pipelines.run.defaults import default_models
from pipelines.run.spec import ModelSpec
from tests.components.html_tree import read

MAY = {"max_runs": 2, "seconds": 240.0, "hours": 24.0}


def test_one_line_says_who_answers(t: Catalogue):
    page = read(space_head(default_models(), t, **MAY))
    line = page.one("summary").text()
    assert "SmolLM2-135M-Instruct" in line
    # How often the judge is right, and what visitors may take, is told to those who ask.
    told = page.one("details").text()
    assert "240" in told
    assert "24" in told
    assert t("space.problem") not in told


def test_models_of_the_hub_are_named_as_what_they_are(t: Catalogue):
    main = ModelSpec(
        kind="local", name="Qwen2.5-0.5B-Instruct", model="a/b", languages=("en", "zh")
    )
    line = read(space_head({"main": main}, t, **MAY)).one("summary").text()
    assert line == t("space.model.local", name="Qwen2.5-0.5B-Instruct")


def test_it_is_told_when_the_hub_could_not_be_reached(t: Catalogue):
    page = read(space_head(default_models(), t, **MAY, failed=True))
    assert t("space.problem") in page.one("details").text()


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (Turn(0), "You are next."),
        (Turn(1), "1 visitor is before you."),
        (Turn(3, 90.0), "3 visitors are before you. It will take about 1 min 30 s."),
    ],
)
def test_waiting_visitors_are_told_their_position(turn: Turn, told: str):
    page = read(queue_note(turn, Catalogue("en")))
    assert page.text() == told
    assert page.one("div").attributes["role"] == "status"
