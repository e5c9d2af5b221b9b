"""Every method decides from a record what it decided live, and plays it again to the same end.

Held against real runs of all methods: the walkthroughs, each played once without a pause, and the
runs that are shipped as samples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipelines.libraries import Libraries
from pipelines.methods import METHODS, Decision
from pipelines.methods.ever.record import EverDecision, answer_verdict
from pipelines.methods.haarag.path import HaaragDecision
from pipelines.methods.haarag.rules import verdict_of as of_status
from pipelines.models.scripted import ScriptedModel
from pipelines.recordings import load_recording, recordings
from pipelines.run.events import Judged, RunFinished, Verdict
from pipelines.run.pool import ModelPool
from pipelines.run.spec import ModelSpec
from pipelines.run.trace import Trace
from pipelines.service import Service
from pipelines.types import Answer
from pipelines.walkthroughs import FOLDER, walkthrough, walkthroughs

OWNER = "test"
RECORDED = {one.id: load_recording(one.id) for one in recordings()}
OF_THE_ENGINE = ("language_unsupported", "empty")
"""Remarks that are the engine's and not a method's."""

Play = Callable[[str], tuple[Trace, Trace]]


def answers_of(trace: Trace) -> dict[str, Answer]:
    assert isinstance(trace.terminal, RunFinished), trace.terminal
    return trace.terminal.answers


CASES = [
    *((one.id, method.name) for one in walkthroughs() for method in one.methods),
    *((run, method) for run, trace in RECORDED.items() for method in answers_of(trace)),
]


def unpaced(spec: ModelSpec, key: str | None, progress: object) -> ScriptedModel:
    path, _, role = spec.model.partition("#")
    return ScriptedModel.from_file(FOLDER / Path(path).name, role=role, name=spec.name, pace=0.0)


async def played(run: str, data: Path, libraries: Libraries) -> tuple[Trace, Trace]:
    """A run, made now if it is a walkthrough, and what comes of replaying it."""
    service = Service(data, pool=ModelPool(unpaced), libraries=libraries)

    async def to_its_end(id: str) -> Trace:
        async for _ in service.follow(id, owner=OWNER):
            pass
        return await service.load(id, owner=OWNER)

    try:
        live = run
        if run not in RECORDED:
            live = await service.start(walkthrough(run).spec(), owner=OWNER)
        trace = await to_its_end(live)
        return trace, await to_its_end(await service.replay(live, owner=OWNER))
    finally:
        await service.aclose()


@pytest.fixture(scope="module")
def play(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Plays a run and its replay, once however often it is asked for."""

    @cache
    def once(run: str) -> tuple[Trace, Trace]:
        data = tmp_path_factory.mktemp("data")
        return asyncio.run(played(run, data, Libraries(sample_index)))

    return once


def own(answer: Answer) -> Answer:
    """The answer as the method gave it."""
    flags = tuple(flag for flag in answer.flags if flag not in OF_THE_ENGINE)
    return answer.model_copy(update={"flags": flags})


def verdict_of(decision: Any) -> Verdict:
    """The verdict on the original answer."""
    if isinstance(decision, EverDecision):
        return answer_verdict(decision.sentences)
    if isinstance(decision, HaaragDecision):
        return of_status(decision.drafts[0].status) if decision.drafts else "unchecked"
    return decision.verdict


def test_there_are_walkthroughs_to_hold_methods_against():
    assert {method for _, method in CASES} == set(METHODS)


@pytest.mark.parametrize(("run", "name"), CASES)
def test_a_method_decides_as_it_did_live(play: Play, run: str, name: str):
    trace, _ = play(run)
    method = METHODS[name]
    (values,) = (spec.settings for spec in trace.header.spec.methods if spec.name == name)
    # A stored run is read back before anything is decided from it.
    stored = Trace.model_validate_json(trace.model_dump_json())
    decision: Decision = method.decide(stored, method.settings(values))
    assert (decision.diverges_at, decision.reason) == (None, "")
    assert decision.answer == own(answers_of(trace)[name])
    for event in trace.of_method(name):
        if isinstance(event, Judged) and event.what == "answer":
            assert verdict_of(decision) == event.verdict
            headline = event.scores[0] if event.scores else None
            assert decision.score == headline
            assert decision.flagged == (headline is not None and headline.flagged)


@pytest.mark.parametrize(("run", "name"), CASES)
def test_a_replay_gives_the_same_answer(play: Play, run: str, name: str):
    trace, again = play(run)
    assert answers_of(again)[name] == answers_of(trace)[name]
    assert again.header.spec == trace.header.spec
