"""Many texts in one file, of which any can be read without the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class LineStore:
    """Lines of a file, memory-mapped, by position from 0. A line holds no line feed."""

    def __init__(self, lines: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._lines = lines
        self._offsets = offsets

    @staticmethod
    def write(folder: Path, name: str, lines: Iterable[str]) -> int:
        """Write at least one line into `name`.jsonl in `folder` as they come; return how many."""
        offsets = [0]
        with (folder / f"{name}.jsonl").open("wb") as file:
            for line in lines:
                offsets.append(offsets[-1] + file.write(f"{line}\n".encode()))
        np.save(folder / f"{name}.offsets.npy", np.array(offsets, dtype=np.int64))
        return len(offsets) - 1

    @classmethod
    def open(cls, folder: Path, name: str) -> LineStore:
        """Map what `write` left in `folder`. `OSError` or `ValueError` when it is unusable."""
        offsets = np.load(folder / f"{name}.offsets.npy", mmap_mode="r")
        lines = np.memmap(folder / f"{name}.jsonl", dtype=np.uint8, mode="r")
        if len(offsets) < 2 or offsets[-1] != len(lines):
            raise ValueError(f"The {name} and their offsets do not belong together.")
        return cls(lines, offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> bytes:
        position = range(len(self))[position]
        start, end = self._offsets[position : position + 2]
        return self._lines[start:end].tobytes()
