from typing import Any

import pytest

from components.base.theme import tokens
from components.base.words import Catalogue
from components.run.figures import entities_figure, profile_figure
from components.run.text import EntityMark
from pipelines.base import Token
from tests.components import samples as s


def plain(figure: Any) -> dict[str, Any]:
    return figure.to_plotly_json()


def test_profile_of_both_measures_with_thresholds(t: Catalogue) -> None:
    figure = profile_figure(s.TOKENS, t, theta_1=0.6, theta_2=2.5)
    above, below = plain(figure)["data"]
    assert list(above["y"]) == pytest.approx([token.probability for token in s.TOKENS])
    assert list(below["y"]) == [token.entropy for token in s.TOKENS]
    wrong = tokens("light")["heat-line"]
    doubtful = [i for i, colour in enumerate(above["marker"]["color"]) if colour == wrong]
    assert [s.TOKENS[i].text for i in doubtful] == [" Chicago", " became", " in", " January"]
    layout = plain(figure)["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [0.6, 2.5]
    assert {note["text"] for note in layout["annotations"]} == {"θ₁ = 0.6", "θ₂ = 2.5"}


def test_profile_has_gaps_where_nothing_was_reported(t: Catalogue) -> None:
    above, below = plain(profile_figure([Token(text="x", start=0, end=1)], t))["data"]
    assert list(above["y"]) == [None]
    assert list(below["customdata"][0]) == ["x", "–"]


def test_entities_by_both_scores(t: Catalogue) -> None:
    figure = entities_figure(s.TEXT, s.ENTITIES, t, "dark", theta_1=0.6, theta_2=2.5)
    doubtful, confident = plain(figure)["data"]
    assert list(doubtful["x"]) == [0.18, 0.475]
    assert list(doubtful["y"]) == [2.71, 4.23]
    assert doubtful["name"] == "! Doubtful"
    assert doubtful["marker"]["symbol"] != confident["marker"]["symbol"]
    assert doubtful["marker"]["color"] == tokens("dark")["undecided"]
    lines = plain(figure)["layout"]["shapes"]
    assert (lines[0]["x0"], lines[1]["y0"]) == (0.6, 2.5)


def test_entities_without_both_scores_are_not_placed(t: Catalogue) -> None:
    figure = entities_figure("Hope", [EntityMark(0, 4, "GPE", "unchecked", 0.5)], t)
    assert list(plain(figure)["data"]) == []


def test_labels_are_no_markup(t: Catalogue) -> None:
    (token,) = s.written(("<b>&\u202e\n", 0.5, 1.0, {"<i>": 0.2}))
    above, _ = plain(profile_figure([token], t))["data"]
    assert above["customdata"][0][0] == "&lt;b&gt;&amp;⟨U+202E⟩↵"
