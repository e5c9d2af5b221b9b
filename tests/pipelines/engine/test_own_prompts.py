"""A run's own wording: it reaches the model, in that run alone, and is recorded with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.reevaluate import reevaluate
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.methods.drad.settings import calibrated_with_these_prompts
from pipelines.methods.registry import get_method
from pipelines.methods.slm.scores import history_of, shipped_scale
from pipelines.prompts import load_prompts, worded
from pipelines.run.changes import changes
from pipelines.run.events import MethodSpec, ModelCalled, RunFinished, RunSpec
from pipelines.run.view import fold
from pipelines.store import RunFilter
from tests.scripted.fakes import FakeModel

ANN, BEN = "ann", "ben"
QUESTION = "Who wrote Hamlet?"
SHORT = {"direct": {"en": {"system": "Answer in one word."}}}
LONG = {"direct": {"en": {"system": "Answer in an essay."}}}


@pytest.fixture
def model() -> FakeModel:
    return FakeModel("Shakespeare wrote it.")


@pytest.fixture
async def service(tmp_path: Path, model: FakeModel) -> AsyncIterator[Service]:
    opened = Service(
        tmp_path,
        pool=ModelPool(lambda spec, key, progress: model),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
    )
    yield opened
    await opened.aclose()


def asking(prompts: Any = None, *methods: str, **fields: Any) -> RunSpec:
    chosen = tuple(MethodSpec(name=name) for name in methods or ("direct",))
    return RunSpec(question=QUESTION, methods=chosen, prompts=prompts or {}, **fields)


def systems(model: FakeModel) -> list[str]:
    return [request.messages[0].content for request in model.asked]


async def test_the_text_reaches_the_model_and_the_next_run_has_the_default(
    service: Service, model: FakeModel
):
    default = load_prompts("direct").default("en", "system")
    await service.record(asking(SHORT), owner=ANN)
    await service.record(asking(), owner=ANN)
    assert systems(model) == ["Answer in one word.", default]


async def test_two_at_once_do_not_see_each_others_wording(service: Service, model: FakeModel):
    model.gate.clear()
    runs = [
        await service.start(asking(wording), owner=owner)
        for owner, wording in ((ANN, SHORT), (BEN, LONG), (ANN, {}), (BEN, SHORT))
    ]
    await model.until_asked(4)
    model.gate.set()
    owners = (ANN, BEN, ANN, BEN)
    await asyncio.gather(*(_end(service, run, who) for run, who in zip(runs, owners, strict=True)))
    found = [await service.load(run, owner=who) for run, who in zip(runs, owners, strict=True)]
    sent = [_calls(trace)[0].request.messages[0].content for trace in found]
    default = load_prompts("direct").default("en", "system")
    assert sent == ["Answer in one word.", "Answer in an essay.", default, "Answer in one word."]
    # Neither sees what the other's run was worded like.
    with pytest.raises(NotFoundError):
        await service.load(runs[0], owner=BEN)


async def _end(service: Service, run: str, owner: str) -> None:
    async for _ in service.follow(run, owner=owner):
        pass


def _calls(trace: Any) -> list[Any]:
    return [event for event in trace.events if isinstance(event, ModelCalled)]


async def test_a_reply_to_another_wording_is_not_given_from_the_cache(
    service: Service, model: FakeModel
):
    for wording in (SHORT, SHORT, LONG, {}, {}):
        await service.record(asking(wording), owner=ANN)
    assert len(model.asked) == 3


async def test_the_trace_says_which_wording_it_was(service: Service):
    usual = await service.record(asking(), owner=ANN)
    own = await service.record(asking(SHORT), owner=ANN)
    assert own.header.spec.prompts == SHORT
    assert own.header.prompts["direct"] == load_prompts("direct").hash_with(SHORT)
    assert usual.header.prompts["direct"] == load_prompts("direct").hash
    assert "prompts" not in usual.header.spec.model_dump()
    found = changes(fold(usual.events), fold(own.events))
    assert [pair.name for pair in found.prompts] == ["direct"]
    place = ("direct", "en", "system")
    assert found.wording == ((place, None, "Answer in one word."),)
    assert not found.same_conditions


async def test_runs_with_their_own_prompts_are_found(service: Service):
    await service.record(asking(), owner=ANN)
    own = await service.record(asking(SHORT), owner=ANN)
    found = service.store.list(ANN, where=RunFilter(own_prompts=True))
    assert [run.id for run in found] == [own.header.run]
    assert service.store.list(BEN, where=RunFilter(own_prompts=True)) == []


async def test_a_replay_has_the_wording_of_its_run(service: Service, model: FakeModel):
    own = await service.record(asking(SHORT), owner=ANN)
    asked = len(model.asked)
    again = await service.replay(own.header.run, owner=ANN)
    await _end(service, again, ANN)
    trace = await service.load(again, owner=ANN)
    assert isinstance(trace.terminal, RunFinished)
    assert trace.header.prompts == own.header.prompts
    assert len(model.asked) == asked


async def test_a_run_is_reevaluated_under_its_own_wording(service: Service):
    own = await service.record(asking(SHORT), owner=ANN)
    method = get_method("direct")
    # Without its wording, the recorded replies would be replies to something else.
    found = reevaluate(own, method, method.settings())
    assert found.diverges_at is None
    assert found.answer is not None
    bare = own.header.model_copy(
        update={"spec": own.header.spec.model_copy(update={"prompts": {}})}
    )
    other = own.model_copy(update={"events": (bare, *own.events[1:])})
    assert reevaluate(other, method, method.settings()).diverges_at is not None


async def test_an_exported_run_comes_back_with_its_wording(service: Service):
    own = await service.record(asking(SHORT), owner=ANN)
    text = "".join(service.store.export(own.header.run, ANN))
    brought = service.store.import_run(text, BEN)
    trace = await service.load(brought, owner=BEN)
    assert trace.header.spec.prompts == SHORT
    assert trace.header.prompts == own.header.prompts
    found = service.store.list(BEN, where=RunFilter(own_prompts=True))
    assert [run.id for run in found] == [brought]


async def test_a_wording_is_checked_where_it_comes_in(service: Service):
    for prompts, said in (
        ({"direct": {"en": {"question": "Q"}}}, r"direct/question \(en\) cannot be used"),
        ({"nothing": {"en": {"question": "Q"}}}, "no prompt file"),
        ({"direct": {"en": {"system": "Use sk-hunter2hunter2hunter2"}}}, "looks like a key"),
    ):
        with pytest.raises(InvalidInputError, match=said) as caught:
            await service.start(asking(prompts), owner=ANN)
        assert "hunter2" not in str(caught.value)
    assert service.store.list(ANN) == []


def test_calibrations_do_not_apply_to_another_wording():
    judge = "Word overlap"
    assert shipped_scale(judge, "en").source == "calibrated"
    assert calibrated_with_these_prompts("SmolLM2-135M-Instruct", "10", "en")
    with worded({"slm": {"en": {"system": "Judge."}}, **SHORT}):
        assert shipped_scale(judge, "en").source == "neutral"
        assert not calibrated_with_these_prompts("SmolLM2-135M-Instruct", "10", "en")


async def test_earlier_scores_count_under_their_own_wording_only(service: Service):
    trace = await service.record(asking({}, "direct"), owner=ANN)
    own = {"slm": {"en": {"system": "Judge."}}}
    header = trace.header.model_copy(
        update={"prompts": {"slm": load_prompts("slm").hash_with(own)}}
    )
    changed = trace.model_copy(update={"events": (header, *trace.events[1:])})
    seen: list[str] = []

    class Seen(type(changed)):  # type: ignore[misc]
        def of_method(self, method: str) -> Any:
            seen.append(method)
            return []

    one = Seen(events=changed.events)
    history_of([one], "en")
    assert seen == []
    with worded(own):
        history_of([one], "en")
    assert seen == ["slm"]
