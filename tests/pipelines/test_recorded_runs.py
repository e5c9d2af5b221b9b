"""Every method re-evaluates a recorded run to what it was, and plays it again to the same end.

Checked on real runs of all methods: the walkthroughs, each played once without a pause, and the
runs that are shipped as samples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Template

import pytest

from pipelines.base import Answer
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.reevaluate import reevaluate
from pipelines.engine.service import Service
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.models.base import SimilarityRequest
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged, ModelCalled, RunFinished, Trace, Verdict
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import build_unpaced, problems, walkthrough, walkthroughs
from pipelines.store.exchange import load_recording, recordings

OWNER = "test"
RECORDED = {one.id: load_recording(one.id) for one in recordings()}

Play = Callable[[str], tuple[Trace, Trace]]


def answers_of(trace: Trace) -> dict[str, Answer]:
    assert isinstance(trace.terminal, RunFinished), trace.terminal
    return trace.terminal.answers


CASES = [
    *((one.id, method.name) for one in walkthroughs() for method in one.methods),
    *((run, method) for run, trace in RECORDED.items() for method in answers_of(trace)),
]


async def played(run: str, data: Path, libraries: Libraries) -> tuple[Trace, Trace]:
    """A run, made now if it is a walkthrough, and what comes of replaying it."""
    service = Service(data, pool=ModelPool(build_unpaced), libraries=libraries)

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


def verdicts(trace: Trace, method: str) -> list[tuple[str, Verdict, float | None]]:
    """The verdicts on answers, each with the number that decided it."""
    return [
        (event.text, event.verdict, event.scores[0].value if event.scores else None)
        for event in trace.of_method(method)
        if isinstance(event, Judged) and event.what == "answer"
    ]


def test_there_are_walkthroughs_to_hold_methods_against():
    assert {method for _, method in CASES} == set(standard_methods())


@pytest.mark.parametrize("run", [one.id for one in walkthroughs()])
def test_every_walkthrough_comes_to_what_it_says(play: Play, run: str):
    trace, _ = play(run)
    assert problems(walkthrough(run), fold(trace.events)) == []


@pytest.mark.parametrize(("run", "name"), CASES)
def test_with_its_own_settings_a_run_is_what_it_was(play: Play, run: str, name: str):
    trace, _ = play(run)
    method = METHODS[name]
    (values,) = (spec.settings for spec in trace.header.spec.methods if spec.name == name)
    # A stored run is read back before anything is made of it.
    stored = Trace.model_validate_json(trace.model_dump_json())
    again = reevaluate(stored, method, method.settings(values))
    assert again.diverges_at is None
    assert again.answer == answers_of(trace)[name]
    assert verdicts(again.trace, name) == verdicts(trace, name)


@pytest.mark.parametrize(("run", "name"), CASES)
def test_a_replay_gives_the_same_answer(play: Play, run: str, name: str):
    trace, again = play(run)
    assert answers_of(again)[name] == answers_of(trace)[name]
    assert again.header.spec == trace.header.spec


@pytest.mark.parametrize("run", dict.fromkeys(run for run, _ in CASES))
def test_every_request_says_which_prompts_it_was_made_of(play: Play, run: str):
    # The replay of a run that was recorded without them has them as well.
    _, again = play(run)
    for event in again.events:
        if not isinstance(event, ModelCalled) or isinstance(event.request, SimilarityRequest):
            continue
        messages = event.request.messages
        assert any(message.filled for message in messages)
        for message in messages:
            for one in message.filled:
                text = Template(load_prompts(one.file).text(one.language, one.key))
                filled = text.substitute(one.texts(message.content)).strip()
                assert message.content[one.start : one.end] == filled
