"""Calibrations by hand: both curves, what is refused, and what a run's say of its scores."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipelines.error_words import Phrase, first_problem, phrase_in
from pipelines.run.calibrated import deciding_readings, readings
from pipelines.run.calibrations import (
    MOST_CALIBRATIONS,
    MOST_KNOTS,
    Calibration,
    Isotonic,
    Platt,
    isotonic,
)
from pipelines.run.events import MethodSpec, ModelSpec, RunSpec, Score
from pipelines.store.profiles import Profile

ENDS = 1e308


def calibration(**more: Any) -> Calibration:
    """P(wrong) of the SLM check's score: 0.5 at 0.5, less above it."""
    told = {
        "method": "slm",
        "score": "slm_harmonic",
        "task": "answer",
        "bad": "below",
        "fit": {"kind": "platt", "slope": -2, "intercept": 1},
        "labels": 240,
        "session": "Clinton",
    }
    return Calibration.model_validate(told | more)


def test_platt_by_hand():
    fit = Platt(slope=2, intercept=-1)
    # 1 / (1 + e^0), 1 / (1 + e^-1) and 1 / (1 + e^1).
    assert fit.probability(0.5) == 0.5
    assert fit.probability(1.0) == pytest.approx(0.7310585786)
    assert fit.probability(0.0) == pytest.approx(0.2689414214)
    assert (fit.probability(ENDS), fit.probability(-ENDS)) == (1.0, 0.0)
    assert Platt(slope=1e12, intercept=1e12).probability(-ENDS) == 0.0


def test_isotonic_by_hand():
    fit = Isotonic(x=(0.2, 0.4, 0.8), y=(0.1, 0.5, 0.5))
    # Beyond the ends, at a point, halfway between two, and on the level.
    assert [fit.probability(x) for x in (-ENDS, 0.2, 0.3, 0.6, ENDS)] == pytest.approx(
        [0.1, 0.1, 0.3, 0.5, 0.5]
    )
    assert Isotonic(x=(3.0,), y=(0.4,)).probability(9.0) == 0.4


@pytest.mark.parametrize("doubt", [0.0, 0.2, 0.3, 0.75, 1.0])
def test_a_fit_of_the_doubt_is_one_of_the_score(doubt: float):
    for fit in (Platt(slope=3, intercept=-1), Isotonic(x=(0.2, 0.4), y=(0.1, 0.5))):
        assert fit.turned(1.0).probability(1.0 - doubt) == pytest.approx(fit.probability(doubt))


