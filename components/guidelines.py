"""Guidelines for annotators to begin with, written for the tasks that a session has."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from functools import cache

from components.theme import ASSETS
from pipelines.annotation.types import TASKS, Task
from pipelines.types import Language


def starting_guidelines(tasks: Collection[Task], language: Language) -> str:
    """Return the guidelines in Markdown: what is asked of everybody, then a part for each task."""
    texts = _texts()[language]
    parts = ["intro", *(task for task in TASKS if task in tasks)]
    return "\n\n".join(texts[part].strip() for part in parts) + "\n"


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads((ASSETS / "guidelines.toml").read_text(encoding="utf-8"))
