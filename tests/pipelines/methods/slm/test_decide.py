"""Whatever the judges said, deciding again gives what was decided live, and more without a call."""

import random
from itertools import combinations, product
from math import sqrt
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.methods.slm import Slm
from pipelines.methods.slm import decision as slm_decision
from pipelines.methods.slm import scale as slm_scale
from pipelines.methods.slm.scale import (
    history_of,
    shipped_panel,
    shipped_scale,
    shipped_thresholds,
)
from pipelines.methods.slm.scores import MEANS, JudgeScale, Scaling, response_score
from pipelines.methods.slm.settings import SLM_DECIDABLE, SlmSettings
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged, ModelCalled
from pipelines.run.spec import BUILT_IN, JUDGES
from pipelines.run.trace import Trace
from tests.pipelines.methods.bench import Outcome, PieceModel, Shelf
from tests.pipelines.methods.slm.judges import JudgeModel, Said, check, decided, says

HISTORY = {"a": {"mu": 0.8, "sigma": 0.1, "n": 30}}


def recorded(outcome: Outcome, what: str) -> list[Judged]:
    return [e for e in outcome.events if isinstance(e, Judged) and e.what == what]


def assert_as_live(outcome: Outcome, **settings: Any) -> None:
    decision = decided(outcome, **settings)
    (answer,) = recorded(outcome, "answer")
    assert decision.answer is not None
    # The engine adds remarks of its own, behind the method's.
    assert outcome.answer.flags[: len(decision.answer.flags)] == decision.answer.flags
    assert decision.answer == outcome.answer.model_copy(update={"flags": decision.answer.flags})
    assert decision.response == answer.scores
    assert decision.score == answer.scores[0]
    assert decision.verdict == answer.verdict
    assert decision.flagged == answer.scores[0].flagged
    sentences = recorded(outcome, "sentence")
    assert [s.scores[0] for s in sentences] == list(decision.sentence_scores)
    assert [s.verdict for s in sentences] == list(decision.verdicts)
    assert (decision.diverges_at, decision.reason) == (None, "")


async def random_run(seed: int) -> tuple[Outcome, dict[str, Any]]:
    chance = random.Random(seed)

    def said(statement: str) -> Said:
        p = chance.random()
        return chance.choice([p, p, (p, (1 - p) / 2), None, "yes", "well"])

    settings: dict[str, Any] = {
        "mean": chance.choice(MEANS),
        "positive": chance.choice(["phi", "epsilon"]),
        "epsilon": chance.choice([0.01, 0.2]),
        "normalise": chance.random() < 0.7,
        "tuned_for": chance.choice(["f1", "precision"]),
        "threshold": chance.choice([None, round(chance.random(), 2)]),
        "whole_response": chance.random() < 0.5,
        "history": chance.choice([{}, HISTORY]),
    }
    draft = " ".join(f"Sentence {n} is here." for n in range(chance.randint(0, 4)))
    judges = [JudgeModel(name, said) for name in "abc"[: chance.randint(1, 3)]]
    shelf = Shelf(lambda _: ["A passage."] if seed % 3 else [])
    outcome = await check(*judges, main=PieceModel(lambda _: draft or []), shelf=shelf, **settings)
    return outcome, settings


@pytest.mark.parametrize("seed", range(80))
async def test_the_live_decision_is_reproduced(seed: int):
    outcome, settings = await random_run(seed)
    assert_as_live(outcome, **settings)


@pytest.mark.parametrize("seed", range(20))
async def test_a_stored_run_is_decided_as_the_live_one(seed: int):
    outcome, settings = await random_run(seed)
    outcome.trace = Trace.model_validate_json(outcome.trace.model_dump_json())
    assert_as_live(outcome, **settings)


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
        assert decision.scores == {
            each: response_score([v for v in decision.averages if v is not None], each, scaling)
            for each in MEANS
        }
        limit = thresholds[tuned_for][scaling.key][mean] if threshold is None else threshold
        assert decision.threshold == limit
        borrowed = "borrowed" if normalise else "calibrated"
        assert decision.threshold_source == (borrowed if threshold is None else "set")
        value = decision.scores[mean]
        assert value is not None
        assert decision.supported is (value > limit)
        assert decision.flagged is not decision.supported
        assert (decision.score and decision.score.value) == value
        assert decision.answer == outcome.answer
        assert decision.diverges_at is None
    assert sum(len(judge.asked) for judge in judges) == calls


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("positive", ["phi", "epsilon"])
async def test_a_run_with_other_settings_gives_what_was_decided_again(mean: str, positive: str):
    judges = (JudgeModel("a", says(0.9, 0.3)), JudgeModel("b", says(0.6, 0.5)))
    first = await check(*judges)
    second = await check(*judges, mean=mean, positive=positive)
    again = decided(first, mean=mean, positive=positive)
    then = decided(second, mean=mean, positive=positive)
    assert again.scores == then.scores
    assert again.verdicts == then.verdicts
    assert [s.value for s in again.response] == [s.value for s in then.response]


