import pytest

from components.messages import Catalogue
from components.scores import consequence, gauge, score_line, score_title, score_value
from pipelines.run.events import Score
from tests.components import samples as s
from tests.components.html_tree import read


def test_the_line_shows_number_threshold_and_what_follows(t: Catalogue) -> None:
    page = read(score_line(s.PROBABILITY_SCORE, t))
    assert page.one(".vs-score-name").text() == "P(E), entity probability"
    assert page.one(".vs-score-value").text("vs-sign") == "0.18 < 0.60"
    assert page.one(".vs-score-value").one(".vs-sign").text() == "!"
    assert "counts as doubtful" in page.one(".vs-score-follows").text()


def test_formula_and_inputs_are_at_hand(t: Catalogue) -> None:
    page = read(score_line(s.ENTROPY_SCORE, t))
    details = page.one("details")
    assert details.one("summary").text() == "How it is computed"
    assert details.one(".vs-formula").text() == "H(E) = max(H₁, …, Hₙ)"
    assert details.one(".vs-note").text() == "Computed from 0.98, 1.1"


@pytest.mark.parametrize("kind", ["probability", "entropy"])
def test_every_pooling_has_its_formula(t: Catalogue, kind: str) -> None:
    poolings = ["mean", "geometric", "min", "first", "product"] if kind == "probability" else [
        "max", "mean", "first"
    ]  # fmt: skip
    texts = {t(f"formula.drad.{kind}.{pooling}") for pooling in poolings}
    assert len(texts) == len(poolings)


def test_the_caller_may_say_what_follows(t: Catalogue) -> None:
    assert "Retrieve." in score_line(s.PROBABILITY_SCORE, t, follows="Retrieve.")


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Score(name="x", value=0.4, threshold=0.5, flagged=True), "0.40 is below"),
        (Score(name="x", value=0.6, threshold=0.5), "0.60 is not below"),
        (Score(name="x", value=3, threshold=2.5, bad="above", flagged=True), "3.00 is above"),
        (Score(name="x", value=2, threshold=2.5, bad="above"), "2.00 is not above"),
        (Score(name="x", value=2), "No threshold"),
        (Score(name="x", value=None, threshold=2.5), "could not be determined"),
    ],
)
def test_a_sentence_for_every_case(t: Catalogue, score: Score, text: str) -> None:
    assert consequence(score, t).startswith(text) or text in consequence(score, t)


def test_values_without_threshold_or_number() -> None:
    assert score_value(Score(name="x", value=0.4234)) == "0.42"
    assert score_value(Score(name="x", value=None, threshold=0.5)) == "–"


def test_unknown_names_stay(t: Catalogue) -> None:
    assert score_title(Score(name="brand_new", value=1), t) == "brand_new"


def styles(score: Score, t: Catalogue) -> dict[str, str]:
    return {
        next(iter(node.classes)): node.attributes["style"]
        for node in read(gauge(score, t)).one(".vs-gauge").children
    }


def test_the_gauge_lies_on_its_scale(t: Catalogue) -> None:
    assert styles(s.PROBABILITY_SCORE, t) == {
        "vs-gauge-bad": "left:0;width:60.00%",
        "vs-gauge-value": "width:18.00%",
        "vs-gauge-threshold": "left:60.00%",
    }
    two = Score(name="hybrid", value=0.5, threshold=0.5, low=0, high=2)
    assert styles(two, t)["vs-gauge-value"] == "width:25.00%"


def test_an_open_scale_reaches_past_value_and_threshold(t: Catalogue) -> None:
    # Up to 2.5 * 1.25 = 3.125: the threshold stands at 80 %, 1.12 at 35.84 %.
    assert styles(s.ENTROPY_SCORE, t) == {
        "vs-gauge-bad": "left:80.00%;right:0",
        "vs-gauge-value": "width:35.84%",
        "vs-gauge-threshold": "left:80.00%",
    }


def test_values_off_the_scale_stop_at_its_end(t: Catalogue) -> None:
    assert styles(Score(name="x", value=7), t) == {"vs-gauge-value": "width:100.00%"}
    assert styles(Score(name="x", value=-1), t) == {"vs-gauge-value": "width:0.00%"}
    assert styles(Score(name="x", value=0, high=None), t) == {"vs-gauge-value": "width:0.00%"}


def test_the_gauge_speaks(t: Catalogue) -> None:
    meter = read(gauge(s.PROBABILITY_SCORE, t)).one(".vs-gauge").attributes
    assert meter["role"] == "meter"
    assert (meter["aria-valuenow"], meter["aria-valuemin"], meter["aria-valuemax"]) == (
        "0.18",
        "0",
        "1",
    )
    assert meter["aria-valuetext"] == "0.18 < 0.60"
    assert "role" not in read(gauge(Score(name="x", value=None), t)).one(".vs-gauge").attributes
