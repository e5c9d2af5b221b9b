"""Make sure of the programs that tests start: `python -m scripts.programs browser|postgresql`.

An installed one is taken; else Debian's package is installed, where this is Debian and we are root.
For a browser, Playwright's download is the last way. Fails, and says what to do, when none of them
leaves a program that works.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.browser import find_chromium
from tests.postgresql import find_postgresql

Installer = Callable[[], object]

NO_BROWSER = (
    "Browser tests need Chromium or Google Chrome, and none could be found or installed.\n"
    "Install one (Debian: apt-get install chromium fonts-noto-cjk), or name one that works:\n"
    "VERISCOPE_CHROMIUM=/path/to/chrome make test"
)
NO_FONT = (
    "Note: no font with Chinese characters was found, so pages will show boxes in their place.\n"
    "Install one, e.g. Noto Sans CJK (Debian: fonts-noto-cjk)."
)
NO_POSTGRESQL = (
    "Verification needs the PostgreSQL server programs, and they could not be found or installed.\n"
    "Install them (Debian: apt-get install postgresql), or name their folder:\n"
    "VERISCOPE_POSTGRESQL=/path/to/bin make verify"
)


def can_install() -> bool:
    """Return whether this is Debian itself and we are root.

    Not its derivatives: Ubuntu's chromium package, for one, only points at a snap.
    """
    try:
        system = platform.freedesktop_os_release().get("ID")
    except OSError:
        return False
    return system == "debian" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> bool:
    """Install Debian's `packages`; False when it fails. The output is shown."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (["apt-get", "update"], ["apt-get", "install", "-y", *packages])
    return all(subprocess.run(command, env=environment).returncode == 0 for command in commands)


def installers(*packages: str, download: Installer | None = None) -> Iterator[Installer]:
    """Yield the ways to get `packages` on this machine, the most reliable first."""
    if can_install():
        yield partial(install, *packages)
    if download is not None:
        yield download


def ensure(find: Callable[[], Path | None], ways: Iterator[Installer], remedy: str) -> Path:
    """Return what `find` finds, installed if need be; SystemExit with `remedy` where there
    is none.
    """
    found = find()
    while found is None and (way := next(ways, None)):
        way()
        found = find()
    if found is None:
        sys.exit(remedy)
    return found


def working_browser() -> Path | None:
    """Return the browser the tests will find, if it starts: a download may lack the system's
    libraries.
    """
    browser = find_chromium()
    try:
        done = browser and subprocess.run([browser, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return browser if done and done.returncode == 0 else None


def ensure_browser() -> Path:
    """Ensure a browser that starts, and a font for Chinese, if we may install one."""
    playwright = [sys.executable, "-m", "playwright", "install", "chromium"]
    download = partial(subprocess.run, playwright, check=False)
    ways = installers("chromium", "fonts-noto-cjk", download=download)
    browser = ensure(working_browser, ways, NO_BROWSER)
    if not has_chinese_font() and can_install():
        install("fontconfig", "fonts-noto-cjk")
    if not has_chinese_font():
        print(NO_FONT, file=sys.stderr)
    return browser


def has_chinese_font() -> bool:
    """Return whether fontconfig knows a font for Chinese; True where fontconfig is not used."""
    if shutil.which("fc-list") is None:
        return sys.platform != "linux"
    listing = subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True, text=True)
    return bool(listing.stdout.strip())


def ensure_postgresql() -> Path:
    """Return the folder of the server's programs."""
    return ensure(find_postgresql, installers("postgresql"), NO_POSTGRESQL)


if __name__ == "__main__":
    wanted = {"browser": ensure_browser, "postgresql": ensure_postgresql}[sys.argv[1]]
    print(f"For tests: {wanted()}")