def test_points_that_rounding_has_made_equal_are_one():
    # 1 minus both of these is 1.
    assert Isotonic(x=(1e-20, 2e-20), y=(0.1, 0.5)).turned(1.0) == Isotonic(x=(1.0,), y=(0.5,))
    many = isotonic(
        range(5 * MOST_KNOTS), [one / (5 * MOST_KNOTS) for one in range(5 * MOST_KNOTS)]
    )
    assert len(many.x) == MOST_KNOTS
    assert (many.x[0], many.x[-1]) == (0, 5 * MOST_KNOTS - 1)
    assert many.probability(2500) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        ({"fit": {"kind": "platt", "slope": float("nan"), "intercept": 0}}, "platt.slope", ""),
        ({"fit": {"kind": "platt", "slope": 1, "intercept": float("inf")}}, "platt.intercept", ""),
        ({"fit": {"kind": "platt", "slope": 1e13, "intercept": 0}}, "platt.slope", "less than"),
        ({"fit": {"kind": "beta", "a": 1}}, "fit", "'platt', 'isotonic'"),
        ({"fit": {"kind": "isotonic", "x": [], "y": []}}, "isotonic.x", "at least 1"),
        ({"fit": {"kind": "isotonic", "x": [1, 2], "y": [0.5]}}, "isotonic", "different lengths"),
        ({"fit": {"kind": "isotonic", "x": [2, 1], "y": [1, 0]}}, "isotonic", "does not rise"),
        ({"fit": {"kind": "isotonic", "x": [1, 1], "y": [1, 0]}}, "isotonic", "does not rise"),
        ({"fit": {"kind": "isotonic", "x": [1, 2], "y": [1.5, 0]}}, "isotonic.y.0", "less than"),
        (
            {"fit": {"kind": "isotonic", "x": [1, 2], "y": [float("nan"), 0]}},
            "isotonic.y.0",
            "",
        ),
        (
            {"fit": {"kind": "isotonic", "x": [1, 2, 3], "y": [0, 1, 0]}},
            "isotonic",
            "both rises and falls",
        ),
        (
            {"fit": {"kind": "isotonic", "x": list(range(MOST_KNOTS + 1)), "y": [0]}},
            "isotonic.x",
            "at most 1000",
        ),
        (
            {"fit": {"kind": "isotonic", "x": [1, 2], "y": [0, 1]}},
            "calibrations.0",
            "not more probable below",
        ),
        ({"labels": 0}, "labels", "greater than"),
        ({"tested": -1}, "tested", "greater than"),
        ({"brier": 2}, "brier", "less than"),
        ({"method": ""}, "method", "at least 1"),
        ({"session": "x" * 201}, "session", "at most 200"),
        ({"date": "today"}, "date", "pattern"),
        ({"conditions": "x"}, "conditions", "pattern"),
        ({"models": {str(one): "m" for one in range(21)}}, "models", "at most 20"),
        ({"task": "comparison"}, "task", "'answer'"),
        ({"bad": "left"}, "bad", "'below'"),
        ({"code": "x"}, "code", "no such field"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(change: dict[str, Any], where: str, said: str):
    told = {"name": "a", "calibrations": [calibration().model_dump() | change]}
    with pytest.raises(ValidationError) as caught:
        Profile.model_validate(told)
    field, problem = first_problem(caught.value)
    assert field.startswith("calibrations.0")
    assert where in field
    assert said in (phrase_in(problem, "en") if isinstance(problem, Phrase) else str(problem))


def test_each_is_there_once_and_there_are_not_too_many():
    one = calibration()
    others = [calibration(score=f"s{number}") for number in range(MOST_CALIBRATIONS)]
    for held, said in (((one, one), "two are of the same"), ((one, *others), "at most 50")):
        told = [each.model_dump() for each in held]
        with pytest.raises(ValidationError, match=said):
            Profile.model_validate({"name": "a", "calibrations": told})


def asked(*calibrations: Calibration, main: str = "m") -> RunSpec:
    return RunSpec(
        question="Who?",
        methods=(MethodSpec(name="slm"),),
        models={"main": ModelSpec(name=main)},
        calibrations=calibrations,
    )


def test_a_run_without_any_says_nothing_of_them():
    assert "calibrations" not in asked().model_dump()
    score = Score(name="slm_harmonic", value=0.3)
    assert readings(asked(), "slm", "answer", score) == ()
    assert deciding_readings(asked(calibration()), "slm", None) == ()


def test_a_reading_is_of_that_score_in_verdicts_on_what_people_labelled():
    sentence = calibration(task="sentence", score="slm_sentence")
    span = calibration(task="span", fit={"kind": "platt", "slope": 0, "intercept": 0})
    spec = asked(calibration(), span, sentence)
    score = Score(name="slm_harmonic", value=0.0)
    wrong, spans = readings(spec, "slm", "answer", score)
    # 1 / (1 + e^-1), and one half.
    assert wrong.probability == pytest.approx(0.7310585786)
    assert (spans.probability, spans.calibration) == (0.5, span)
    sentences = Score(name="slm_sentence", value=0.5)
    assert [one.calibration for one in readings(spec, "slm", "sentence", sentences)] == [sentence]
    for method, what, other in (
        ("rowen", "answer", score),
        ("slm", "sentence", score),
        ("slm", "answer", sentences),
        ("slm", "answer", score.model_copy(update={"bad": "above"})),
        ("slm", "answer", score.model_copy(update={"value": None})),
        ("slm", "answer", score.model_copy(update={"value": float("nan")})),
        ("slm", "answer", None),
    ):
        assert readings(spec, method, what, other) == (), (method, what, other)  # type: ignore[arg-type]


def test_a_reading_names_the_roles_with_another_model():
    spec = asked(calibration(models={"main": "Qwen", "judge_1": "small"}), main="SmolLM2")
    (one,) = readings(spec, "slm", "answer", Score(name="slm_harmonic", value=0.5))
    # The run has no such judge, which says nothing.
    assert one.others == ("main",)
