"""What a method lacks is said with what to do about it, before it makes a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.executor import Plan, execute, make_plan, start_event
from pipelines.methods import Decision, Method, Need, Question, Settings
from pipelines.models.base import Capabilities
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import ModelCalled, RunFailed, RunFinished
from pipelines.run.live import LiveRun
from pipelines.run.materials import Materials
from pipelines.run.pool import Slot
from pipelines.run.scope import Scope
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.trace import Trace
from pipelines.run.wrappers import RetryPolicy
from pipelines.types import Answer
from tests.pipelines.methods.bench import Shelf

ABLE = Capabilities(languages=frozenset({"en"}), logprobs=True, scores=True)


class Needy(Method[Settings]):
    """Cannot do without `lack`."""

    name = "needy"
    settings_type = Settings

    def __init__(self, lack: Need) -> None:
        self._lack = lack

    def needs(self, settings: Settings) -> tuple[Need, ...]:
        return (self._lack,)

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        text = (await scope.write(scope.request(()))).text
        return Answer(text=text, original=text)

    def decide(self, trace: Trace, settings: Settings) -> Decision:
        return Decision(flagged=False)


async def run(need: Need, models: Mapping[str, Capabilities], *, evidence: bool = False) -> Trace:
    method = Needy(need)
    spec = RunSpec(question="Who?", methods=(MethodSpec(name="needy"),))
    plan = Plan(spec, Question(text="Who?", language="en"), ((method, Settings()),))
    assert plan.needs_evidence is (need.reason == "evidence")
    live = LiveRun("run", "owner", lambda _: None)
    start_event(live, plan, 0.0)
    slots = {
        role: Slot(ScriptedModel.from_replies(["yes"], capabilities=can))
        for role, can in models.items()
    }

    async def materials() -> Materials:
        return Materials(slots, Shelf(lambda _: []) if evidence else None)

    await execute(live, plan, materials, RetryPolicy(pause=0.0))
    return live.trace()


WEAK = Capabilities(languages=frozenset({"en"}))
SPEAKS_BOTH = Need(reason="languages", languages=frozenset({"en", "zh"}))


@pytest.mark.parametrize(
    ("need", "models", "said", "remedy"),
    [
        (Need(reason="verifier", role="verifier"), {}, "a second model as verifier", "Models"),
        (Need(reason="model", role="judge_1"), {}, "a judge_1 model", "Models"),
        (Need(reason="evidence"), {}, "a library to search", "Evidence"),
        (SPEAKS_BOTH, {}, "a main model that speaks en, zh", "another variant"),
        (
            Need(reason="languages", role="verifier", languages=frozenset({"zh"})),
            {"verifier": WEAK},
            "a verifier model that speaks zh",
            "another variant",
        ),
        (Need(reason="logprobs"), {"main": WEAK}, "token probabilities from the main", "stand-ins"),
        (
            Need(reason="proxy", role="proxy"),
            {"proxy": WEAK},
            "a local model that can score",
            "samples",
        ),
    ],
)
async def test_what_is_lacking_is_named_with_a_remedy(
    need: Need, models: dict[str, Capabilities], said: str, remedy: str
):
    trace = await run(need, {"main": ABLE, **models})
    assert isinstance(trace.terminal, RunFailed)
    error = trace.terminal.error
    assert error.code == "capability"
    assert error.message.startswith(f"needy needs {said}")
    assert remedy in error.remedy
    assert not any(isinstance(event, ModelCalled) for event in trace.events)


@pytest.mark.parametrize(
    ("need", "models"),
    [
        (Need(reason="verifier", role="verifier"), {"verifier": WEAK}),
        (Need(reason="languages", languages=frozenset({"en"})), {}),
        (Need(reason="evidence"), {}),
        (Need(reason="proxy", role="proxy"), {"proxy": ABLE}),
    ],
)
async def test_a_method_that_has_what_it_needs_answers(need: Need, models: dict[str, Capabilities]):
    trace = await run(need, {"main": ABLE, **models}, evidence=True)
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["needy"].text == "yes"


def test_the_language_that_was_chosen_outweighs_the_questions():
    fields: dict[str, Any] = {"question": "谁？", "methods": (MethodSpec(name="direct"),)}
    assert make_plan(RunSpec(**fields)).question.language == "zh"
    assert make_plan(RunSpec(**fields, language="en")).question.language == "en"
