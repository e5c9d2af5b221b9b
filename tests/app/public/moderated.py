"""A Space whose operator keeps visitors' verdicts, and a run that somebody has shared in it."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path

from pipelines.annotation.leading import create_session
from pipelines.annotation.types import SessionSpec
from pipelines.store import RunStore, file_url
from tests.app.serving import RECORDED


def visitors_session(folder: Path) -> str:
    """A session for visitors' verdicts in the database of a data folder; its id."""
    with closing(RunStore(file_url(folder))) as store:
        spec = SessionSpec(tasks=("answer",), visitors=True)
        return create_session(store, "operator", "Visitors", spec, []).session_id


def share_recording(store: RunStore, owner: str) -> str:
    """A run of `owner` that everybody may read; the id of its copy."""
    text = gzip.decompress(RECORDED.read_bytes()).decode()
    return store.share(store.import_run(text, owner), owner)
