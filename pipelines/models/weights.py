"""The weights of a GGUF file as this machine computes fastest with them: a copy in 8-bit numbers.

llama.cpp multiplies blocks of 4-bit numbers with an offset (Q4_1) and of 5-bit numbers (Q5_0) one
vector at a time. For blocks of 8-bit numbers (Q8_0) it has kernels that read many tokens of a
prompt together, on all common processors. Every 4-bit number with its offset is near one of the
8-bit numbers, so that the copy says nearly the same, which does not hold for Q4_0
(docs/measurements.md).

An adapter that is always on is added to the weights of the copy: beside them it would be computed
apart at every step, in many small products.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

_SLOW = (3, 6)
"""The kinds of blocks that are read slowly, Q4_1 and Q5_0."""

_LOOKED_UP, _OUTPUT = b"token_embd.weight", b"output.weight"
"""The first is only looked up row by row, unless it is the second too."""

_READ = 2**20
_LARGEST = 10**9
"""Bytes. The copy of a larger file costs more than it gains."""

# Of the kinds of values that a field may have, those of a fixed size, in bytes (gguf.md).
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY = 8, 9


def requantized(
    source: Path, folder: Path, *others: Path, adapter: Path | None = None
) -> Path | None:
    """Return the copy of `source` in `folder`, or in one of `others`, which are only read.

    Where it is in none it is made, which blocks for seconds. The weights of `adapter`, a LoRA in a
    GGUF file, are added to those of the copy.

    The copy's name holds the digests of what it is made of and of itself, so that one which is
    damaged, or of another source, is not used. None where the copy gains nothing or cannot be made:
    no room on the disk, no right to write, a source that cannot be read.
    """
    try:
        if not _gains(source):
            return None
        made_of = (source,) if adapter is None else (source, adapter)
        stem = f"{source.stem.removesuffix('.Q4_1')}.Q8_0.{_digest(*made_of)}"
        for place in (folder, *others):
            for known in sorted(place.glob(f"{stem}.*.gguf")):
                if known.name == f"{stem}.{_digest(known)}.gguf":
                    return known
                if place == folder:
                    known.unlink()
        return _made(source, folder, stem, adapter)
    except Exception as error:
        # Whatever it is, the source serves as well, only more slowly.
        _logger.warning("%s is used as it is shipped: %s", source.name, error)
        return None


def _gains(source: Path) -> bool:
    if source.stat().st_size > _LARGEST:
        return False
    header = _GgufHeader(np.memmap(source, np.uint8, mode="r"))
    return any(header.is_slow(tensor) for tensor in header.tensors)


def _made(source: Path, folder: Path, stem: str, adapter: Path | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    _delete_left(folder, stem)
    handle, name = tempfile.mkstemp(suffix=".part", prefix=f"{stem}.", dir=folder)
    part = Path(name)
    try:
        written = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            for piece in _pieces(source, {} if adapter is None else _learned(adapter)):
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


class _LowRank(NamedTuple):
    """What an adapter adds to one matrix: `scale` times the product of `b` and `a`."""

    a: NDArray[np.float16]
    b: NDArray[np.float16]
    scale: float

    def added_to(self, rows: NDArray[np.float32]) -> NDArray[np.floating]:
        return rows + self.scale * (self.b.astype(np.float32) @ self.a.astype(np.float32))


def _learned(adapter: Path) -> dict[bytes, _LowRank]:
    """Return what a LoRA adds, by the name of the tensor; ValueError where it is no LoRA."""
    from gguf import GGUFReader

    reader = GGUFReader(adapter)
    alpha = reader.get_field("adapter.lora.alpha")
    if alpha is None:
        raise ValueError("It holds no LoRA.")
    parts = {tensor.name: tensor.data for tensor in reader.tensors}
    found: dict[bytes, _LowRank] = {}
    for name, a in parts.items():
        tensor, _, side = name.rpartition(".")
        if side == "lora_a":
            # As llama.cpp weighs it: alpha by the rank.
            scale = float(alpha.contents()) / len(a)
            found[tensor.encode()] = _LowRank(a, parts[f"{tensor}.lora_b"], scale)
    return found


def _pieces(source: Path, learned: Mapping[bytes, _LowRank]) -> Iterator[bytes]:
    """Yield the bytes of the copy, from its beginning to its end."""
    file = np.memmap(source, np.uint8, mode="r")
    header = _GgufHeader(file)
    fields = bytearray(file[: header.fields_end])
    if header.type_at is not None:
        struct.pack_into("<I", fields, header.type_at, _TYPE_Q8_0)
    tensors = sorted(header.tensors, key=lambda tensor: tensor.at)
    if missing := learned.keys() - {tensor.name for tensor in tensors}:
        raise ValueError(f"The adapter is of other weights: {min(missing)!r}.")
    changed = {one.name for one in tensors if header.is_slow(one) or one.name in learned}
    ends = [*(tensor.at for tensor in tensors[1:]), len(file)]
    table, offset = b"", 0
    for tensor, end in zip(tensors, ends, strict=True):
        kind = _Q8_0 if tensor.name in changed else tensor.kind
        table += struct.pack("<Q", len(tensor.name)) + tensor.name
        table += struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        table += struct.pack("<IQ", kind, offset)
        blocks = tensor.size // _BLOCK * _BLOCK_BYTES
        offset += _aligned(blocks if tensor.name in changed else end - tensor.at)
    yield bytes(fields)
    yield table
    yield bytes(_aligned(len(fields) + len(table)) - len(fields) - len(table))
    for tensor, end in zip(tensors, ends, strict=True):
        data = file[tensor.at : end]
        added = learned.get(tensor.name)
        numbers = _in_8_bits(tensor, data, added) if tensor.name in changed else data.tobytes()
        yield numbers
        yield bytes(_aligned(len(numbers)) - len(numbers))


def _in_8_bits(tensor: _Tensor, data: NDArray[np.uint8], added: _LowRank | None) -> bytes:
    # Imported here: it is needed at the first start only.
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize, quantize

    kind = GGMLQuantizationType(tensor.kind)
    block, block_bytes = GGML_QUANT_SIZES[kind]
    size = tensor.size // block * block_bytes
    if len(data) < size:
        raise ValueError("Numbers are missing at its end.")
    rows = data[:size].reshape(-1, tensor.shape[0] // block * block_bytes)
    values = dequantize(rows, kind)
    return quantize(
        values if added is None else added.added_to(values), GGMLQuantizationType.Q8_0
    ).tobytes()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _digest(*paths: Path) -> str:
    read = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_READ):
                read.update(piece)
    return _short(read)


def _short(digest: Any) -> str:
    return str(digest.hexdigest())[:16]


def chat_template(path: Path) -> str:
    """Return the chat template of a GGUF file; "" where it has none, or cannot be read."""
    try:
        return _GgufHeader(np.memmap(path, np.uint8, mode="r")).template
    except (OSError, ValueError, struct.error, KeyError, IndexError):
        return ""
