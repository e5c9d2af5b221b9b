"""Serving a GGUF file inside this process by llama.cpp, over the OpenAI protocol."""

import asyncio
import atexit
import ctypes
import importlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from weakref import WeakSet

from pipelines.errors import CapabilityError, InvalidInputError, UnreachableError
from pipelines.models.gate import CallGate

__all__ = ["GgufServer", "Progress", "is_available"]

_CALLERS = 8
_TOKENS_EACH = 2048
_MOST_THREADS = 4
# How long a stopped server is given to end its calls, in seconds.
_PATIENCE = 15.0

Progress = Callable[[str, float], None]
"""Is told the stage of loading and how far it is, in [0, 1]."""

_T = TypeVar("_T")


def is_available() -> bool:
    """Whether llama.cpp can run in this process."""
    try:
        _llama_cpp()
    except CapabilityError:
        return False
    return True


@cache
def _llama_cpp() -> ModuleType:
    try:
        return importlib.import_module("xllamacpp")
    except (ImportError, OSError) as error:
        raise CapabilityError(
            "llama.cpp cannot be used in this process.",
            remedy="Install it with: pip install xllamacpp. Where it has no build for the"
            " machine, choose a transformers model or a model behind an address.",
            provider="embedded",
        ) from error


class GgufServer:
    """A GGUF file served by llama.cpp on a loopback port, with a key nobody else knows.

    `callers` texts are decoded in one batch; further ones wait. The context of `callers` times
    `tokens_each` tokens is shared, so one caller may use more than its part. `threads` None takes
    all cores but one, four at most: its threads wait for each other at every step, so that a busy
    core would hold up all of them. All methods may be called from any thread.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        callers: int = _CALLERS,
        tokens_each: int = _TOKENS_EACH,
        threads: int | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self.gate = CallGate()
        self.key = secrets.token_urlsafe(24)
        self._callers = callers
        self._context = callers * tokens_each
        self._threads = threads or max(1, min(_MOST_THREADS, _cores() - 1))
        self._lock = threading.Lock()
        self._server: Any = None
        self._stopping = False
        self._calls: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = set()

    def start(self, progress: Progress = lambda stage, fraction: None) -> str:
        """The base URL, after loading the weights if that has not been done; blocks for seconds.

        Raises InvalidInputError for a file that cannot be loaded, CapabilityError without
        llama.cpp.
        """
        with self._lock:
            if self._server is None:
                progress("load", 0.0)
                self._server = self._launch()
                _running.add(self)
                progress("load", 1.0)
            return f"{self._server.listening_address}/v1"

    def stop(self) -> None:
        """End the calls under way, then the server, and free its memory.

        Blocks until the calls are over, so it must not be called in the event loop they run in.
        """
        with self._lock:
            if self._server is None:
                return
            self._stopping = True
            for loop, call in list(self._calls):
                # A loop that is closed has no call under way any more.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(call.cancel)
            if not self._comes_to_rest():
                # To end it now would wait for ever, with every other thread held up meanwhile.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._server))
            # It runs as long as its object lives; there is no other way to end it.
            self._server = None
            self._stopping = False
            _running.discard(self)

    async def watch_over(self, writing: Coroutine[Any, Any, _T]) -> _T:
        """Await a call, which `stop` may end; raises UnreachableError when it does."""
        call = asyncio.ensure_future(writing)
        entry = (asyncio.get_running_loop(), call)
        self._calls.add(entry)
        try:
            if self._server is None or self._stopping:
                call.cancel()
            return await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise UnreachableError(
                f"{self.name} was closed.", remedy="Choose the model again.", provider="local"
            ) from None
        finally:
            self._calls.discard(entry)

    def _comes_to_rest(self) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            busy = self.counters()
            if not busy["requests_processing"] and not busy["requests_deferred"]:
                return True
            time.sleep(0.02)
        return False

    def counters(self) -> dict[str, float]:
        """llama.cpp's own counters, e.g. `requests_processing` and `n_busy_slots_per_decode`.

        Empty while the server is stopped.
        """
        server = self._server
        lines = () if server is None else str(server.handle_metrics()).splitlines()
        pairs = (line.split() for line in lines if line.startswith("llamacpp:"))
        return {name.removeprefix("llamacpp:"): float(value) for name, value in pairs}

    def _launch(self) -> Any:
        engine = _llama_cpp()
        _check_gguf(self.path)
        params = engine.CommonParams()
        params.model.path = str(self.path)
        # Without an alias every reply would name the file with its full path.
        params.model_alias = {self.name}
        params.port = 0
        params.api_keys = [self.key]
        params.cors_origins = ""
        params.ui = False
        params.endpoint_slots = False
        params.endpoint_metrics = True
        params.verbosity = 0
        params.n_parallel = self._callers
        params.n_ctx = self._context
        params.kv_unified = True
        params.cache_ram_mib = 256
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        # A first token is a verdict here, so a model that could think aloud first is told not to.
        params.enable_reasoning = 0
        try:
            return engine.Server(params)
        except Exception as error:
            raise InvalidInputError(
                f"llama.cpp could not load {self.path.name}.",
                remedy="Check that the file is complete and that there is enough memory for it.",
                provider=self.name,
            ) from error


_running: WeakSet[GgufServer] = WeakSet()


@atexit.register
def _stop_all() -> None:
    # Its threads must end before the interpreter takes their surroundings away.
    for server in list(_running):
        server.stop()


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _check_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise InvalidInputError(
            f"The file {path.name} cannot be read.", remedy="Check its path and permissions."
        ) from error
    if magic != b"GGUF":
        raise InvalidInputError(
            f"{path.name} is not a GGUF file.",
            remedy="Choose a model file that ends in .gguf.",
        )
