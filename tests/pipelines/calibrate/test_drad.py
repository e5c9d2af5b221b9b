"""Labels of entities and the derivation of theta_2, by hand; and the value that is shipped."""

import json
from math import log
from pathlib import Path

import pytest

from pipelines.calibrate.drad import fit, is_right, label, theta_2_of
from pipelines.errors import InvalidInputError
from pipelines.methods.drad import Drad
from tests.pipelines.calibrate.examples import RIGHT, WRONG, answered, reading, two_halves

SHIPPED = Path(__file__).parents[3] / "assets" / "calibration" / "drad.json"
ARTICLE = (
    "Bill Clinton",
    "Clinton, the 42nd president, was born in Hope, Arkansas. He won 1,200 votes in Queen"
    " Victoria's time. The US agreed.",
)


@pytest.mark.parametrize(
    "entity",
    [
        "Hope",
        "Hope, Arkansas",
        "HOPE ARKANSAS",
        "bill clinton",
        "the 42nd president",
        "1200",
        "Victoria",
        "Queen Victoria",
        "the US",
    ],
)
def test_an_entity_that_the_evidence_names_is_right(entity: str):
    assert is_right(entity, ARTICLE)


@pytest.mark.parametrize(
    "entity",
    [
        "Hop",  # whole words only
        "Hope Springs",
        "William Clinton",
        "42",
        "200",
        "Clinton Clinton",  # the end of one text and the beginning of the next
        "...",
    ],
)
def test_an_entity_that_the_evidence_does_not_name_is_wrong(entity: str):
    assert not is_right(entity, ARTICLE)


def test_repetitions_and_unmeasured_entities_do_not_count():
    answers = [
        answered(
            reading(RIGHT, 0.9, 0.5),
            reading(WRONG, 0.9, 0.5),
            reading(WRONG, 0.9, 0.5, repeats=True),
            reading(WRONG, None, 0.5),
            reading(WRONG, 0.9, None),
        )
    ]
    assert [(e.reading.text, e.wrong) for e in label(answers)] == [(RIGHT, False), (WRONG, True)]


def test_theta_2_is_fitted_on_the_even_answers_alone():
    found = fit(two_halves())
    # Right 0.1 and 0.2, wrong 1.0 and 2.0: the middle of [0.2, 1.0).
    assert found["value"] == 0.6
    assert found["entities"] == 4
    fitted = found["report"]["fitted"]
    assert fitted["entropy_max"]["youden"] == 1.0
    assert fitted["entities_read"] == 5
    assert fitted["repeating_the_question"] == 1


def test_the_odd_answers_report():
    reported = fit(two_halves())["report"]["reported"]
    assert reported == {
        "questions": 2,
        "entities_read": 5,
        "repeating_the_question": 0,
        "entities": 5,
        "wrong": 3,
        "base_rate": 0.6,
        # Wrong 0.8, 0.2, 0.1 against right 0.9, 0.5: 5 of 6 pairs; order T T F T F.
        "probability_mean": {
            "auroc": 0.8333,
            "average_precision": 0.9167,
            "theta_1": 0.6,
            "flagged": 3,  # 0.5, 0.2, 0.1: 2/3 + 1/2 - 1
            "youden": 0.1667,
        },
        # Wrong 0.9, 0.5, 1.5 against right 0.3, 0.7: 5 of 6 pairs; order T T F T F.
        "entropy_max": {
            "auroc": 0.8333,
            "average_precision": 0.9167,
            "theta_2": 0.6,
            "flagged": 3,  # 0.7, 0.9, 1.5: 2/3 + 1/2 - 1
            "youden": 0.1667,
            # In [0.7, 0.9) two of three wrong ones and no right one are above, J = 2/3.
            "hindsight": {"theta_2": 0.8, "youden": 0.6667},
        },
        "either": {"flagged": 4, "youden": 0.5},  # all wrong ones and one of two right
    }


def test_theta_2_is_rounded_to_hundredths():
    entities = label([answered(reading(RIGHT, 0.9, 0.111), reading(WRONG, 0.9, 0.222))])
    assert theta_2_of(entities) == 0.17  # 0.1665


def test_entropies_that_tell_nothing_give_no_threshold():
    entities = label([answered(reading(RIGHT, 0.9, 2.0), reading(WRONG, 0.9, 1.0))])
    with pytest.raises(InvalidInputError, match="No entropy threshold"):
        theta_2_of(entities)


def test_right_and_wrong_entities_are_needed():
    with pytest.raises(InvalidInputError, match="nothing to tell apart"):
        fit([answered(reading(WRONG, 0.9, 1.0)), answered(reading(RIGHT, 0.9, 1.0))])


def test_the_shipped_file_says_where_its_value_comes_from():
    theta_2 = json.loads(SHIPPED.read_text(encoding="utf-8"))["theta_2"]
    assert theta_2["unit"] == "nats"
    assert theta_2["model"].startswith("SmolLM2-135M-Instruct (")
    assert theta_2["entities"] == theta_2["report"]["fitted"]["entities"]
    assert all(theta_2[key] for key in ("data", "fitted_on", "criterion", "date", "recognizer"))


def test_the_shipped_value_can_be_reached():
    theta_2 = json.loads(SHIPPED.read_text(encoding="utf-8"))["theta_2"]
    # Ten alternatives and the rest as one outcome: no entropy is above ln 11.
    assert "k = 10," in theta_2["model"]
    assert 0 < theta_2["value"] < log(11)
    assert theta_2["value"] == round(theta_2["value"], 2)


@pytest.mark.parametrize("half", ["fitted", "reported"])
def test_the_shipped_report_is_consistent(half: str):
    report = json.loads(SHIPPED.read_text(encoding="utf-8"))["theta_2"]["report"][half]
    assert 0 < report["wrong"] < report["entities"] <= report["entities_read"]
    assert report["base_rate"] == round(report["wrong"] / report["entities"], 4)
    for name in ("probability_mean", "entropy_max"):
        assert 0 <= report[name]["auroc"] <= 1
        assert 0 < report[name]["average_precision"] <= 1
        assert -1 <= report[name]["youden"] <= 1
        assert report[name]["flagged"] <= report["either"]["flagged"] <= report["entities"]


def test_drad_uses_the_shipped_value():
    value = json.loads(SHIPPED.read_text(encoding="utf-8"))["theta_2"]["value"]
    assert Drad().settings().theta_2 == value
