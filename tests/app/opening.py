"""The engine that pages use in tests without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import engine as engines
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import ModelSpec


@contextmanager
def page_engine(folder: Path, open_engine: Callable[[Path], Engine] = Engine) -> Iterator[Engine]:
    """The engine that `open_engine` opens in `folder`, as the one of all pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERISCOPE_DATA", str(folder))
        data = engines.data_folder()
        engine = open_engine(data)
        patch.setitem(engines._engines, data, engine)
        yield engine
        engine.close()


def always(reply: str) -> ModelPool:
    """Models that answer `reply`, up to 20 times each."""

    def build(spec: ModelSpec, key: str | None, progress: object) -> ScriptedModel:
        return ScriptedModel.from_replies([reply] * 20, name=spec.name)

    return ModelPool(build)
