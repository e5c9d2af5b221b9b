"""Small files in the forms of the published ones, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.evaluation.datasets import open_data_set
from pipelines.evaluation.plan import Item


def lines(path: Path, *records: Mapping[str, Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in records), "utf-8")
    return path


def document(path: Path, value: Any) -> Path:
    """A file of one JSON value."""
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def items(path: Path, **options: Any) -> Sequence[Item]:
    """What `open_data_set` reads there."""
    return open_data_set(path, **options).items