async def test_a_score_on_its_threshold_is_not_supported():
    outcome = await check(JudgeModel("a", lambda _: 0.75), normalise=False, threshold=0.75)
    assert decided(outcome, normalise=False, threshold=0.75).supported is False
    assert decided(outcome, normalise=False, threshold=0.749).supported is True


async def test_a_judge_is_measured_against_enough_of_its_own_history():
    outcome = await check(JudgeModel("a", says(0.9, 0.7)))
    plain = decided(outcome)
    assert plain.judges[0].scale.source == "neutral"
    measured = decided(outcome, history=HISTORY)
    assert measured.judges[0].scale == JudgeScale(mu=0.8, sigma=0.1, n=30, source="history")
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


async def test_a_shipped_scale_goes_with_the_run(monkeypatch: pytest.MonkeyPatch):
    entry = {"mu": 0.4, "sigma": 0.2, "n": 99, "prompt": load_prompts("slm").hash}
    monkeypatch.setattr(slm_scale, "calibration", lambda _: {"judges": {"a": {"en": entry}}})
    outcome = await check(JudgeModel("a", lambda _: 0.6))
    monkeypatch.undo()
    decision = decided(outcome)
    assert decision.judges[0].scale == JudgeScale(mu=0.4, sigma=0.2, n=99, source="calibrated")
    assert decision.z[0] == (pytest.approx(1.0),)
    # No threshold was shipped then, so nothing follows, whatever ships now.
    assert (decision.threshold, decision.threshold_source) == (None, "missing")
    assert decision.verdict == "unchecked"


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
    ("before", "after", "reason"),
    [
        ({}, {"subject": "given", "answer": "x"}, "slm_answer"),
        ({"subject": "given", "answer": "A."}, {"subject": "given", "answer": "B."}, "slm_answer"),
        ({}, {"max_tokens": 64}, "slm_answer"),
        ({}, {"answer": "unused"}, ""),
        ({}, {"passages": 5}, "slm_context"),
        ({}, {"context": "none"}, "slm_context"),
        ({"context": "none"}, {"context": "none", "passages": 5}, ""),
        ({"whole_response": False}, {}, "slm_whole"),
        ({}, {"whole_response": False}, ""),
    ],
)
async def test_what_was_never_asked_needs_a_new_run(before: dict, after: dict, reason: str):
    outcome = await check(JudgeModel("a", lambda _: 0.5), **before)
    decision = decided(outcome, **after)
    assert decision.reason == reason
    assert decision.diverges_at == (0 if reason else None)
    assert (decision.answer is None) == bool(reason)
    # What was recorded is weighed all the same.
    assert decision.score is not None
    assert decision.score.value is not None


async def test_a_run_that_was_stopped_has_what_it_had():
    outcome = await check(JudgeModel("a", says(0.9, 0.3)))
    whole = outcome.trace.events
    cells = [place for place, e in enumerate(whole) if isinstance(e, Judged) and e.what == "cell"]
    outcome.trace = Trace(events=whole[: cells[0] + 1])
    decision = decided(outcome)
    assert decision.matrix == ((0.9,), (None,))
    assert decision.answer is None
    drafted = next(place for place, e in enumerate(whole) if isinstance(e, ModelCalled))
    outcome.trace = Trace(events=whole[: drafted + 1])
    assert decided(outcome) == slm_decision.SlmDecision(flagged=False)


def test_the_decidable_settings_exist():
    assert set(SLM_DECIDABLE) < set(SlmSettings.model_fields)


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
