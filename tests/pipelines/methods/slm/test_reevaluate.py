"""What the judges said, weighed again with other settings and without a call."""

from itertools import combinations, product
from math import sqrt
from typing import Any

import pytest

from pipelines.errors import InvalidInputError, UnreachableError
from pipelines.methods.slm import Slm
from pipelines.methods.slm import scores as slm_scale
from pipelines.methods.slm.scores import (
    history_of,
    response_score,
    shipped_panel,
    shipped_scale,
    shipped_thresholds,
)
from pipelines.methods.slm.settings import MEANS, Scaling, SlmSettings
from pipelines.models.providers import BUILT_IN
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, ModelCalled, Trace
from pipelines.run.findings import JudgeScale
from tests.scripted.slm import JudgeModel, Scored, again, check, decided, says

HISTORY = {"a": {"mu": 0.8, "sigma": 0.1, "n": 30}}


EVERYTHING = list(
    product(MEANS, ("phi", "epsilon"), (True, False), ("f1", "precision"), (None, 0.3, 0.9))
)


async def test_every_mean_and_threshold_is_decided_again_as_a_run_with_them_would(
    calibrated: JudgeScale, thresholds: dict[str, Any]
):
    judges = (JudgeModel("a", says(0.9, 0.3, 0.6)), JudgeModel("b", says(0.6, 0.5, 0.4)))
    outcome = await check(*judges)
    history = {name: {"mu": 0.5, "sigma": 0.3, "n": 30} for name in "ab"}
    calls = sum(len(judge.asked) for judge in judges)
    for mean, positive, normalise, tuned_for, threshold in EVERYTHING:
        settings = {
            "mean": mean,
            "positive": positive,
            "normalise": normalise,
            "tuned_for": tuned_for,
            "threshold": threshold,
            "history": history,
        }
        decision = decided(outcome, **settings)
        scaling = Scaling(normalise=normalise, lift=positive)
        scores = {score.name: score.value for score in decision.response}
        assert [scores[f"slm_{each}"] for each in MEANS] == [
            response_score(decision.averages, each, scaling) for each in MEANS
        ]
        limit = thresholds[tuned_for][scaling.key][mean] if threshold is None else threshold
        assert decision.threshold == limit
        borrowed = "borrowed" if normalise else "calibrated"
        assert decision.threshold_source == (borrowed if threshold is None else "set")
        headline = decision.response[0]
        assert headline.value is not None
        assert headline.value == scores[f"slm_{mean}"]
        assert decision.verdict == ("supported" if headline.value > limit else "doubtful")
        assert headline.flagged is (decision.verdict == "doubtful")
    assert sum(len(judge.asked) for judge in judges) == calls


async def test_a_score_on_its_threshold_is_not_supported():
    outcome = await check(JudgeModel("a", lambda _: 0.75), normalise=False, threshold=0.75)
    assert decided(outcome, normalise=False, threshold=0.75).verdict == "doubtful"
    assert decided(outcome, normalise=False, threshold=0.749).verdict == "supported"


async def test_a_judge_is_measured_against_enough_of_its_own_history():
    outcome = await check(JudgeModel("a", says(0.9, 0.7)))
    plain = decided(outcome)
    assert plain.panel.judges[0].scale.source == "neutral"
    measured = decided(outcome, history=HISTORY)
    assert measured.panel.judges[0].scale == JudgeScale(mu=0.8, sigma=0.1, n=30, source="history")
    # (0.9 - 0.8) / 0.1 and (0.7 - 0.8) / 0.1
    assert measured.z == ((pytest.approx(1.0),), (pytest.approx(-1.0),))
    few = decided(outcome, history={"a": {"mu": 0.8, "sigma": 0.1, "n": 29}})
    assert few.z == plain.z
    constant = decided(outcome, history={"a": {"mu": 0.8, "sigma": 0.0, "n": 99}})
    assert constant.z == plain.z
    assert decided(outcome, history={"b": HISTORY["a"]}).z == plain.z


async def test_a_text_counts_against_no_measured_probabilities():
    outcome = await check(JudgeModel("a", says("yes", "no", "no")))
    decision = decided(outcome, history=HISTORY)
    assert decision.z == ((pytest.approx(sqrt(3)),), (pytest.approx(-sqrt(3)),))


async def test_a_shipped_scale_is_recorded_with_the_run(monkeypatch: pytest.MonkeyPatch):
    entry = {"mu": 0.4, "sigma": 0.2, "n": 99, "prompt": load_prompts("slm").hash}
    monkeypatch.setattr(slm_scale, "calibration", lambda _: {"judges": {"a": {"en": entry}}})
    scored = Scored(await check(JudgeModel("a", lambda _: 0.6)))
    monkeypatch.undo()
    scale = JudgeScale(mu=0.4, sigma=0.2, n=99, source="calibrated")
    assert scored.panel.judges[0].scale == scale
    assert scored.z[0] == (pytest.approx(1.0),)
    # No threshold was shipped then, so nothing follows, whatever ships now.
    assert (scored.threshold, scored.threshold_source) == (None, "missing")
    assert scored.verdict == "unchecked"


