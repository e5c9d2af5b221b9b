"""Notes every connection and every lookup of a name that leads out of this machine.

Python imports this file at its start where its folder is on the path, so that what tests start is
watched from its first import on. Native code is not: `tests/app/test_outside.py` watches that too.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

LOG = "VERISCOPE_WATCH_LOG"
"""The environment variable with the file in which it is noted."""

# Event to which of its arguments is a host, or an address that begins with one.
_EVENTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}


def is_here(host: object) -> bool:
    """Whether `host` is this machine: loopback, or the address that stands for all of its own."""
    if isinstance(host, bytes | bytearray):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str):
        return host is None
    if host in ("", "localhost"):
        return True
    try:
        # The short forms of IPv4 too, such as 0x7f.1.
        host = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        host = host.partition("%")[0]
    try:
        found = ip_address(host)
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def watcher(log: str) -> Callable[[str, tuple[Any, ...]], None]:
    """What `sys.addaudithook` takes; each line is the event, where to, and the test of the time."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        place = _EVENTS.get(event)
        if place is None:
            return
        target = arguments[place]
        if event in ("socket.connect", "socket.sendto"):
            if not isinstance(target, tuple):
                # A socket of the file system.
                return
            target = target[0]
        if not is_here(target):
            during = os.environ.get("PYTEST_CURRENT_TEST", "")
            with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing more is imported
                file.write(f"{event} {target!r} {during}\n")

    return watch


def begin(log: str) -> None:
    """Watch this process until its end: Python takes no hook back."""
    sys.addaudithook(watcher(log))


if __name__ == "sitecustomize" and os.environ.get(LOG):
    begin(os.environ[LOG])
