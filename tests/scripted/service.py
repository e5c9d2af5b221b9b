"""Services on scripted models, for commands that open a service of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.models.scripted import ScriptedModel

OpenService = Callable[[Path], Service]


def scripted(*replies: Any) -> OpenService:
    """Services whose every model answers with `replies`."""

    def open_service(data: Path) -> Service:
        return Service(
            data,
            pool=ModelPool(lambda spec, key, progress: ScriptedModel.from_replies(replies)),
            libraries=Libraries(data / "index", find_embedder=lambda: None),
        )

    return open_service
