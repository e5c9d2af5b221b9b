"""Detectors against labels: rankings, and thresholds and calibrations fitted on a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.annotation.detectors import (
    LabelledScores,
    detector_report,
    fit_detectors,
    fitted_settings,
    labelled_scores,
    predicted,
)
from pipelines.annotation.types import Hidden, Label, ModelVerdict, Task, label_adapter
from pipelines.errors import InvalidInputError
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.run.calibrations import Isotonic, Platt
from pipelines.store import RunStore
from pipelines.store.annotations import StoredItem
from pipelines.store.tables import to_json
from tests.pipelines.annotation.bench import item, lead_session

FEW = Sampling(resamples=100)


def said(method: str, score: str, value: float, *, turned: bool = True) -> ModelVerdict:
    return ModelVerdict(
        method=method,
        verdict="doubtful",
        score=score,
        value=value,
        doubt=1 - value if turned else value,
    )


def scores_of(store: RunStore, count: int = 60) -> LabelledScores:
    """The SLM check is right above 0.4 alone; DRAD knows nothing; the last item has no label."""
    random = np.random.default_rng(3)
    items = []
    labels: dict[int, Label] = {}
    for number in range(count):
        value = round(float(random.uniform()), 3)
        hidden = Hidden(
            verdicts=(
                said("slm", "slm_harmonic", value),
                said("drad", "entity_probability", round(float(random.uniform()), 3)),
            )
        )
        body = item("answer", number).body.model_copy(update={"group": f"g{number // 2}"})
        items.append(item("answer", number, hidden=hidden, body=body))
        told: dict[str, Any] = {"task": "answer", "verdict": "wrong" if value < 0.4 else "correct"}
        labels[number] = label_adapter.validate_python(told)
    abstained = label_adapter.validate_python({"task": "answer", "verdict": "abstained"})
    lead = lead_session(store, items)
    return labelled_scores("answer", lead.items(), labels | {count - 1: abstained})


def test_scores_and_labels_of_the_same_items(store: RunStore):
    found = scores_of(store)
    assert found.methods == ("slm", "drad")
    assert found.scores.shape == (2, 59)
    assert found.names == ("slm_harmonic", "entity_probability")
    assert found.turn == pytest.approx((1.0, 1.0))
    assert len(set(found.groups)) == 30


def test_detectors_are_ranked_by_the_labels(store: RunStore):
    report = detector_report(scores_of(store), FEW)
    first, second = report.detection.rankings
    assert first["auroc"].value == 1.0
    assert second["auroc"].value is not None
    assert 0.3 < second["auroc"].value < 0.7
    assert report.curves.keys() == report.reliability.keys() == {"slm", "drad"}
    empty = labelled_scores("span", [], {})
    with pytest.raises(InvalidInputError, match="No labelled item"):
        detector_report(empty)


def test_a_threshold_is_fitted_on_one_part_and_reported_on_the_other(store: RunStore):
    found = scores_of(store)
    slm, drad = fit_detectors(found, seed=1)
    assert slm.trained + slm.tested == 59
    assert slm.threshold is not None
    assert slm.threshold == pytest.approx(0.4, abs=0.1)
    assert slm.cut == pytest.approx(1 - slm.threshold)
    assert slm.accuracy is not None
    assert slm.found is not None
    assert slm.accuracy.n == slm.tested
    assert slm.accuracy.value is not None
    assert slm.accuracy.value >= 0.9
    assert slm.quality["isotonic"].brier < slm.quality["raw"].brier
    settings = fitted_settings([slm, drad])
    assert settings["slm"] == {"threshold": round(slm.threshold, 6)}
    assert (slm.setting, drad.setting or drad.why) in {
        ("threshold", "theta_1"),
        ("threshold", "No threshold is better than chance."),
    }
    # The groups of one part are none of the other: the same split whenever it is drawn again.
    assert fit_detectors(found, seed=1) == [slm, drad]


def by_scores(*verdicts: ModelVerdict, task: Task = "answer") -> LabelledScores:
    """Labelled items with one verdict each, every other one wrong."""
    items = [
        item(task, number, hidden=Hidden(verdicts=(one,))) for number, one in enumerate(verdicts)
    ]
    stored = [
        StoredItem(
            number=number,
            key=one.key,
            task=task,
            labels=1,
            probability=None,
            gold=None,
            body=to_json(one.body) | {"group": str(number)},
            hidden=to_json(one.hidden),
        )
        for number, one in enumerate(items)
    ]
    told = ("wrong", "correct") if task == "answer" else ("major", "accurate")
    labels = {
        number: label_adapter.validate_python({"task": task, "verdict": told[number % 2]})
        for number in range(len(items))
    }
    return labelled_scores(task, stored, labels)


def test_a_score_in_the_middle_says_nothing_of_the_direction():
    values = [0.2, 0.8] * 25
    found = by_scores(*(said("slm", "slm_harmonic", value) for value in [*values, 0.5]))
    # 0.5 is its own doubt; the others add up to 1.
    assert found.turn == pytest.approx((1.0,))
    (one,) = fit_detectors(found, seed=1)
    assert one.cut is not None
    assert one.threshold == pytest.approx(1 - one.cut)


def test_doubts_of_several_scores_have_no_common_threshold():
    found = by_scores(
        *(
            said("drad", "entity_probability", value)
            if number < 40
            else said("drad", "entity_entropy", 9 * value, turned=False)
            for number, value in enumerate([0.2, 0.8] * 40)
        )
    )
    assert found.mixed == {"drad"}
    (one,) = fit_detectors(found, seed=1)
    assert (one.threshold, one.platt) == (None, None)
    assert "entity_probability, entity_entropy" in one.why
    assert fitted_settings([one]) == {}


def test_a_verdict_without_a_number_is_not_fitted_on():
    # The score knows right from wrong; the verdicts without one would say the contrary.
    scored = [said("slm", "slm_harmonic", value) for value in [0.2, 0.8] * 30]
    bare = [
        ModelVerdict(method="slm", verdict="x", doubt=doubt, score="slm_harmonic")
        for doubt in [0.0, 1.0] * 30
    ]
    found = by_scores(*scored, *bare)
    assert found.scores.shape == (1, 120)
    (one,) = fit_detectors(found, seed=1)
    assert one.trained + one.tested == 60
    assert one.accuracy is not None
    assert one.accuracy.value == 1.0
    # Where no verdict has a number, there are only those.
    (only,) = fit_detectors(by_scores(*bare), seed=1)
    assert only.trained + only.tested == 60


def test_verdicts_on_something_else_than_what_was_labelled_are_known():
    values = [0.2, 0.8] * 20
    told: list[tuple[dict[str, Any], bool]] = [
        ({"what": "sentence", "at": (0, 3)}, False),
        ({"what": "entity", "at": (0, 3)}, True),
        ({"what": "answer"}, True),
        # Sessions of before do not say it.
        ({"at": (0, 3)}, False),
        ({}, True),
    ]
    for more, indirect in told:
        verdicts = [said("slm", "x", value).model_copy(update=more) for value in values]
        found = by_scores(*verdicts, task="sentence")
        assert (found.indirect == {"slm"}) is indirect, more
        (one,) = fit_detectors(found, seed=1)
        assert (one.platt is not None, one.indirect) == (True, indirect)
    of_answers = by_scores(*(said("slm", "x", value) for value in values))
    assert of_answers.indirect == frozenset()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_platt_is_the_same_on_every_scale(scale: float):
    random = np.random.default_rng(5)
    scores = np.round(random.uniform(size=80), 3)
    labels = (scores + random.normal(scale=0.3, size=80) > 0.5).astype(float)
    groups = tuple(map(str, range(80)))
    one, other = (
        fit_detectors(LabelledScores(("m",), row[None], labels, groups, ("x",), (None,)), seed=1)[0]
        for row in (scores, scores * scale)
    )
    assert one.platt is not None
    assert other.platt is not None
    wanted = predicted(one.platt, [0.0, 0.4, 1.0])
    assert predicted(other.platt, [0.0, 0.4 * scale, scale]) == pytest.approx(wanted, abs=1e-4)


def test_scores_on_no_scale_are_not_fitted_on():
    scores = np.concatenate([np.linspace(0, 1, 40), [1e300, -np.inf, np.nan]])
    labels = (np.arange(43) % 2).astype(float)
    groups = tuple(map(str, range(43)))
    (one,) = fit_detectors(LabelledScores(("m",), scores[None], labels, groups, ("x",), (None,)))
    assert one.trained + one.tested == 40
    assert one.platt is not None
    # Scores that rounding alone tells apart say nothing.
    same = np.array([0.1 + place * 1e-17 for place in range(40)], dtype=np.float64)
    (one,) = fit_detectors(
        LabelledScores(("m",), same[None], labels[:40], groups[:40], ("x",), (None,))
    )
    assert one.platt is not None
    low, high = predicted(one.platt, [same[0], same[-1]])
    assert low == pytest.approx(high, abs=1e-6)


def test_too_few_items_are_said_to_be_too_few(store: RunStore):
    (slm, _) = fit_detectors(scores_of(store, 8))
    assert slm.threshold is None
    assert "too few" in slm.why
    assert fitted_settings([slm]) == {}


def test_systems_without_a_method_of_their_name_get_no_settings():
    found = LabelledScores(
        methods=("SLM, small",),
        scores=np.linspace(0, 1, 40)[None],
        labels=(np.linspace(0, 1, 40) > 0.5).astype(float),
        groups=tuple(str(one) for one in range(40)),
        names=("slm_harmonic",),
        turn=(None,),
    )
    (one,) = fit_detectors(found)
    assert one.threshold == one.cut
    assert (one.setting, fitted_settings([one])) == ("", {})


def test_calibrations_by_hand():
    assert predicted(Platt(slope=2, intercept=-1), [0.5, 1000])[0] == pytest.approx(0.5)
    # Halfway between two points of the function, and beyond its ends.
    isotonic = Isotonic(x=(0.2, 0.4), y=(0.1, 0.5))
    assert predicted(isotonic, [0.0, 0.3, 1.0]) == pytest.approx([0.1, 0.3, 0.5])


def test_platt_is_not_certain_of_a_small_sample():
    # Ten items that a threshold separates: Platt's targets are 6/7 and 1/7.
    scores = np.repeat([0.0, 1.0], 20)
    found = LabelledScores(("m",), scores[None], scores, tuple(map(str, range(40))), ("",), (None,))
    (one,) = fit_detectors(found, seed=2)
    assert one.platt is not None
    # Of `right` and `wrong` items the targets are 1/(right + 2) and (wrong + 1)/(wrong + 2).
    low, high = predicted(one.platt, [0.0, 1.0])
    right, wrong = 1 / low - 2, 1 / (1 - high) - 2
    assert (right, wrong) == pytest.approx((round(right), round(wrong)), abs=0.02)
    assert right + wrong == pytest.approx(one.trained, abs=0.02)
