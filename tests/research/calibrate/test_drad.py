"""theta_2 from answers made by hand, and answers read through the service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from math import log
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, RefusedRequestError, VeriscopeError
from pipelines.methods.drad import Drad
from pipelines.methods.drad.settings import calibrated_theta_2
from pipelines.run.events import ModelSpec
from research.calibrate.drad import (
    SampleQuestion,
    answer_all,
    fit,
    is_right,
    label,
    sample_questions,
    theta_2_of,
)
from tests.research.calibrate.examples import RIGHT, WRONG, answered, reading, two_halves
from tests.scripted.fakes import FakeModel

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
    with pytest.raises(InvalidInputError, match="right and wrong ones are needed"):
        fit([answered(reading(WRONG, 0.9, 1.0)), answered(reading(RIGHT, 0.9, 1.0))])


def shipped() -> dict[str, Any]:
    """The entry for the default model and its entropies over ten tokens."""
    table = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return table[ModelSpec().name]["10"]["theta_2"]["en"]


def test_the_shipped_file_says_where_its_value_comes_from():
    theta_2 = shipped()
    assert theta_2["unit"] == "nats"
    assert theta_2["model"].startswith("SmolLM2-135M-Instruct (")
    assert theta_2["entities"] == theta_2["report"]["fitted"]["entities"]
    assert all(theta_2[key] for key in ("data", "fitted_on", "criterion", "date", "recognizer"))


def test_the_shipped_value_can_be_reached():
    theta_2 = shipped()
    # Ten alternatives and the rest as one outcome: no entropy is above ln 11.
    assert "k = 10," in theta_2["model"]
    assert 0 < theta_2["value"] < log(11)
    assert theta_2["value"] == round(theta_2["value"], 2)


@pytest.mark.parametrize("half", ["fitted", "reported"])
def test_the_shipped_report_is_consistent(half: str):
    report = shipped()["report"][half]
    assert 0 < report["wrong"] < report["entities"] <= report["entities_read"]
    assert report["base_rate"] == round(report["wrong"] / report["entities"], 4)
    for name in ("probability_mean", "entropy_max"):
        assert 0 <= report[name]["auroc"] <= 1
        assert 0 < report[name]["average_precision"] <= 1
        assert -1 <= report[name]["youden"] <= 1
        assert report[name]["flagged"] <= report["either"]["flagged"] <= report["entities"]


def test_drad_uses_the_shipped_value_for_this_model_and_k_alone():
    assert calibrated_theta_2(ModelSpec().name, "10", "en") == shipped()["value"]
    assert calibrated_theta_2(ModelSpec().name, "full", "en") is None
    assert calibrated_theta_2("another", "10", "en") is None
    defaults = Drad().settings()
    assert defaults.theta_2 is None
    assert list(defaults.effective_default("theta_2").values()) == [shipped()["value"]]
    assert Drad().settings({"use_entropy": False}).effective_default("theta_2") == {}


CANADA = SampleQuestion(id="en-000", text="What is the capital of Canada?", evidence=("Ottawa",))
MODEL = ModelSpec(kind="scripted", name="fake")


@pytest.fixture
async def service_of(tmp_path: Path) -> AsyncIterator:
    services: list[Service] = []

    def make(model: FakeModel) -> Service:
        libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
        pool = ModelPool(lambda spec, key, progress: model)
        services.append(Service(tmp_path, pool=pool, libraries=libraries))
        return services[-1]

    yield make
    for service in services:
        await service.aclose()


def test_the_sample_questions_come_with_what_proves_an_entity_right():
    questions = sample_questions()
    assert [question.id for question in questions] == [
        f"en-{number:03}" for number in range(1, len(questions) + 1)
    ]
    first = questions[0]
    assert first.text == "Where was Bill Clinton born and raised?"
    title, article, *answers = first.evidence
    assert title == "Bill Clinton"
    assert "Arkansas" in article
    assert answers == [
        "Hope, Arkansas",
        "Hope and Hot Springs, Arkansas",
        "Hope and then Hot Springs",
        "Hope and then in Hot Springs",
        "Hope in Arkansas",
    ]


async def test_the_draft_alone_is_written_and_every_entity_read(
    service_of, capsys: pytest.CaptureFixture[str]
):
    model = FakeModel("Toronto is the capital of Canada since 1857.")
    answers = await answer_all(service_of(model), MODEL, [CANADA])
    assert [(r.text, r.repeats) for r in answers[0].readings] == [
        ("Toronto", False),
        ("Canada", True),
        ("1857", False),
    ]
    assert answers[0].readings[0].entropies == (1.0,)
    assert answers[0].top_k == {None}
    # P(E) = exp(-0.5) = 0.61 at most: whatever triggered would have led to a second call.
    assert len(model.asked) == 1
    assert model.asked[0].reproducible
    assert "1/1" in capsys.readouterr().err


async def test_a_failed_answer_is_not_passed_over(service_of):
    model = FakeModel(RefusedRequestError("The text is too long.", remedy="Shorten it."))
    with pytest.raises(VeriscopeError, match="too long"):
        await answer_all(service_of(model), MODEL, [CANADA])
