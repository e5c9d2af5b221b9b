"""The engine behind the screens: one a process and data folder, shared by every visitor."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from pipelines.engine import Engine

__all__ = ["close_engines", "data_folder", "engine"]

_engines: dict[Path, Engine] = {}
_lock = Lock()


def data_folder() -> Path:
    """Where runs, models and indexes are kept: VERISCOPE_DATA, else `.veriscope` here."""
    return Path(os.environ.get("VERISCOPE_DATA") or ".veriscope").expanduser().resolve()


def engine() -> Engine:
    """The engine of the data folder, started when it is first asked for."""
    folder = data_folder()
    with _lock:
        if folder not in _engines:
            _engines[folder] = Engine(folder)
        return _engines[folder]


def close_engines() -> None:
    """Stop every run and release everything; the next call to `engine` starts afresh."""
    with _lock:
        while _engines:
            _engines.popitem()[1].close()
