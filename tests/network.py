"""Watches that tests, and what they start, reach nothing but this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.watcher import sitecustomize
from tests.watcher.sitecustomize import LOG

_FOLDER = str(Path(sitecustomize.__file__).parent)


def begin() -> Path:
    """Watch this process and all that it starts from now on; the file in which they note it."""
    handle, name = tempfile.mkstemp(prefix="veriscope-outside-", suffix=".log")
    os.close(handle)
    os.environ[LOG] = name
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_FOLDER, before]))
    sitecustomize.begin(name)
    return Path(name)


def noted(log: Path) -> list[str]:
    """What was noted since the last call."""
    if not log.stat().st_size:
        return []
    found = log.read_text(encoding="utf-8").splitlines()
    log.write_text("")
    return found
