"""Finds the Chromium that browser tests drive, on the PATH or among Playwright's downloads."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 60_000
"""Milliseconds that a page is given: the machine may be busy, and nothing here measures speed."""

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
DOWNLOADS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


def find_chromium() -> Path | None:
    """The browser VERISCOPE_CHROMIUM names, else an installed one, else Playwright's newest."""
    named = os.environ.get("VERISCOPE_CHROMIUM")
    candidates = iter([Path(named)]) if named else _candidates()
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def require_chromium() -> Path:
    """As `find_chromium`, but a missing browser is an error that says what to do."""
    path = find_chromium()
    if path is None:
        raise RuntimeError(
            "No Chromium was found. Run `make browser`, or set VERISCOPE_CHROMIUM to one."
        )
    return path


def _candidates() -> Iterator[Path]:
    for command in COMMANDS:
        if found := shutil.which(command):
            yield Path(found)
    yield from map(Path, APPLICATIONS)
    folder = _download_folder()
    for pattern in DOWNLOADS:
        yield from sorted(folder.glob(pattern), key=_revision, reverse=True)


def _download_folder() -> Path:
    if named := os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ms-playwright"
    if sys.platform == "win32":
        return Path.home() / "AppData" / "Local" / "ms-playwright"
    return Path.home() / ".cache" / "ms-playwright"


def _revision(path: Path) -> int:
    """The number in the folder name chromium-1234 above `path`."""
    for parent in path.parents:
        name, _, number = parent.name.rpartition("-")
        if name == "chromium" and number.isdigit():
            return int(number)
    return 0
