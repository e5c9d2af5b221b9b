"""When models are loaded, and how many calls a hosted one is asked at once, with Rowen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.methods.base import Question
from pipelines.methods.rowen import Rowen
from pipelines.models.base import Capabilities, Model
from pipelines.models.hosted import Limiter
from pipelines.models.providers import HOSTED_SLOTS
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials, Slot
from pipelines.run.events import (
    EvidenceSpec,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunFinished,
    RunSpec,
    SpanStarted,
    default_models,
)
from pipelines.run.findings import MethodStarted
from pipelines.run.live import LiveRun
from pipelines.run.scope import Scope
from tests.scripted.rowen import BOTH, ENGLISH, EVIDENCE, QUESTION, Speaker

MAIN = ModelSpec(kind="openai", name="main", model="m")


class Bench:
    """A service whose models speak at once, but for the kind "judge", which is loaded slowly."""

    def __init__(self, data: Path, main: Capabilities) -> None:
        self.built: list[str] = []
        self.asked_before_the_judge = threading.Event()
        self._main = main
        folder = data / "library"
        folder.mkdir(parents=True)
        (folder / "clinton.md").write_text("Bill Clinton was born in Hope, Arkansas.")
        self.service = Service(
            data,
            pool=ModelPool(self._build),
            libraries=Libraries(data / "index", {"people": folder}, lambda: None),
            retry=RetryPolicy(pause=0.0),
        )

    def _build(self, spec: ModelSpec, key: str | None, progress: object) -> Model:
        self.built.append(spec.name)
        if spec.kind == "judge":
            # It is there only after the main model has been asked.
            assert self.asked_before_the_judge.wait(60)
            return Speaker(cl=range(6), cm=range(6), capabilities=ENGLISH, prefix="j")
        return Speaker(capabilities=self._main, before=self._asked)

    async def _asked(self, kind: str, index: int | None) -> None:
        self.asked_before_the_judge.set()

    async def run(self, **settings: Any) -> list[Any]:
        spec = RunSpec(
            question=QUESTION,
            methods=(MethodSpec(name="rowen", settings=settings),),
            models={**default_models(), "main": MAIN},
            evidence=EvidenceSpec(library="people", mode="bm25"),
        )
        return [event async for event in self.service.stream(spec, owner="ann")]


@pytest.fixture
async def able(tmp_path: Path) -> AsyncIterator[Bench]:
    """The main model compares answers by itself."""
    bench = Bench(tmp_path, BOTH)
    yield bench
    await bench.service.aclose()


@pytest.fixture
async def unable(tmp_path: Path) -> AsyncIterator[Bench]:
    """The main model was measured to judge no better than chance."""
    bench = Bench(tmp_path, ENGLISH.model_copy(update={"judges": False}))
    yield bench
    await bench.service.aclose()


async def test_judges_that_rowen_does_not_ask_are_never_built(able: Bench):
    events = await able.run()
    assert isinstance(events[-1], RunFinished)
    assert able.built == ["main"]
    (method,) = [e for e in events if isinstance(e, SpanStarted) and e.name == "method"]
    # What they can do is recorded all the same.
    assert isinstance(method.detail, MethodStarted)
    assert {"judge_1", "judge_2"} <= set(method.detail.models)
    assert not method.detail.models["judge_1"].writes


async def test_the_main_model_is_asked_before_a_slow_judge_has_been_built(unable: Bench):
    events = await unable.run()
    assert isinstance(events[-1], RunFinished)
    assert unable.built == ["main", "Veriscope judge"]
    calls = [event for event in events if isinstance(event, ModelCalled)]
    judged = [call for call in calls if call.role == "judge_1"]
    assert len(judged) == 6
    # The wait for the weights is a wait, not a slow answer.
    first = judged[0]
    assert calls[0].role == "main"
    assert first.queued > 0


async def waves(slots: int | None) -> list[int]:
    """How many calls a model is asked at once, when all of one moment are answered together."""
    waiting: list[asyncio.Future[None]] = []
    sizes: list[int] = []

    async def wait(kind: str, index: int | None) -> None:
        answered = asyncio.get_running_loop().create_future()
        waiting.append(answered)
        await answered

    live = LiveRun("run", "owner", lambda _: None)
    slot = Slot(Speaker(before=wait), Limiter(slots))
    scope = Scope(
        live.recorder,
        method="rowen",
        language="en",
        materials=Materials({"main": slot}, EVIDENCE),
        id="run",
        parent=None,
    )
    rowen = Rowen()
    work = asyncio.create_task(
        rowen.run(Question(text=QUESTION, language="en"), scope, rowen.settings())
    )
    while not work.done():
        for _ in range(200):
            await asyncio.sleep(0)
        if waiting:
            sizes.append(len(waiting))
            for answered in waiting:
                if not answered.done():
                    answered.set_result(None)
            waiting.clear()
    await work
    return sizes


async def test_the_widest_wave_of_rowen_fits_the_slots_of_a_hosted_model():
    unlimited = await waves(None)
    # Of each of 6 paraphrases the answer and the translation; and the first answer to the question
    # itself. Without a second model, nothing stands in for one that speaks both languages.
    assert len(unlimited) == 7
    assert max(unlimited) == 2 * 6 + 1
    assert max(unlimited) <= HOSTED_SLOTS
    assert await waves(HOSTED_SLOTS) == unlimited
    assert len(await waves(12)) == len(unlimited) + 1
