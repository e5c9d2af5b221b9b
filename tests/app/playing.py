"""Walkthroughs played without a pause, for tests of the pages that show them."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.methods.registry import method_pages
from pipelines.models.base import Model, Progress
from pipelines.models.providers import build_model, known_capabilities, provider_of
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy
from pipelines.run.events import ModelSpec, RunSpec, Trace
from pipelines.samples.walkthroughs import FOLDER, walkthrough
from tests.app.test_screens import ME, page

# In the first Rowen keeps the answer, in the second it looks for evidence. No embedder reads
# Chinese, so that both are played in a moment.
WALL, EVEREST = "2-zh-great-wall", "4-zh-everest"

_PLAYED = {method.name for method in walkthrough(EVEREST).spec().methods}
PAGES = {page: methods for page, methods in method_pages().items() if set(methods) <= _PLAYED}
"""The methods' pages, each with its methods; those whose methods are in the walkthroughs."""

EACH = [(name, method) for name, methods in PAGES.items() for method in methods]
SOMEBODY_ELSE = "b" * 48

HELD = "held"
"""A file of this name in the data folder of a workbench that is served holds its walkthroughs."""

Sleep = Callable[[float], Awaitable[None]]

# A text that any request contains may be said any number of times.
ALWAYS = {
    "contains": "",
    "tokens": [
        *(["Bill", 0.9], [" Clinton", 0.95], [" was", 0.9], [" born", 0.9], [" in", 0.9]),
        *([" Hope", 0.3, None, {" Little": 0.2}], [".", 0.9]),
    ],
}
"""What models that are neither played nor asked over the network say: "Hope" is doubtful."""

_TAGS = re.compile(r"<[^>]*>")


def open_engine(
    data: Path, *, pace: float = 0.0, sleep: Sleep = asyncio.sleep, **options: Any
) -> Engine:
    """An engine whose library is searched by words alone, and on which no model is loaded.

    Walkthroughs are played with `pace` seconds between two words. What stands behind an address
    is asked there, and asked again without a pause where it fails; every other model says the same
    to everything, and can do as much as the one in whose place it stands.
    """

    def build(spec: ModelSpec, key: str | None, progress: Progress) -> Model:
        if spec.kind == "scripted":
            path, _, role = spec.model.partition("#")
            return ScriptedModel.from_file(
                FOLDER / Path(path).name, role=role, name=spec.name, pace=pace, sleep=sleep
            )
        if provider_of(spec.kind).hosted:
            return build_model(spec, key, progress)
        return ScriptedModel.from_replies(
            [ALWAYS], name=spec.name, capabilities=known_capabilities(spec)
        )

    libraries = Libraries(data / "index", find_embedder=lambda: None)
    return Engine(
        data,
        pool=ModelPool(build),
        libraries=libraries,
        retry=RetryPolicy(pause=0.0),
        **options,
    )


def play(engine: Engine, name: str, owner: str = ME) -> str:
    """Plays a walkthrough to its end; the run's id."""
    return run(engine, walkthrough(name).spec(), owner)


def run(engine: Engine, spec: RunSpec, owner: str = ME) -> str:
    """Runs `spec` to its end; the run's id."""

    async def to_the_end() -> str:
        run_id = await engine.service.start(spec, owner=owner)
        async for _ in engine.service.follow(run_id, owner=owner):
            pass
        return run_id

    return engine.call(to_the_end())


def load(engine: Engine, run_id: str, owner: str = ME) -> Trace:
    """What was recorded of a run."""
    return engine.call(engine.service.load(run_id, owner=owner))


def opened(name: str, run_id: str, **state: Any) -> AppTest:
    """The page, looking at a run."""
    test = page(name, **state)
    test.query_params["run"] = run_id
    return test.run()


def seen(test: AppTest) -> str:
    """The words of everything a page shows as HTML, without tags."""
    pieces = [node.proto.body for node in test.get("html")]
    for node in test.get("bidi_component"):
        data = json.loads(node.proto.json) if node.proto.json else None
        if isinstance(data, dict):
            pieces.append(str(data.get("html", "")))
    return html.unescape(_TAGS.sub("", "\n".join(pieces)))
