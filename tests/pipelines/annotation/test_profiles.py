"""Fitted thresholds become a profile, over the settings with which the methods ran."""

from __future__ import annotations

import pytest

from pipelines.annotation.detectors import FittedDetector
from pipelines.annotation.profiles import Behind, fitted_profile, methods_behind, savable
from pipelines.annotation.types import Hidden, ItemBody, ItemPlace, ModelVerdict, SessionItem
from pipelines.errors import InvalidInputError
from pipelines.evaluation.statistics.agreement import share
from pipelines.run.spec import MethodSpec
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
    assert "fitted on 30 items, accuracy 0.90 on 30 others" in found.description
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
    with pytest.raises(InvalidInputError, match="no fitted threshold"):
        fitted_profile("Mine", "Clinton", "answer", [fitted("unknown")], BEHIND)
    both = [fitted("slm"), fitted("SLM, small")]
    with pytest.raises(InvalidInputError, match="Two of the chosen"):
        fitted_profile("Mine", "Clinton", "answer", both, BEHIND)
    # A threshold outside of the setting's range.
    assert savable([fitted("drad", "entity_probability", 7.0)], BEHIND) == []


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
    ]
    found = methods_behind(store, lead_session(store, items).whole())
    assert found["drad"] == Behind(method="drad", settings=ran["drad"])
    assert found["slm small"] == Behind(method="slm", settings={"threshold": 0.7})
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
    assert found["slm"] == Behind(method="slm", settings={"mean": "arithmetic"})
    specs = store.specs("me", [*runs, "gone"])
    assert list(specs) == runs
    assert store.specs("somebody", runs) == {}
