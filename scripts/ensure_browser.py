"""Make sure that browser tests have a Chromium: `python -m scripts.ensure_browser`.

Takes an installed one; else installs Debian's package where it may, else Playwright's download.
Fails, and says what to do, when none of them leaves a browser that starts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts import debian
from tests.browser import find_chromium

REMEDY = (
    "Browser tests need Chromium or Google Chrome, and none could be found or installed.\n"
    "Install one (Debian: apt-get install chromium fonts-noto-cjk), or name one that works:\n"
    "VERISCOPE_CHROMIUM=/path/to/chrome make test"
)
FONT_ADVICE = (
    "Note: no font with Chinese characters was found, so pages will show boxes in their place.\n"
    "Install one, e.g. Noto Sans CJK (Debian: fonts-noto-cjk)."
)


def starts(browser: Path) -> bool:
    """Whether `browser` runs at all: a download may lack the system's libraries."""
    try:
        done = subprocess.run([browser, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def has_chinese_font() -> bool:
    """Whether fontconfig knows a font for Chinese; True where fontconfig is not used."""
    if shutil.which("fc-list") is None:
        return sys.platform != "linux"
    listing = subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True, text=True)
    return bool(listing.stdout.strip())


def working_browser() -> Path | None:
    """The browser the tests will find, if it starts."""
    browser = find_chromium()
    return browser if browser and starts(browser) else None


def installers() -> Iterator[Callable[[], object]]:
    """The ways to get a browser on this machine, the most reliable first."""
    if debian.can_install():
        yield lambda: debian.install("chromium", "fonts-noto-cjk")
    download = [sys.executable, "-m", "playwright", "install", "chromium"]
    yield lambda: subprocess.run(download, check=False)


def ensure_browser() -> Path:
    """A browser that starts, installed if need be; SystemExit with a remedy where there is none."""
    browser = working_browser()
    for install in installers():
        if browser:
            break
        install()
        browser = working_browser()
    if browser is None:
        sys.exit(REMEDY)
    return browser


def ensure_font() -> None:
    """Install a Chinese font where we may, or say that one is missing."""
    if not has_chinese_font() and debian.can_install():
        debian.install("fontconfig", "fonts-noto-cjk")
    if not has_chinese_font():
        print(FONT_ADVICE, file=sys.stderr)


if __name__ == "__main__":
    print(f"Browser for tests: {ensure_browser()}")
    ensure_font()
