from __future__ import annotations

from typing import get_args

import pytest

from components.base.elements import (
    STATUS_SIGNS,
    VERDICT_SIGNS,
    Status,
    announcement,
    button,
    consequence,
    counters,
    distinct,
    gauge,
    score_line,
    score_title,
    score_value,
    status_badge,
    verdict_badge,
)
from components.base.theme import stylesheet
from components.base.words import Catalogue
from pipelines.run.events import Score, Verdict
from tests.components import samples as s
from tests.components.html_tree import Node, read


def test_every_verdict_and_state_has_a_sign() -> None:
    assert set(VERDICT_SIGNS) == set(get_args(Verdict))
    assert set(STATUS_SIGNS) == set(get_args(Status))
    assert len(set(VERDICT_SIGNS.values())) == len(VERDICT_SIGNS)


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_a_verdict_is_told_by_sign_words_and_class(t: Catalogue, verdict: Verdict) -> None:
    badge = read(verdict_badge(verdict, t)).one(".vs-badge")
    assert badge.text() == VERDICT_SIGNS[verdict] + t(f"verdict.{verdict}")
    assert badge.one(".vs-sign").attributes["aria-hidden"] == "true"
    (css,) = badge.classes - {"vs-badge"}
    assert f".{css}" in stylesheet()


@pytest.mark.parametrize("status", get_args(Status))
def test_a_state_is_told_by_sign_words_and_class(t: Catalogue, status: Status) -> None:
    badge = read(status_badge(status, t)).one(".vs-badge")
    assert badge.text() == STATUS_SIGNS[status] + t(f"status.{status}")
    (css,) = badge.classes - {"vs-badge"}
    assert f".{css}" in stylesheet()


def test_words_can_be_replaced(t: Catalogue) -> None:
    assert "3 of 4" in verdict_badge("supported", t, label="3 of 4")
    assert "Searching" in status_badge("running", t, label="Searching")


def test_buttons_with_the_same_words_say_aloud_what_they_are_for() -> None:
    named = read(button("Open", "open_run", "7", of="text <b>\u202e7")).one("button")
    assert named.text() == "Open text <b>⟨U+202E⟩7"
    assert named.one(".vs-sr").text().strip() == "text <b>⟨U+202E⟩7"
    assert read(button("Open", "open_run", "7")).one("button").text() == "Open"


def test_confidence_has_no_verdicts_colour() -> None:
    css = stylesheet()
    rule = css[css.index(".vs-verdict-confident {") :].split("}")[0]
    assert "--vs-supported" not in rule


def test_distinct_keeps_one_order() -> None:
    assert distinct(["doubtful", "supported", "doubtful"]) == ["supported", "doubtful"]


def test_the_line_shows_number_threshold_and_what_follows(t: Catalogue) -> None:
    page = read(score_line(s.PROBABILITY_SCORE, t))
    assert page.one(".vs-score-name").text() == "P(E), entity probability"
    assert page.one(".vs-score-value").text("vs-sign") == "0.18 < 0.60"
    assert page.one(".vs-score-value").one(".vs-sign").text() == "!"
    assert "counts as doubtful" in page.one(".vs-score-follows").text()


def test_formula_and_inputs_can_be_opened(t: Catalogue) -> None:
    page = read(score_line(s.ENTROPY_SCORE, t))
    means, details = page.all("details")
    assert means.one("summary").text() == "What does this mean?"
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


def line(t: Catalogue, status: Status = "running", seconds: float = 4.13) -> Node:
    html = counters(t, status=status, seconds=seconds, calls=1, retrievals=2, tokens=1234)
    return read(html)


def test_everything_that_ticks(t: Catalogue) -> None:
    figures = line(t).all(".vs-counter")
    assert [figure.text() for figure in figures] == [
        "4.1 s", "1 call", "2 searches", "1,234 tokens",
    ]  # fmt: skip


def test_the_clock_runs_on_only_while_the_run_does(t: Catalogue) -> None:
    def clocks(page: Node) -> list[str]:
        return [n.attributes["data-clock"] for n in page.walk() if "data-clock" in n.attributes]

    assert clocks(line(t)) == ["4.13"]
    assert clocks(line(t, "done")) == []
    assert clocks(line(t, seconds=75)) == []
    assert line(Catalogue("zh")).one(".vs-counter-seconds").text() == "4.1 秒"


def test_only_the_announcement_is_live(t: Catalogue) -> None:
    page = line(t)
    live = [node for node in page.walk() if "aria-live" in node.attributes]
    assert [node.attributes["aria-live"] for node in live] == ["polite"]
    assert live[0].text() == "Running."
    assert page.one(".vs-counter-figures").attributes["aria-hidden"] == "true"


def test_the_announcement_changes_rarely(t: Catalogue) -> None:
    said = [announcement(t, status="running", seconds=i / 10, calls=i // 10) for i in range(300)]
    assert list(dict.fromkeys(said)) == [
        "Running.",
        "Running, 10 calls so far.",
        "Running for 15 s, 10 calls so far.",
        "Running for 15 s, 20 calls so far.",
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("waiting", "Waiting to start."),
        ("done", "Done in 4.1 s, 1 call."),
        ("failed", "Failed after 4.1 s, 1 call."),
        ("cancelled", "Stopped after 4.1 s, 1 call."),
    ],
)
def test_the_end_is_announced(t: Catalogue, status: Status, text: str) -> None:
    assert announcement(t, status=status, seconds=4.13, calls=1) == text


def test_alignment_alone_is_never_shown_as_support() -> None:
    css = stylesheet()
    for verdict in ("aligned", "not-aligned"):
        rule = css[css.index(f".vs-verdict-{verdict}") :].split("}")[0]
        assert "--vs-supported" not in rule
    assert VERDICT_SIGNS["aligned"] != VERDICT_SIGNS["supported"]
