"""What is asked for becomes a plan once, or an error that is a key with facts."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.engine.asking import RunRequest, make_plan, plan_run, within_limits
from pipelines.engine.calibrations import conditions
from pipelines.engine.checking import TextToCheck
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.models.providers import ModelSpec, Price
from pipelines.prompts import load_prompts
from pipelines.run import events
from pipelines.run.events import MAX_QUESTION, EvidenceSpec, MethodSpec, RunSpec, default_models
from pipelines.run.ledger import RunLimits
from pipelines.store.profiles import Profile
from tests.pipelines.run.test_calibrations import calibration

TEXT = "Curie was born in Warsaw. She died in 1934."
DIRECT, DRAD = MethodSpec(name="direct"), MethodSpec(name="drad", settings={"theta_1": 0.4})
HOSTED = ModelSpec(kind="openai", name="Far", model="m", base_url="http://127.0.0.1:9/v1")
PRICED = HOSTED.model_copy(update={"price": Price(read=1.0, written=2.0)})
SHORT = {"direct": {"en": {"system": "Answer in one word."}}}
EVER = {"ever": {"en": {"verify": "$passages $question"}}}
SHIPPED = {"direct": {"en": {"system": load_prompts("direct").default("en", "system")}}}
HELD = calibration(method="drad", setting="", conditions=conditions("drad", DRAD.settings, {}, ""))
PROFILE = Profile(name="Mine", settings={"drad": DRAD.settings}, calibrations=(HELD,))
WORDED = Profile(name="Mine", prompts=SHORT)


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is the bundled model, whatever models this installation has fetched."""
    monkeypatch.setattr(events, "fetched_file", lambda _: None)


def request(**fields: Any) -> RunRequest:
    return RunRequest(**{"question": "Who wrote it?", "methods": [DIRECT], **fields})


USUAL = RunSpec(question="Who wrote it?", methods=(DIRECT,))


@pytest.mark.parametrize(
    ("asked", "recorded"),
    [
        ({}, {}),
        ({"seed": 3, "reproducible": True}, {"seed": 3, "reproducible": True}),
        ({"language": "zh"}, {"language": "zh"}),
        ({"evidence": EvidenceSpec(mode="bm25")}, {"evidence": EvidenceSpec(mode="bm25")}),
        # A run holds the models that its methods use, without their prices.
        ({"models": {**default_models(), "main": PRICED}}, {"models": {"main": HOSTED}}),
        # What its methods use of the prompts, as far as that is not the default.
        ({"prompts": {**SHORT, **EVER}}, {"prompts": SHORT}),
        ({"prompts": SHIPPED}, {}),
        # It has a profile's name as long as it follows that, and the calibrations that hold.
        ({"profile": PROFILE}, {"profile": "Mine"}),
        (
            {"profile": PROFILE, "methods": [DRAD]},
            {"profile": "Mine", "methods": (DRAD,), "calibrations": (HELD,)},
        ),
        (
            {"calibrations": (HELD,), "methods": [DRAD]},
            {"methods": (DRAD,), "calibrations": (HELD,)},
        ),
        (
            {"profile": PROFILE, "methods": [MethodSpec(name="drad")]},
            {"methods": (MethodSpec(name="drad"),)},
        ),
        ({"profile": WORDED, "prompts": SHORT}, {"profile": "Mine", "prompts": SHORT}),
        ({"profile": WORDED}, {}),
    ],
)
def test_a_request_becomes_the_run_that_is_recorded(
    asked: dict[str, Any], recorded: dict[str, Any]
):
    spec = plan_run(request(**asked)).spec
    assert spec.model_copy(update={"models": {}}) == USUAL.model_copy(
        update={**recorded, "models": {}}
    )
    if "models" in recorded:
        assert spec.models == recorded["models"]
    # What was recorded is planned as it stands.
    assert make_plan(spec).spec == spec


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [("Who?", None, "en"), ("谁？", None, "zh"), ("谁？", "en", "en"), ("Who?", "zh", "zh")],
)
def test_the_language_is_what_was_said_else_that_of_the_question(
    question: str, language: Any, found: str
):
    asked = request(question=f" {question}\n", language=language)
    plan = plan_run(asked)
    assert (asked.spoken, plan.question.language, plan.question.text) == (found, found, question)
    assert plan.spec.language == language


