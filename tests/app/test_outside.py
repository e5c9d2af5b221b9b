"""Nothing leaves this machine unless somebody asked for it: whole sessions, watched to the system.

Every test is watched too (`tests/conftest.py`), and every page a browser opens; here it is seen
that the watching finds something, and native code is watched as well.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from gradio_client import Client
from playwright.sync_api import Browser, expect

from app.exposure import SPACE_HEADERS
from tests.app.public.starting import started
from tests.app.serving import (
    ROOT,
    ask,
    go_to,
    leave_out,
    serve_workbench,
    visiting,
    wait_for_end,
    wait_until_drawn,
)
from tests.network import CALLS, TRACE, calls_outside, watch_pages
from tests.watcher.sitecustomize import LOG, is_here

REACHING = """
import socket
for host in ("127.0.0.1", "192.0.2.1"):
    with socket.socket() as one:
        one.settimeout(0.01)
        try:
            one.connect((host, 9))
        except OSError:
            pass
try:
    socket.getaddrinfo("nowhere.invalid", 80)
except OSError:
    pass
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
    try:
        one.sendto(b"", ("2001:db8::1", 9))
        one.connect(("::1", 9))
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("host", "here"),
    [
        (None, True),
        ("", True),
        ("localhost", True),
        (b"127.0.0.1", True),
        ("127.9.9.9", True),
        ("0x7f.1", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("8.8.8.8", False),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.example", False),
    ],
)
def test_what_this_machine_is(host: object, here: bool):
    assert is_here(host) == here


def test_python_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "log"
    monkeypatch.setenv(LOG, str(log))
    subprocess.run([sys.executable, "-c", REACHING], check=True)
    found = log.read_text(encoding="utf-8")
    events = re.findall(r"^(\S+) '([^']+)'", found, flags=re.MULTILINE)
    assert events == [
        ("socket.connect", "192.0.2.1"),
        ("socket.getaddrinfo", "nowhere.invalid"),
        ("socket.sendto", "2001:db8::1"),
    ]


def traced(log: Path) -> tuple[str, ...]:
    """What a program is run by, so that `log` has its calls."""
    return (*TRACE, *CALLS, "-o", str(log))


@pytest.mark.verify
def test_native_code_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(LOG)
    log = tmp_path / "calls"
    subprocess.run([*traced(log), sys.executable, "-c", REACHING], check=True)
    wait_for_tracer(log)
    found = "\n".join(calls_outside(log))
    assert '"192.0.2.1"' in found
    assert '"2001:db8::1"' in found
    assert "htons(53)" in found
    assert '"127.0.0.1"' not in found
    assert '"::1"' not in found


def wait_for_tracer(log: Path) -> None:
    """Wait until nobody writes into `log` any more."""
    while any(str(log).encode() in _command(process) for process in Path("/proc").glob("[0-9]*")):
        time.sleep(0.05)


def _command(process: Path) -> bytes:
    with suppress(OSError):
        return (process / "cmdline").read_bytes()
    return b""


def knock(url: str, **headers: str) -> int:
    """The status with which the workbench answers who asks for a WebSocket with `headers`."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    wanted = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    try:
        connection.request("GET", "/_stcore/stream", headers=wanted | headers)
        return connection.getresponse().status
    finally:
        connection.close()


MOST_OPEN: dict[str, Any] = {
    "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
    "VERISCOPE_HOSTS": "here.example",
}
"""Served on every address: where Streamlit would look for the machine's own on the internet."""


@pytest.mark.verify
def test_a_session_at_the_workbench_reaches_nothing_outside(
    sample_index: Path, tmp_path: Path, browser: Browser
):
    log = tmp_path / "calls"
    (tmp_path / "index").symlink_to(sample_index)
    with (
        serve_workbench(tmp_path, under=traced(log), **MOST_OPEN) as workbench,
        visiting(browser, workbench) as visitor,
    ):
        page = visitor.open()
        leave_out(page, "rowen", "drad", "ever", "haarag", "slm")
        ask(page)
        wait_for_end(page)
        for name in ("DRAD", "Rowen", "Compare", "Runs", "Models"):
            go_to(page, name)
            wait_until_drawn(page)
        expect(page.get_by_text("Other people can reach this workbench")).to_be_visible()
        assert "Anybody who reaches this port can use it" in (tmp_path / "server.log").read_text()
        own = urlsplit(workbench.url).netloc
        assert knock(workbench.url, Origin=workbench.url) == 101
        # Another site's page, and one whose name was made to lead here.
        assert knock(workbench.url, Origin="http://evil.example") == 403
        assert knock(workbench.url, Host=own.replace("127.0.0.1", "evil.example")) == 403
    wait_for_tracer(log)
    assert calls_outside(log) == []


@pytest.mark.verify
def test_a_session_at_the_space_reaches_nothing_outside(tmp_path: Path, browser: Browser):
    log = tmp_path / "calls"
    asked: list[str] = []
    with started(tmp_path, under=traced(log), GRADIO_SERVER_NAME="0.0.0.0") as space:
        assert "Anybody who reaches this port can use the page" in space.log.read_text()
        context = browser.new_context()
        watch_pages(context, asked.append)
        page = context.new_page()
        page.goto(space.url)
        # The walkthrough plays.
        expect(page.locator("[data-i]").first).to_be_visible(timeout=120_000)
        client = Client(space.url, verbose=False)
        found = client.predict("Where was Bill Clinton born?", "direct", api_name="/ask")
        assert found["status"] == "finished"
        context.close()
        with urlopen(space.url, timeout=60) as answer:
            assert SPACE_HEADERS.items() <= dict(answer.headers).items()
            # The hub shows it in a frame.
            assert "x-frame-options" not in answer.headers
    wait_for_tracer(log)
    assert calls_outside(log) == []
    assert asked == []


@pytest.mark.verify
def test_the_command_line_reaches_nothing_outside(tmp_path: Path):
    log = tmp_path / "calls"
    question = ["ask", "Where was Bill Clinton born?", "--method", "direct"]
    for words in (["models", "catalogue"], question):
        command = [*traced(log), sys.executable, "-m", "pipelines", "--data", str(tmp_path), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        wait_for_tracer(log)
        assert calls_outside(log) == []
