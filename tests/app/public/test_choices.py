"""Evidence and main settings: what the fields say, their bounds, and what cannot be run."""

from __future__ import annotations

from dataclasses import replace

import gradio as gr
import pytest

from app.public.parts import (
    FIELDS,
    MAIN,
    NONE,
    Choices,
    Parts,
    default_words,
    evidence_choices,
    foreign_to,
    setting_field,
)
from components.base.words import LANGUAGES, Catalogue, named
from components.forms import MODEL
from pipelines.base import Language
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.errors import InvalidInputError
from pipelines.methods.registry import METHODS
from pipelines.run.events import EvidenceSpec, MethodSpec, ModelSpec, default_models

OWN = (None,) * 4


def test_every_main_setting_is_one_of_its_method_with_bounds_and_a_meaning():
    assert {name for name, method in METHODS.items() if not method.baseline} - {
        "direct",
        "rag",
    } == (set(MAIN))
    for method, field in FIELDS:
        described = setting_field(method, field)
        assert described.low is not None
        assert described.high is not None
        assert described.low < described.high
        for language in LANGUAGES:
            t = Catalogue(language)
            assert t.has(f"setting.{method}.{field}.help")
            assert default_words(method, field, t)


def test_a_default_is_told_also_where_it_depends_on_others():
    t = Catalogue("en")
    assert default_words("drad", "theta_1", t) == "0.6"
    # Rowen's own for each of its variants that the models may leave.
    words = default_words("rowen", "threshold", t)
    assert "0.50" in words
    assert "0.80" in words
    assert default_words("haarag", "tau_r", t) == "calibrated for what is used"


def test_empty_fields_stand_for_the_defaults():
    assert Choices.of(()) == Choices()
    chosen = Choices.of([*OWN, None, *[None] * len(FIELDS)])
    assert chosen.methods(["direct", "drad"]) == [
        MethodSpec(name="direct"),
        MethodSpec(name="drad"),
    ]


def test_a_set_value_goes_to_its_method_alone():
    values = [" 0,4 " if one == ("drad", "theta_1") else "" for one in FIELDS]
    values[FIELDS.index(("ever", "max_rounds"))] = "3"
    chosen = Choices.of([*OWN, "sample", *values])
    drad, ever, slm = chosen.methods(["drad", "ever", "slm"])
    assert drad.settings == {"theta_1": 0.4}
    assert ever.settings == {"max_rounds": 3}
    assert slm.settings == {}


@pytest.mark.parametrize("value", ["-0.1", "1.1", "half", "nan", "inf"])
def test_a_value_outside_its_bounds_is_refused_with_the_bounds(value: object):
    values = [value if one == ("drad", "theta_1") else None for one in FIELDS]
    with pytest.raises(InvalidInputError, match="theta_1 of drad must be a number from 0 to 1"):
        Choices.of([*OWN, "sample", *values]).methods(["drad"])


def test_without_evidence_only_what_searches_nothing_is_run():
    chosen = Choices.of([*OWN, NONE])
    assert chosen.left_out(["direct", "rag", "drad", "slm"]) == ["rag", "drad"]
    direct, slm = chosen.methods(["direct", "rag", "slm"])
    assert direct == MethodSpec(name="direct")
    # Judges read the question alone then.
    assert slm.settings == {"context": "none"}
    with pytest.raises(InvalidInputError, match="Every chosen method searches"):
        chosen.methods(["rag"])


def test_what_was_chosen_is_asked_for():
    models = default_models()
    asked = Choices.of([*OWN, "mine"]).request(" Who? ", ["direct"], models)
    evidence = EvidenceSpec(library="mine")
    direct = [MethodSpec(name="direct")]
    assert asked == RunRequest("Who?", methods=direct, models=models, evidence=evidence)
    assert Choices.of([*OWN, NONE]).request("Who?", ["direct"], models).evidence == EvidenceSpec()


def test_what_can_be_searched_has_a_name_and_none_is_among_it():
    assert evidence_choices(["sample"], Catalogue("en")) == [
        ("Samples", "sample"),
        ("None", "none"),
    ]


@pytest.mark.usefixtures("nothing_fetched")
@pytest.mark.parametrize(
    ("question", "foreign"), [("Who wrote it?", False), ("谁写了红楼梦？", True)]
)
def test_a_question_is_foreign_to_a_model_that_does_not_speak_its_language(
    question: str, foreign: bool
):
    models = {**default_models(), "main": ModelSpec()}
    plan = plan_run(Choices().request(question, ["direct"], models))
    assert foreign_to(plan) == foreign
    # Of a visitor's own model nothing is known: it is believed.
    own = {"main": ModelSpec(kind="openai", name="own", model="own")}
    believed = plan.spec.model_copy(update={"models": own})
    assert not foreign_to(replace(plan, spec=believed))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_visitors_fill_in_is_called_as_on_the_pages_of_the_workbench(language: Language):
    with gr.Blocks(analytics_enabled=False):
        parts = Parts(
            lambda t: "",
            lambda t: "",
            lambda language: [],
            libraries=["sample"],
            custom_servers=True,
            ticked=[],
        )
    t = Catalogue(language)
    labels = {one.get("label") for one in parts.spoken(t)}
    assert {MODEL[name].title(t) for name in ("kind", "model", "base_url")} <= labels
    for method, name in FIELDS:
        titles = {"method": named("method", method, t), "setting": t(f"setting.{method}.{name}")}
        assert t("space.setting", **titles) in labels