def test_models_that_nobody_chose_are_those_of_the_language():
    slm = [MethodSpec(name="slm")]
    for language in ("en", "zh"):
        spec = plan_run(request(methods=slm, language=language)).spec
        known = default_models(language)
        assert spec.models == {role: known[role] for role in spec.models}
    assert plan_run(request(methods=slm, models={"main": HOSTED})).spec.models == {"main": HOSTED}


@pytest.mark.parametrize(
    ("asked", "key", "facts"),
    [
        ({"question": " \n"}, "asking.no_question", {}),
        (
            {"question": "x" * (MAX_QUESTION + 1)},
            "asking.long_question",
            {"length": "4,001", "most": "4,000"},
        ),
        ({"methods": []}, "asking.no_method", {}),
        ({"methods": [DIRECT, DIRECT]}, "asking.method_twice", {}),
        ({"models": {}}, "asking.no_main_model", {}),
        ({"methods": [MethodSpec(name="unheard-of")]}, "methods.unknown", {"name": "unheard-of"}),
        (
            {"methods": [MethodSpec(name="drad", settings={"theta_1": 3})]},
            "methods.bad_setting",
            {"method": "drad", "setting": "theta_1"},
        ),
        ({"prompts": {"nothing": {"en": {"x": "y"}}}}, "prompts.no_file", {"file": "'nothing'"}),
        ({"text": TextToCheck(text=" ")}, "checking.no_text", {}),
        ({"text": TextToCheck(text=TEXT), "methods": []}, "checking.no_detector", {}),
        ({"text": TextToCheck(text=TEXT)}, "checking.no_such", {"method": "direct"}),
        (
            {"models": {"main": HOSTED}, "limits": RunLimits(money=1.0)},
            "budget.unpriced",
            {"name": "Far"},
        ),
        (
            {"models": {"main": PRICED}, "limits": RunLimits(money=1.0, currency="CNY")},
            "budget.currencies",
            {"name": "Far", "currency": "CNY", "other": "USD"},
        ),
    ],
)
def test_what_cannot_be_asked_is_a_key_with_its_facts(
    asked: dict[str, Any], key: str, facts: dict[str, Any]
):
    with pytest.raises(VeriscopeError) as caught:
        plan_run(request(**asked))
    assert caught.value.key == key
    assert caught.value.facts.items() >= facts.items()


def test_a_plan_has_the_limits_the_prices_and_with_earlier_runs_what_it_will_use():
    limits = RunLimits(calls=2)
    asked = request(models={"main": PRICED}, limits=limits)
    plain = plan_run(asked).budget
    assert (plain.limits, plain.prices, plain.expected) == (limits, {"main": PRICED.price}, None)
    seen: list[tuple[ModelSpec, bool]] = []

    def past(main: ModelSpec, *, checks: bool) -> tuple[()]:
        seen.append((main, checks))
        return ()

    budget = plan_run(asked, past).budget
    assert budget.expected is not None
    assert budget.expected.calls == 1
    check = request(text=TextToCheck(text=TEXT), methods=[MethodSpec(name="slm")])
    plan_run(check, past)
    assert seen == [(PRICED, False), (ModelSpec(), True)]
    # A recorded run has no prices: they are those of now.
    again = within_limits(make_plan(plan_run(asked).spec), limits, {"main": PRICED}, past)
    assert again.budget == budget


@pytest.mark.parametrize("question", ["\u200b\u2060", "\u3164 \ufe0f"])
def test_a_question_of_invisible_characters_is_none(question: str):
    with pytest.raises(InvalidInputError, match="question"):
        make_plan(RunSpec(question=question, methods=(MethodSpec(name="direct"),)))
