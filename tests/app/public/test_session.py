"""What the environment lets visitors take, and what is refused before it waits."""

from __future__ import annotations

import pytest

from app.public.session import VisitorLimits, checked_run
from pipelines.errors import InvalidInputError
from pipelines.run.defaults import default_models
from pipelines.run.spec import MethodSpec

NAMES = {
    "VERISCOPE_MAX_RUNS": "3",
    "VERISCOPE_MAX_RUNS_PER_VISITOR": "2",
    "VERISCOPE_MAX_QUEUE": "7",
    "VERISCOPE_IDLE_TIMEOUT": "2.5",
}
SET = VisitorLimits(max_runs=3, max_runs_per_visitor=2, max_queue=7, idle_timeout=2.5)


def test_an_empty_environment_leaves_the_defaults():
    assert VisitorLimits.of({}) == VisitorLimits()
    assert VisitorLimits.of({"VERISCOPE_MAX_RUNS": ""}) == VisitorLimits()


def test_every_limit_can_be_set(caplog: pytest.LogCaptureFixture):
    more = {
        "VERISCOPE_SECONDS": "60",
        "VERISCOPE_TOKENS": "100",
        "VERISCOPE_KEEP_HOURS": "1",
        "VERISCOPE_CUSTOM_SERVERS": "on",
    }
    found = VisitorLimits.of({**NAMES, **more})
    changed = {"seconds": 60.0, "tokens": 100, "keep_hours": 1.0, "custom_servers": True}
    assert found == SET.model_copy(update=changed)
    assert not caplog.records


@pytest.mark.parametrize("variable", ["VERISCOPE_MAX_RUNS", "VERISCOPE_IDLE_TIMEOUT"])
def test_what_cannot_be_used_is_named_as_it_was_set(variable: str):
    with pytest.raises(InvalidInputError, match=f"{variable} cannot be used") as caught:
        VisitorLimits.of({variable: "0"})
    assert caught.value.remedy


def test_a_run_takes_only_the_models_that_its_methods_use():
    models = default_models()
    spec = checked_run(" Who? ", [MethodSpec(name="direct")], models)
    assert spec.question == "Who?"
    assert spec.models == {"main": models["main"]}


@pytest.mark.parametrize(
    ("question", "methods", "told"),
    [
        ("  ", ["direct"], "question is empty"),
        ("x" * 4001, ["direct"], "4,001 characters"),
        ("Who?", [], "No method"),
        ("Who?", ["unheard-of"], "unheard-of"),
    ],
)
def test_what_cannot_run_is_refused_at_once(question: str, methods: list[str], told: str):
    with pytest.raises(InvalidInputError, match=told):
        checked_run(question, [MethodSpec(name=name) for name in methods], default_models())


def test_a_wrong_setting_is_refused_at_once():
    method = MethodSpec(name="drad", settings={"theta_1": 3})
    with pytest.raises(InvalidInputError, match="theta_1"):
        checked_run("Who?", [method], default_models())
