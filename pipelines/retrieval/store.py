"""Passages on disk: one JSON object a line, read through a memory map one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.types import Passage

__all__ = ["PassageStore"]

_LINES = "passages.jsonl"
_OFFSETS = "passages.offsets.npy"
_OF_A_SEARCH = {"score", "rank", "scores"}


class PassageStore:
    """The passages of a library by position. Only those asked for are read."""

    def __init__(self, lines: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._lines = lines
        self._offsets = offsets

    @staticmethod
    def write(folder: Path, passages: Iterable[Passage]) -> None:
        """Write at least one passage into `folder`."""
        offsets = [0]
        with (folder / _LINES).open("wb") as lines:
            for passage in passages:
                line = f"{passage.model_dump_json(exclude=_OF_A_SEARCH)}\n".encode()
                offsets.append(offsets[-1] + lines.write(line))
        np.save(folder / _OFFSETS, np.array(offsets, dtype=np.int64))

    @classmethod
    def open(cls, folder: Path) -> PassageStore:
        """Map what `write` left in `folder`. `OSError` or `ValueError` when it is unusable."""
        offsets = np.load(folder / _OFFSETS, mmap_mode="r")
        lines = np.memmap(folder / _LINES, dtype=np.uint8, mode="r")
        if len(offsets) < 2 or offsets[-1] != len(lines):
            raise ValueError("The passages and their offsets do not belong together.")
        return cls(lines, offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> Passage:
        position = range(len(self))[position]
        start, end = self._offsets[position : position + 2]
        return Passage.model_validate_json(self._lines[start:end].tobytes())

    def ranked(self, hits: Iterable[tuple[int, float, dict[str, float]]]) -> list[Passage]:
        """Passages of `(position, score, scores by retriever)`, best first, with ranks from 1."""
        return [
            self[position].model_copy(update={"score": score, "scores": scores, "rank": rank})
            for rank, (position, score, scores) in enumerate(hits, start=1)
        ]
