"""What a method lacks is said before it makes a call; a reply that a recording lacks ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.base import Answer, Generation
from pipelines.engine import executor
from pipelines.engine.asking import RunPlan, make_plan
from pipelines.engine.executor import execute, start_event
from pipelines.errors import MissingReply, RefusedRequestError, VeriscopeError
from pipelines.methods.base import Method, Need, Question, Settings
from pipelines.models.base import Capabilities
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials, Slot
from pipelines.run.events import (
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunFailed,
    RunFinished,
    RunSpec,
    SpanEnded,
    Trace,
)
from pipelines.run.live import LiveRun
from pipelines.run.scope import Scope
from tests.scripted.bench import Shelf

ABLE = Capabilities(languages=frozenset({"en"}), logprobs=True, scores=True)


class Needy(Method[Settings]):
    """Cannot do without `lack`."""

    name = "needy"
    settings_type = Settings

    def __init__(self, lack: Need) -> None:
        self.lack = lack

    def needs(self, settings: Settings) -> tuple[Need, ...]:
        return (self.lack,)

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        text = (await scope.write(scope.request(()))).text
        return Answer(text=text, original=text)


class Forgiving(Needy):
    """Answers without its model where the model fails."""

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        try:
            async with scope.span("draft") as step:
                return await super().run(question, step, settings)
        except VeriscopeError:
            return Answer(text="", original="")


class Late(Needy):
    """Records `drafts`, and then fails; or answers the last of them, with `error` None."""

    def __init__(self, *drafts: Generation, error: Exception | None) -> None:
        super().__init__(Need(reason="model"))
        self.drafts = drafts
        self.error = error

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        async with scope.span("draft") as step:
            for number, draft in enumerate(self.drafts):
                step.revised(draft, draft=number)
            if self.error is not None:
                raise self.error
        return Answer(text=self.drafts[-1].text, original=self.drafts[0].text)


async def run(need: Need, models: Mapping[str, Capabilities], *, evidence: bool = False) -> Trace:
    slots = {
        role: Slot(ScriptedModel.from_replies(["yes"], capabilities=can))
        for role, can in models.items()
    }
    return await run_on(Needy(need), Materials(slots, Shelf(lambda _: []) if evidence else None))


async def run_on(method: Needy, materials: Materials) -> Trace:
    need = method.lack
    spec = RunSpec(question="Who?", methods=(MethodSpec(name="needy"),))
    plan = RunPlan(spec, Question(text="Who?", language="en"), ((method, Settings()),))
    assert plan.needs_evidence is (need.reason == "evidence")
    live = LiveRun("run", "owner", lambda _: None)
    start_event(live, plan)

    async def gather() -> Materials:
        return materials

    await execute(live, plan, gather, RetryPolicy(pause=0.0))
    return live.trace()


WEAK = Capabilities(languages=frozenset({"en"}))
SPEAKS_BOTH = Need(reason="languages", languages=frozenset({"en", "zh"}))


@pytest.mark.parametrize(
    ("need", "models", "said", "remedy"),
    [
        (Need(reason="model", role="judge_1"), {}, "a judge_1 model", "Models"),
        (Need(reason="evidence"), {}, "a library to search", "Evidence"),
        (SPEAKS_BOTH, {}, "a main model that speaks English, Chinese", "another variant"),
        (
            Need(reason="languages", role="verifier", languages=frozenset({"zh"})),
            {"verifier": WEAK},
            "a verifier model that speaks Chinese",
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
        (Need(reason="languages", languages=frozenset({"en"})), {}),
        (Need(reason="evidence"), {}),
        (Need(reason="proxy", role="proxy"), {"proxy": ABLE}),
    ],
)
async def test_a_method_that_has_what_it_needs_answers(need: Need, models: dict[str, Capabilities]):
    trace = await run(need, {"main": ABLE, **models}, evidence=True)
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["needy"].text == "yes"


async def test_a_missing_reply_ends_a_method_that_copes_with_failed_calls():
    slots = {"main": Slot(ScriptedModel.from_replies([], capabilities=ABLE))}
    trace = await run_on(Forgiving(Need(reason="model")), Materials(slots))
    assert isinstance(trace.terminal, RunFailed)
    assert trace.terminal.error.code == "missing_reply"
    assert trace.terminal.error.remedy
    ends = [event for event in trace.events if isinstance(event, SpanEnded)]
    assert [event.error and event.error.code for event in ends] == ["missing_reply"] * 2
    (call,) = [event for event in trace.events if isinstance(event, ModelCalled)]
    assert call.error == trace.terminal.error


async def test_a_missing_reply_while_preparing_fails_the_run():
    spec = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),))
    live = LiveRun("run", "owner", lambda _: None)
    plan = make_plan(spec)
    start_event(live, plan)

    async def gather() -> Materials:
        raise MissingReply("Not recorded.", remedy="Run it anew.")

    await execute(live, plan, gather, RetryPolicy(pause=0.0))
    terminal = live.trace().terminal
    assert isinstance(terminal, RunFailed)
    assert terminal.error.code == "missing_reply"


FULL_ACCOUNT = RefusedRequestError("The account is empty.", remedy="Pay.")


async def late(*drafts: str, error: Exception | None = FULL_ACCOUNT, end: Any = "stop") -> Trace:
    written = (Generation(text=text, finish_reason=end) for text in drafts)
    slots = {"main": Slot(ScriptedModel.from_replies([], capabilities=ABLE))}
    return await run_on(Late(*written, error=error), Materials(slots))


async def test_a_method_that_fails_late_answers_what_it_had():
    trace = await late("In York.", "In Hope.")
    assert isinstance(trace.terminal, RunFinished)
    answer = trace.terminal.answers["needy"]
    assert (answer.text, answer.original) == ("In Hope.", "In York.")
    assert answer.flags == ("broken_off",)
    ended = next(e for e in reversed(trace.events) if isinstance(e, SpanEnded))
    assert (ended.outcome, ended.answer) == ("failed", answer)
    assert ended.error is not None
    assert ended.error.message == "The account is empty."


async def test_a_mistake_late_in_a_method_leaves_its_draft_as_well(
    caplog: pytest.LogCaptureFixture,
):
    trace = await late("In York.", error=ValueError("secret detail"))
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["needy"].text == "In York."
    assert trace.terminal.answers["needy"].flags == ("broken_off",)
    ended = next(e for e in reversed(trace.events) if isinstance(e, SpanEnded))
    assert ended.error is not None
    assert ended.error.code == "unexpected"
    # The log tells what it was, and no event does.
    assert "secret detail" in caplog.text
    assert all("secret detail" not in event.model_dump_json() for event in trace.events)


async def test_a_reply_that_a_recording_lacks_leaves_no_draft_as_an_answer():
    trace = await late("In York.", error=MissingReply("Not recorded.", remedy="Run it anew."))
    assert isinstance(trace.terminal, RunFailed)
    assert trace.terminal.error.code == "missing_reply"


@pytest.mark.parametrize("drafts", [(), ("",), (" ", "")])
async def test_a_method_that_fails_without_a_draft_fails(drafts: tuple[str, ...]):
    trace = await late(*drafts)
    assert isinstance(trace.terminal, RunFailed)
    assert trace.terminal.error.message == "The account is empty."


@pytest.mark.parametrize(
    ("end", "flags"),
    [("stop", ()), ("watcher", ()), ("length", ("truncated",)), ("filter", ("filtered",))],
)
async def test_an_answer_that_was_ended_for_the_model_says_so(end: str, flags: tuple[str, ...]):
    trace = await late("In Hope, in the", error=None, end=end)
    assert isinstance(trace.terminal, RunFinished)
    assert trace.terminal.answers["needy"].flags == flags


class First(Needy):
    """Notes when it begins, and ends once `end` is set."""

    name = "direct"

    def __init__(self, noted: list[str], end: asyncio.Event) -> None:
        super().__init__(Need(reason="model"))
        self.noted, self.end = noted, end

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        self.noted.append(f"{self.name} begins")
        await self.end.wait()
        self.noted.append(f"{self.name} ends")
        return Answer(text="Hope", original="Hope")


class Other(First):
    """Does not wait, and sets `end`."""

    name = "rag"

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        self.end.set()
        return await super().run(question, scope, settings)


async def noted(kind: str, *, ended: bool) -> list[str]:
    """What happens beside Direct on a model of this kind; not `ended`, it waits for the other."""
    found: list[str] = []
    end = asyncio.Event()
    if ended:
        end.set()
    methods = (Other(found, end), First(found, end))
    model = {"kind": kind, "name": "A", "model": "a", "base_url": "http://localhost:1/v1"}
    spec = RunSpec(
        question="Who?",
        methods=tuple(MethodSpec(name=one.name) for one in methods),
        models={"main": ModelSpec.model_validate(model)},
    )
    plan = RunPlan(
        spec, Question(text="Who?", language="en"), tuple((one, Settings()) for one in methods)
    )
    live = LiveRun("run", "owner", lambda _: None)
    start_event(live, plan)

    async def gather() -> Materials:
        return Materials({"main": Slot(ScriptedModel.from_replies([], capabilities=ABLE))}, None)

    await execute(live, plan, gather, RetryPolicy(pause=0.0))
    return found


async def test_direct_is_answered_first_by_a_model_in_this_process():
    assert await noted("local", ended=True) == [
        "direct begins",
        "direct ends",
        "rag begins",
        "rag ends",
    ]
    assert (await noted("openai", ended=True))[0] == "rag begins"


async def test_others_do_not_wait_for_a_direct_that_does_not_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(executor, "_HEAD_START", 0.0)
    found = await noted("local", ended=False)
    assert found[:2] == ["direct begins", "rag begins"]