def test_a_scale_holds_for_its_prompt_and_language_alone(monkeypatch: pytest.MonkeyPatch):
    entry = {"mu": 0.4, "sigma": 0.2, "n": 99, "prompt": "another"}
    monkeypatch.setattr(slm_scale, "calibration", lambda _: {"judges": {"a": {"en": entry}}})
    assert shipped_scale("a", "en").source == "neutral"
    entry["prompt"] = load_prompts("slm").hash
    assert shipped_scale("a", "en").source == "calibrated"
    assert shipped_scale("a", "zh").source == "neutral"


async def test_history_counts_every_statement_once():
    judge = JudgeModel("a", says(0.9, 0.5))
    runs = [await check(judge), await check(judge), await check(JudgeModel("b", says("yes", "no")))]
    history = history_of([run.trace for run in runs], "en")
    # Mean 0.7, both 0.2 from it. A text is no probability.
    assert set(history) == {"a"}
    assert (history["a"].n, history["a"].source) == (2, "history")
    assert (history["a"].mu, history["a"].sigma) == (pytest.approx(0.7), pytest.approx(0.2))
    assert history_of([run.trace for run in runs], "zh") == {}
    settings = Slm().settings({"history": {n: s.model_dump() for n, s in history.items()}})
    assert settings.history["a"].n == 2


@pytest.mark.parametrize(
    ("before", "after", "diverges_at"),
    [
        ({}, {"subject": "given", "answer": "x"}, 1),
        ({"subject": "given", "answer": "A."}, {"subject": "given", "answer": "B."}, 1),
        ({}, {"max_tokens": 64}, 0),
        ({}, {"answer": "unused"}, None),
        ({}, {"passages": 5}, 1),
        ({}, {"context": "none"}, 1),
        ({"context": "none"}, {"context": "none", "passages": 5}, None),
        ({"whole_response": False}, {}, 1),
        ({}, {"whole_response": False}, None),
    ],
)
async def test_what_was_never_asked_needs_a_new_run(
    before: dict, after: dict, diverges_at: int | None
):
    outcome = await check(JudgeModel("a", lambda _: 0.5), **before)
    result = again(outcome, **after)
    assert result.diverges_at == diverges_at
    assert (result.answer is None) == (diverges_at is not None)


async def test_cells_that_the_settings_do_not_ask_for_leave_no_remark():
    gone = UnreachableError("The judge is gone.", remedy="Start it.")
    outcome = await check(JudgeModel("a", says(0.9, 0.3, gone)))
    assert outcome.answer.flags == ("judge_failed",)
    answer = again(outcome, whole_response=False).answer
    assert answer is not None
    assert answer.flags == ()


async def test_a_run_that_was_stopped_has_what_it_had():
    outcome = await check(JudgeModel("a", says(0.9, 0.3)))
    whole = outcome.trace.events
    calls = [place for place, e in enumerate(whole) if isinstance(e, ModelCalled)]
    # The draft and the first judged sentence.
    outcome.trace = Trace(events=whole[: calls[1] + 1])
    stopped = again(outcome)
    assert (stopped.answer, stopped.diverges_at) == (None, 1)
    assert Scored(stopped).matrix == ((0.9,), (None,))


def test_the_settings_offered_on_a_recorded_run_exist():
    assert set(SlmSettings.REPLAYABLE) < set(SlmSettings.model_fields)


def test_thresholds_are_shipped_for_everything_that_can_be_chosen():
    names = ["SmolLM2-135M-Instruct", *(s.name for s in BUILT_IN if s.kind == "judge")]
    for size in range(1, len(JUDGES) + 1):
        for panel in combinations(names, size):
            assert shipped_panel(panel)["judges"] == sorted(panel)
            shipped = shipped_thresholds(panel)
            for name, key, mean in product(("f1", "precision"), ("phi", "epsilon", "raw"), MEANS):
                assert isinstance(shipped[name][key][mean], float)
    assert {shipped_scale(name, "en").source for name in names} == {"calibrated"}


def test_unknown_judges_borrow_the_thresholds_of_the_best_panel(monkeypatch: pytest.MonkeyPatch):
    panels = [
        {"judges": [name], "thresholds": {"f1": area}, "report": {"auroc": {"harmonic": area}}}
        for name, area in (("a", 0.6), ("b", 0.9))
    ]
    monkeypatch.setattr(slm_scale, "calibration", lambda _: {"panels": panels})
    assert shipped_thresholds(["a"]) == {"f1": 0.6}
    assert shipped_thresholds(["x"]) == {"f1": 0.9}
    assert shipped_panel(["x"]) == {}
    monkeypatch.setattr(slm_scale, "calibration", lambda _: {})
    assert shipped_thresholds(["a"]) == {}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"mean": "median"}, "mean"),
        ({"epsilon": 0}, "epsilon"),
        ({"passages": 0}, "passages"),
        ({"history": {"a": {"mu": "high"}}}, "history.a.mu"),
    ],
)
def test_settings_say_what_is_wrong(settings: dict[str, Any], field: str):
    with pytest.raises(InvalidInputError, match=f"'{field}' of slm"):
        Slm().settings(settings)
