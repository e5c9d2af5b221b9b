"""Fitted thresholds become a profile, over the settings with which the methods ran."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.annotation.detectors import (
    Behind,
    FitQuality,
    FittedDetector,
    fitted_profile,
    methods_behind,
    savable,
)
from pipelines.annotation.types import Hidden, ItemBody, ItemPlace, ModelVerdict, SessionItem
from pipelines.engine.calibrations import conditions
from pipelines.engine.profiles import profile_text, read_profile
from pipelines.errors import InvalidInputError
from pipelines.evaluation.statistics.agreement import share
from pipelines.run.calibrations import Isotonic, Platt
from pipelines.run.events import MethodSpec
from pipelines.store import RunStore
from pipelines.store.exchange import export_lines
from tests.pipelines.annotation.bench import item, lead_session, recorded
from tests.pipelines.evaluation.bench import spec, system

BEHIND = {
    "slm": Behind(method="slm"),
    "SLM, small": Behind(method="slm", settings={"mean": "arithmetic"}),
    "drad": Behind(method="drad"),
}


def fitted(
    method: str, score: str = "slm_harmonic", threshold: float | None = 0.4
) -> FittedDetector:
    return FittedDetector(
        method=method,
        score=score,
        trained=30,
        tested=30,
        cut=None if threshold is None else 1 - threshold,
        threshold=threshold,
        accuracy=share(27, 30),
    )


def placed(place: ItemPlace, method: str, number: int = 0) -> SessionItem:
    verdict = ModelVerdict(method=method, verdict="doubtful", doubt=0.5)
    body = ItemBody(task="answer", text=f"Text {number}", place=place)
    return item("answer", number, body=body, hidden=Hidden(verdicts=(verdict,)))


def test_a_threshold_becomes_the_setting_of_its_method():
    found = fitted_profile("Mine", "Clinton", "answer", [fitted("slm")], BEHIND)
    assert found.settings == {"slm": {"threshold": 0.4}}
    assert found.origin is not None
    assert (found.origin.data_set, found.origin.study) == ("Clinton", "threshold (slm)")
    assert (found.origin.system, found.origin.held_out) == ("slm", 0.9)
    said = "slm, fitted on 30 items: threshold = 0.4, accuracy 0.90 on 30 others"
    assert said in found.description
    both = [fitted("slm"), fitted("drad", "entity_probability", 0.55)]
    found = fitted_profile("Mine", "Clinton", "answer", both, BEHIND)
    assert found.settings["drad"] == {"theta_1": 0.55}
    assert found.origin is not None
    assert found.origin.held_out is None


def test_the_settings_of_the_runs_stay():
    found = fitted_profile("Mine", "Clinton", "answer", [fitted("SLM, small")], BEHIND)
    assert found.settings == {"slm": {"threshold": 0.4, "mean": "arithmetic"}}


def test_what_cannot_be_saved_is_refused():
    assert savable([fitted("slm", threshold=None), fitted("unknown")], BEHIND) == []
    with pytest.raises(InvalidInputError, match="nothing fitted to save"):
        fitted_profile("Mine", "Clinton", "answer", [fitted("unknown")], BEHIND)
    both = [fitted("slm"), fitted("SLM, small")]
    with pytest.raises(InvalidInputError, match="Two of the chosen"):
        fitted_profile("Mine", "Clinton", "answer", both, BEHIND)
    # A threshold outside of the setting's range.
    assert savable([fitted("drad", "entity_probability", 7.0)], BEHIND) == []


# --- Calibrations ---------------------------------------------------------------------------------

SAME = Behind(
    method="slm", conditions={"threshold": "0123456789abcdef"}, models={"main": "SmolLM2"}
)


def calibrated(**more: Any) -> FittedDetector:
    """P(error) of the doubt, which is 1 minus the score."""
    told: dict[str, Any] = {
        "platt": Platt(slope=2, intercept=-1),
        "isotonic": Isotonic(x=(0.2, 0.4), y=(0.1, 0.5)),
        "quality": {"platt": FitQuality(brier=0.125, calibration_error=0.05)},
        "turn": 1.0,
    }
    return fitted("slm").model_copy(update=told | more)


def test_a_calibration_is_kept_beside_the_threshold_as_one_of_the_score():
    found = fitted_profile("Mine", "Clinton", "sentence", [calibrated()], {"slm": SAME})
    assert found.settings == {"slm": {"threshold": 0.4}}
    (one,) = found.calibrations
    # P(error) = 1 / (1 + exp(-(2 (1 - score) - 1))) = 1 / (1 + exp(-(1 - 2 score))).
    assert one.fit == Platt(slope=-2, intercept=1)
    assert one.fit.probability(1 - 0.75) == pytest.approx(
        Platt(slope=2, intercept=-1).probability(0.75)
    )
    assert (one.key, one.bad) == (("slm", "slm_harmonic", "sentence"), "below")
    assert (one.labels, one.tested, one.session) == (30, 30, "Clinton")
    assert (one.brier, one.calibration_error) == (0.125, 0.05)
    assert (one.setting, one.conditions) == ("threshold", "0123456789abcdef")
    assert one.models == {"main": "SmolLM2"}
    assert "platt calibration of slm_harmonic, Brier score 0.125 on 30 others" in found.description
    assert found.origin is not None
    assert found.origin.study == "threshold (slm), platt (slm)"
    assert read_profile(profile_text(found)) == found


def test_either_curve_is_kept_or_none():
    def kept(kind: Any, **more: Any) -> Any:
        given = [calibrated(**more)]
        found = fitted_profile("Mine", "Clinton", "answer", given, {"slm": SAME}, kind)
        return [(one.fit, one.bad) for one in found.calibrations]

    assert kept(None) == []
    ((curve, bad),) = kept("isotonic")
    assert (curve.x, curve.y, bad) == (pytest.approx((0.6, 0.8)), (0.5, 0.1), "below")
    # A score that is its own doubt.
    assert kept("isotonic", turn=None) == [(Isotonic(x=(0.2, 0.4), y=(0.1, 0.5)), "above")]


def test_a_calibration_is_kept_without_a_threshold():
    # No threshold is better than chance, or it is outside of the setting's range.
    for threshold in (None, 7.0):
        given = calibrated(score="x", threshold=threshold)
        found = fitted_profile("Mine", "Clinton", "answer", [given], {"slm": SAME})
        assert found.settings == {}
        assert [one.score for one in found.calibrations] == ["x"]
        assert found.origin is not None
        assert (found.origin.metric, found.origin.held_out) == ("", None)
        with pytest.raises(InvalidInputError, match="nothing fitted"):
            fitted_profile("Mine", "Clinton", "answer", [given], {"slm": SAME}, None)


@pytest.mark.parametrize(
    ("more", "behind"),
    [
        # Verdicts on the whole text, held against labels of its sentences.
        ({"indirect": True}, SAME),
        # Too few items, or several scores.
        ({"platt": None}, SAME),
        # A score on no scale, from an imported session.
        ({"turn": 1e300}, SAME),
        # A method that gives verdicts without numbers.
        ({"score": ""}, SAME),
        # Runs with different settings, or that are gone.
        ({}, Behind(method="slm")),
        ({}, Behind(method="slm", conditions={"": "0123456789abcdef"})),
    ],
)
def test_what_means_nothing_for_a_score_is_not_kept(more: dict[str, Any], behind: Behind):
    (one,) = savable([calibrated(**more)], {"slm": behind})
    assert (one.threshold, one.calibrated) == ("threshold", False)
    found = fitted_profile("Mine", "Clinton", "answer", [calibrated(**more)], {"slm": behind})
    assert found.calibrations == ()


def test_runs_with_other_wordings_have_no_conditions_in_common(store: RunStore):
    runs = []
    for number, prompts in enumerate(({}, {"direct": {"en": {"system": "Be brief."}}})):
        header = recorded().header
        spec = header.spec.model_copy(
            update={"methods": (MethodSpec(name="direct"),), "prompts": prompts}
        )
        store.create(
            f"w-{number}", "me", header.model_copy(update={"run": f"w-{number}", "spec": spec})
        )
        runs.append(f"w-{number}")
    items = [placed(ItemPlace(run=run), "direct", n) for n, run in enumerate(runs)]
    assert methods_behind(store, lead_session(store, items).whole())["direct"].conditions == {}
    (one, _) = items
    alone = methods_behind(store, lead_session(store, [one]).whole())["direct"]
    assert alone.conditions == {"": conditions("direct", {}, {}, "")}


def test_the_methods_behind_the_names(store: RunStore):
    # A recorded run, one that is gone, and the systems of an evaluation.
    trace = recorded()
    run = store.import_run(list(export_lines(trace)), "me")
    ran = {one.name: one.settings for one in trace.header.spec.methods}
    asked = spec(system("slm small", threshold=0.7), system("direct"))
    store.evaluations.create("e", "me", "E", asked.model_dump(mode="json"), [], [])
    items = [
        placed(ItemPlace(run=run), "drad", 0),
        placed(ItemPlace(run="gone"), "slm", 1),
        placed(ItemPlace(run="x", evaluation="e"), "slm small", 2),
        placed(ItemPlace(run="y", evaluation="deleted"), "another", 3),
        placed(ItemPlace(run="gone"), "luq", 4),
    ]
    found = methods_behind(store, lead_session(store, items).whole())
    drad, small = found["drad"], found["slm small"]
    assert (drad.method, drad.settings) == ("drad", ran["drad"])
    assert drad.conditions["theta_1"] == conditions("drad", ran["drad"], {}, "theta_1")
    assert drad.models["main"] == trace.header.spec.models["main"].name
    assert (small.method, small.settings) == ("slm", {"threshold": 0.7})
    assert small.conditions["threshold"] == conditions("slm", {}, {}, "threshold")
    # Of a run that is gone only the method is known, and not whether it ran as in the other one.
    assert found["luq"] == Behind(method="luq")
    assert found["slm"].conditions == {}
    assert found["slm"].settings == ran["slm"]
    assert "another" not in found


def test_settings_that_differed_between_runs_are_left_to_the_defaults(store: RunStore):
    runs = []
    for tau in (0.5, 0.6):
        header = recorded().header
        methods = (MethodSpec(name="slm", settings={"mean": "arithmetic", "threshold": tau}),)
        changed = header.model_copy(
            update={
                "run": f"run-{tau}",
                "spec": header.spec.model_copy(update={"methods": methods}),
            }
        )
        store.create(f"run-{tau}", "me", changed)
        runs.append(f"run-{tau}")
    items = [placed(ItemPlace(run=run), "slm", n) for n, run in enumerate(runs)]
    found = methods_behind(store, lead_session(store, items).whole())
    assert (found["slm"].method, found["slm"].settings) == ("slm", {"mean": "arithmetic"})
    # They differed in the threshold alone, which decides no score.
    told = conditions("slm", {"mean": "arithmetic"}, {}, "threshold")
    assert found["slm"].conditions == {"threshold": told}
    specs = store.specs("me", [*runs, "gone"])
    assert list(specs) == runs
    assert store.specs("somebody", runs) == {}
