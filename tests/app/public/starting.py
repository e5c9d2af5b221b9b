"""The Space started as the platform starts it: `python app/space.py`, on a port of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[3]
_FAULTS = ("Traceback (most recent call last)",)


@dataclass(frozen=True)
class Started:
    """A running Space. `log` is what it said so far."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def memory(self) -> int:
        """Bytes of memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


@contextmanager
def started(
    data: Path,
    python: Path | str = sys.executable,
    *,
    under: Sequence[str] = (),
    **settings: str,
) -> Iterator[Started]:
    """Until the end of the block; fails when the Space said anything went wrong.

    `under` is what Python is run by.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "VERISCOPE_DATA": str(data),
        "VERISCOPE_STRICT_MESSAGES": "1",
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        **settings,
    }
    log = data / "space.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*under, python, "app/space.py"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            found = Started(f"http://127.0.0.1:{port}", process, log)
            _wait_until_served(found)
            yield found
        finally:
            process.terminate()
            process.wait(timeout=240)
    told = log.read_text(errors="replace")
    assert not [fault for fault in _FAULTS if fault in told], told


def _wait_until_served(space: Started) -> None:
    while space.process.poll() is None:
        try:
            with urlopen(f"{space.url}/health", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"The Space ended before it served anything:\n{space.log.read_text()}")
