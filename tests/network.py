"""Watches that tests, what they start and the pages they open reach nothing but this machine."""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.watcher import sitecustomize
from tests.watcher.sitecustomize import LOG, is_here

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

_FOLDER = str(Path(sitecustomize.__file__).parent)


def begin() -> Path:
    """Watch this process and all that it starts from now on; the file in which they note it."""
    handle, name = tempfile.mkstemp(prefix="veriscope-outside-", suffix=".log")
    os.close(handle)
    atexit.register(Path(name).unlink, missing_ok=True)
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


def watch_pages(context: BrowserContext, found: Callable[[str], None]) -> None:
    """Call `found` with every address outside this machine that a page of `context` asks."""

    def look(url: str) -> None:
        parts = urlsplit(url)
        # What is in the page itself ("data:", "blob:") is asked of nobody.
        if parts.scheme in ("http", "https", "ws", "wss") and not is_here(parts.hostname):
            found(f"asked {url}")

    def look_at(page: Page) -> None:
        page.on("websocket", lambda socket: look(socket.url))

    context.on("request", lambda request: look(request.url))
    context.on("page", look_at)


TRACE = ("strace", "-f", "-D", "-qq", "--seccomp-bpf", "-e", "signal=none")
"""A program is put behind this, and behind -o and a file for `calls_outside`, to be watched with
all its native code and all that it starts. The program stays the direct child of who starts it."""

CALLS = ("-e", "trace=connect,sendto,sendmsg,sendmmsg")

_ADDRESS = re.compile(
    r"sa_family=AF_INET6?, .*?sin6?_port=htons\((\d+)\), "
    r"(?:.*?inet_pton\(AF_INET6, |sin_addr=inet_addr\()\"([^\"]+)\""
)


def calls_outside(trace: Path) -> list[str]:
    """The system calls in a trace that lead out of this machine; a resolver counts wherever it is.

    Connecting a datagram socket sends nothing, but nothing here has a reason to.
    """
    calls = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    return [
        call
        for call in calls
        if any(port == "53" or not is_here(host) for port, host in _ADDRESS.findall(call))
    ]
