"""Streamlit, serving the workbench on models that answer from scripts: none has to be loaded.

Walkthroughs are played at a third of their pace, and stand still while their data folder holds a
file of the name `HELD`.
"""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streamlit.web.cli import main

from app import engine as engines
from pipelines.engine.service import Engine
from tests.app.playing import HELD, open_engine

PACE = 0.02
"""Seconds between two words: readable on a screen that is drawn three times a second."""


def open_paced(data: Path, **options: Any) -> Engine:
    """An engine that plays walkthroughs in the open."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        while (data / HELD).exists():  # noqa: ASYNC110 - it is another process that holds it
            await asyncio.sleep(PACE)

    return open_engine(data, pace=PACE, sleep=sleep, **options)


if __name__ == "__main__":
    with patch.object(engines, "Engine", open_paced):
        main()
