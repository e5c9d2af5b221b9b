"""Servers of the kinds a model may stand behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.scripted.wire import Wire, serve

_PATIENCE = 180.0


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A server whose every answer the test decides."""
    with serve() as running:
        yield running


class TransformersServer(NamedTuple):
    """A running `transformers serve` and the id of its model."""

    url: str
    model: str


@pytest.fixture(scope="session")
def transformers_server() -> Iterator[TransformersServer]:
    """`transformers serve`, of a model that says the same to everything, in English."""
    with tempfile.TemporaryDirectory() as folder:
        _save_model(Path(folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            str(Path(sys.executable).with_name("transformers")),
            *("serve", folder, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"),
        ]
        # More threads wait for each other, and for ever on a machine that is busy elsewhere.
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        with (
            tempfile.TemporaryFile() as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
        ):
            try:
                _await_health(f"http://127.0.0.1:{port}/health", process)
                yield TransformersServer(f"http://127.0.0.1:{port}/v1", folder)
            finally:
                process.terminate()


def _save_model(folder: Path) -> None:
    from tests.pipelines.models.transformers import tiny

    tokenizer = tiny.byte_level_tokenizer()
    start = tiny.last_prompt_token(tokenizer)
    transitions = tiny.recite(tokenizer, "The capital of France is Paris.", after=start)
    tiny.save_reciter(folder, tokenizer, transitions)


def _await_health(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, "transformers serve ended by itself"
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError("transformers serve did not come up")
