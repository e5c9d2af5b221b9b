"""Where a threshold comes from: measured with these judges, borrowed, neutral, or set by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.methods.limits import limit_for
from pipelines.methods.slm.settings import MEANS, Lift, Scaling
from pipelines.run.findings import JudgeScale
from tests.scripted.bench import FULL
from tests.scripted.slm import JudgeModel, check, decided, says

# The score of a response whose every P(yes) is 0.5, that is z = 0 on the neutral scale.
NEUTRAL: list[tuple[dict[str, Any], float]] = [
    *(({"mean": mean}, 0.5) for mean in MEANS),
    *(({"mean": mean, "normalise": False}, 0.5) for mean in MEANS),
    *(({"mean": mean, "positive": "epsilon"}, 0.0) for mean in ("arithmetic", "min", "max")),
    # These two lift every z to the floor at least, so nothing scores below it.
    *(({"mean": mean, "positive": "epsilon"}, 0.01) for mean in ("harmonic", "geometric")),
    ({"positive": "epsilon", "epsilon": 0.2}, 0.2),
    ({"normalise": False, "epsilon": 0.2}, 0.5),
    ({"normalise": False, "epsilon": 0.8}, 0.8),
]


@pytest.mark.parametrize(("settings", "threshold"), NEUTRAL)
async def test_a_judge_never_measured_has_a_neutral_threshold(
    thresholds: dict[str, Any], settings: dict[str, Any], threshold: float
):
    outcome = await check(JudgeModel("c", lambda _: 0.5))
    even = decided(outcome, **settings)
    assert (even.threshold, even.threshold_source) == (pytest.approx(threshold), "neutral")
    # On the fence is not supported, and neither is less; more is.
    assert even.response[0].value == pytest.approx(threshold)
    assert even.verdict == "doubtful"
    for p_yes, supported in ((0.0, False), (0.4, False), (0.99, True)):
        decision = decided(await check(JudgeModel("c", says(p_yes, p_yes))), **settings)
        assert decision.threshold == pytest.approx(threshold)
        assert decision.verdict == ("supported" if supported else "doubtful")
        assert {each.verdict for each in decision.sentences} == {
            "supported" if supported else "doubtful"
        }


async def test_a_judge_measured_on_statements_alone_has_the_threshold_that_fits_these():
    p_yes = 0.9
    judge = JudgeModel("Qwen2.5-Coder-0.5B", lambda _: p_yes)
    outcome = await check(judge, question="李白是在哪里认识杜甫的？")
    found = decided(outcome)
    fitted = limit_for("slm", "library", "zh", ["Qwen2.5-Coder-0.5B"])
    assert fitted is not None
    assert (found.threshold, found.threshold_source) == (fitted.value, "statements")
    # More likely right than not, and less than most wrong ones.
    assert found.verdict == "doubtful"
    # It holds for the usual scale alone.
    assert decided(outcome, mean="min").threshold_source == "neutral"


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("positive", ["phi", "epsilon"])
async def test_one_judge_never_measured_is_enough(
    calibrated: JudgeScale, thresholds: dict[str, Any], normalise: bool, positive: Lift
):
    settings = {"normalise": normalise, "positive": positive}
    key = Scaling(normalise=normalise, lift=positive).key
    both = await check(JudgeModel("a", lambda _: 0.3), JudgeModel("b", lambda _: 0.2))
    measured = decided(both, **settings)
    assert measured.threshold == thresholds["f1"][key]["harmonic"]
    assert measured.threshold_source == "calibrated"
    mixed = await check(JudgeModel("a", lambda _: 0.3), JudgeModel("c", lambda _: 0.2))
    # What the settings name and what is known of earlier runs come before it.
    assert decided(mixed, **settings).threshold_source == "neutral"
    assert decided(mixed, **settings, threshold=0.3).threshold_source == "set"
    history = {"c": {"mu": 0.4, "sigma": 0.1, "n": 30}}
    known = decided(mixed, **settings, history=history)
    # Earlier scores are a scale for z; of P(yes) itself they tell no threshold.
    assert known.threshold_source == ("borrowed" if normalise else "neutral")


async def test_a_judge_read_by_its_text_was_never_measured(
    calibrated: JudgeScale, thresholds: dict[str, Any]
):
    text = FULL.model_copy(update={"logprobs": False})
    decision = decided(await check(JudgeModel("a", says("yes", "no", "no"), text)))
    assert (decision.threshold, decision.threshold_source) == (0.5, "neutral")


async def test_another_floor_borrows_its_threshold(
    calibrated: JudgeScale, thresholds: dict[str, Any]
):
    outcome = await check(JudgeModel("a", lambda _: 0.3))
    assert decided(outcome, epsilon=0.2).threshold_source == "calibrated"
    decision = decided(outcome, positive="epsilon", epsilon=0.2)
    assert decision.threshold == thresholds["f1"]["epsilon"]["harmonic"]
    assert decision.threshold_source == "borrowed"
