"""Pairs as the network reads them, in windows, kept in one file for the next start.

To split, tokenise and choose what to read of a hundred thousand pairs takes up to an hour. What
comes out is a function of the pairs and of how evidence is read, and is kept under a name that says
which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.models.judges.inputs import (
    EncodedPair,
    EvidenceReading,
    Near,
    load_tokenizer,
    pairs_for,
)
from pipelines.research.training.examples import TrainingPair
from pipelines.research.training.fit import TARGETS, doubted_pieces
from pipelines.research.training.shortcuts import SHORTCUTS

if TYPE_CHECKING:
    from tokenizers import Tokenizer


PART = 2000
"""Pairs that are kept together while the rest is prepared, which may be stopped in between."""


class PreparedClaim(NamedTuple):
    """A claim as word pieces.

    `target` are the labels that count as right. `doubted` says of the first pieces of every window,
    those of question and statement, whether the evidence does not support them: 1, 0, or -1 where
    that is not known. `overlap` is the share of the statement's words that the evidence has.
    """

    windows: tuple[EncodedPair, ...]
    target: tuple[float, ...]
    doubted: tuple[int, ...]
    overlap: float


class Shelf:
    """Prepared claims in flat arrays: a list of them would not fit into memory."""

    def __init__(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        self._arrays = arrays
        self._starts = {
            name: np.concatenate([[0], np.cumsum(arrays[name], dtype=np.int64)])
            for name in ("windows", "pieces", "doubts")
        }

    def __len__(self) -> int:
        return len(self._arrays["windows"])

    def __getitem__(self, number: int) -> PreparedClaim:
        first, last = self._starts["windows"][number : number + 2]
        windows = tuple(self._window(at) for at in range(int(first), int(last)))
        start, end = self._starts["doubts"][number : number + 2]
        return PreparedClaim(
            windows=windows,
            target=tuple(self._arrays["targets"][number].tolist()),
            doubted=tuple(self._arrays["doubted"][start:end].tolist()),
            overlap=float(self._arrays["overlap"][number]),
        )

    def length(self, number: int) -> int:
        """Return the number of word pieces of the longest window of a claim."""
        first, last = self._starts["windows"][number : number + 2]
        return int(self._arrays["pieces"][first:last].max())

    def _window(self, at: int) -> EncodedPair:
        start, end = self._starts["pieces"][at : at + 2]
        asked = int(self._arrays["asked"][at])
        size = int(end - start)
        return EncodedPair(
            ids=self._arrays["ids"][start:end].tolist(),
            types=[0] * asked + [1] * (size - asked),
            matches=self._arrays["matches"][start:end].tolist(),
        )

    def save(self, path: Path) -> None:
        """Write to `path`, whole or not at all."""
        part = path.with_suffix(".part.npz")
        np.savez(part, **self._arrays)  # pyright: ignore[reportArgumentType]
        part.replace(path)

    @classmethod
    def joined(cls, shelves: Sequence[Shelf]) -> Shelf:
        """Return the claims of several shelves, in order; at least one."""
        names = shelves[0]._arrays
        return cls({name: np.concatenate([one._arrays[name] for one in shelves]) for name in names})

    @classmethod
    def load(cls, path: Path) -> Shelf:
        """Return what `save` wrote."""
        with np.load(path) as found:
            return cls({name: found[name] for name in found.files})


def shelved(claims: Sequence[PreparedClaim]) -> Shelf:
    """Return prepared claims as a shelf."""
    windows = [window for claim in claims for window in claim.windows]
    return Shelf(
        {
            "windows": np.array([len(claim.windows) for claim in claims], dtype=np.int32),
            "pieces": np.array([len(window.ids) for window in windows], dtype=np.int32),
            "asked": np.array([window.types.count(0) for window in windows], dtype=np.int32),
            "ids": np.array([i for window in windows for i in window.ids], dtype=np.uint16),
            "matches": np.array([m for window in windows for m in window.matches], dtype=np.uint8),
            "targets": np.array([claim.target for claim in claims], dtype=np.float32),
            "doubts": np.array([len(claim.doubted) for claim in claims], dtype=np.int32),
            "doubted": np.array([d for claim in claims for d in claim.doubted], dtype=np.int8),
            "overlap": np.array([claim.overlap for claim in claims], dtype=np.float32),
        }
    )


def prepare(
    examples: Sequence[TrainingPair],
    encoder: Path,
    reading: EvidenceReading,
    near: Near | None = None,
) -> Shelf:
    """Return every example as the network reads it; equal ones are read once. One without
    evidence is out.

    `encoder` is the folder of the tokenizer.
    """
    tokenizer = load_tokenizer(encoder)
    known: dict[TrainingPair, PreparedClaim | None] = {}
    found: list[PreparedClaim] = []
    for example in examples:
        if example not in known:
            known[example] = _prepared(tokenizer, example, reading, near)
        claim = known[example]
        if claim is not None:
            found.append(claim)
    return shelved(found)


def _prepared(
    tokenizer: Tokenizer, example: TrainingPair, reading: EvidenceReading, near: Near | None
) -> PreparedClaim | None:
    windows = pairs_for(tokenizer, example.claim, reading.windows, reading, near)
    if not windows:
        return None
    return PreparedClaim(
        windows=tuple(windows),
        target=TARGETS[example.label],
        doubted=doubted_pieces(tokenizer, example),
        overlap=SHORTCUTS["word overlap"](example),
    )


def shelf_of(
    folder: Path,
    examples: Sequence[TrainingPair],
    encoder: Path,
    reading: EvidenceReading,
    near: Near | None = None,
    say: Callable[[str], None] = lambda said: None,
) -> Shelf:
    """Return the shelf of these examples in `folder`; made and written there by the first call.

    It is made in parts, which are kept: `say` may raise between two of them, and the next call goes
    on after the last one.
    """
    name = _name(examples, reading)
    path = folder / f"prepared-{name}.npz"
    if path.is_file():
        return Shelf.load(path)
    parts: list[Path] = []
    for start in range(0, max(1, len(examples)), PART):
        part = folder / f"part-{name}-{start}.npz"
        parts.append(part)
        if not part.is_file():
            some = examples[start : start + PART]
            prepare(some, encoder, reading, near).save(part)
            say(f"{start + len(some)} of {len(examples)} pairs as word pieces")
    shelf = Shelf.joined([Shelf.load(part) for part in parts])
    shelf.save(path)
    for part in parts:
        part.unlink()
    return shelf


def _name(examples: Sequence[TrainingPair], reading: EvidenceReading) -> str:
    found = sha256(repr(reading).encode())
    for example in examples:
        found.update(example.model_dump_json().encode())
    return found.hexdigest()[:12]
