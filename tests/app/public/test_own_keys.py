"""Two visitors of the Space at the same time, each with a model and a key of their own.

Each key goes to the model it was typed for, and is kept nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from app.public.page import SpacePage
from app.public.visitors import ModelCatalog, Runs, VisitorLimits, VisitorSession
from pipelines.engine.library import Libraries
from pipelines.engine.pool import Admission, ModelPool
from pipelines.engine.service import Engine
from pipelines.errors import NotFoundError
from pipelines.models.base import Model
from pipelines.run.events import ModelSpec
from pipelines.store.exchange import export_lines
from tests.scripted.fakes import FakeModel

if TYPE_CHECKING:
    import gradio as gr

REQUEST = cast("gr.Request", None)
NAMES = ("zabrowska", "quillfeather")


def key_of(name: str) -> str:
    return f"never-to-be-stored-{name}-8841"


def content(folder: Path) -> str:
    """Everything that is kept there."""
    files = (path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return b"\n".join(files).decode(errors="replace")


async def test_each_key_goes_to_its_own_model_and_is_kept_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    built: list[tuple[str, str | None]] = []
    model = FakeModel("In Hope, Arkansas.")

    def build(spec: ModelSpec, key: str | None, progress: Callable[[str, float], None]) -> Model:
        built.append((spec.name, key))
        return model

    libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
    engine = Engine(tmp_path, pool=ModelPool(build), libraries=libraries)
    try:
        runs = Runs(engine, Admission(2))
        page = SpacePage(runs, ModelCatalog({}), VisitorLimits())

        async def met(name: str) -> tuple[VisitorSession, str]:
            """What a visitor is shown and handed out who asks a question and shares the run."""
            visit = VisitorSession(owner=name)
            own = ("openai", f"model of {name}", key_of(name), "")
            frames = [
                str(frame)
                async for frame in page.answer(visit, None, "Who?", ["direct"], REQUEST, *own)
            ]
            assert visit.watched is not None
            trace = await runs.load(visit.watched.run_id, name)
            (shared, _), report = await page.share(visit), await page.report(visit)
            return visit, "\n".join((*frames, shared, report, *export_lines(trace)))

        met_at_once = await asyncio.gather(*map(met, NAMES))
        assert set(built) == {(f"model of {name}", key_of(name)) for name in NAMES}
        for number, (visit, told) in enumerate(met_at_once):
            other = NAMES[1 - number]
            assert f"model of {NAMES[number]}" in told
            assert other not in told
            assert visit.watched is not None
            with pytest.raises(NotFoundError):
                await runs.load(visit.watched.run_id, other)
        everything = "\n".join([*(told for _, told in met_at_once), caplog.text])
    finally:
        engine.close()
    everything += content(tmp_path)
    assert "model of quillfeather" in everything
    for name in NAMES:
        assert key_of(name) not in everything
