"""Where models are computed: a graphics card if there is one, numbers and batches that fit it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pipelines.errors import failure

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
U = TypeVar("U")

_DRIVER = Path("/dev/nvidiactl")

SWITCH = "VERISCOPE_GPU"
"""The environment variable that says which models use a graphics card: "all" (also where it is not
set), "writing" for language models alone, "none"."""

Work = Literal["writing", "reading"]
"""What a model does: language models write; judges and embedders read."""

_SHARE = 0.25
"""How much of the memory that is free a batch of a judge or an embedder may take: language models
may fill the rest meanwhile."""

_MOST_ROWS = 64
"""Texts that a judge or an embedder reads at once on a card: more are not faster."""

CLOSE = 0.01
"""How far probabilities, and cosines, in 16 bits may be from those in 32."""


def is_zerogpu() -> bool:
    """Return whether this is Hugging Face's ZeroGPU, where a process has a card for moments."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def device_for(work: Work) -> torch.device:
    """Return the device of a model: CUDA when there is one and the operator lets it, else the CPU.

    Raises InvalidInputError where VERISCOPE_GPU says something unknown.
    """
    import torch

    allowed = os.environ.get(SWITCH, "").strip().lower() or "all"
    if allowed not in ("all", "writing", "none"):
        raise failure("loading.no_such_device", switch=SWITCH, said=allowed)
    if not torch.cuda.is_available() or allowed == "none":
        return torch.device("cpu")
    # ZeroGPU lends its card to what is decoded there.
    kept_off = work == "reading" and (allowed == "writing" or is_zerogpu())
    return torch.device("cpu" if kept_off else "cuda")


def has_card() -> bool:
    """Return whether language models are computed on a card here, without importing PyTorch.

    Where PyTorch is not imported yet, the driver's own file tells.
    """
    if os.environ.get(SWITCH, "").strip().lower() == "none" or is_zerogpu():
        return False
    if "torch" in sys.modules:
        return device_for("writing").type == "cuda"
    return _DRIVER.exists()


def choose_dtype(device: torch.device) -> torch.dtype:
    """Return the number format of weights and activations that is best for the device."""
    import torch

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    able = torch.cpu.get_capabilities()
    # Without such instructions the processor emulates bfloat16 and is slower than in float32.
    native = able.get("amx_bf16") or able.get("avx512_bf16") or able.get("bf16")
    return torch.bfloat16 if native else torch.float32


def mixed_precision(device: str, *, enabled: bool = True) -> torch.autocast:
    """Return a context that computes in bfloat16 on a device that can do so itself, else in the
    type of the weights.

    Where it is emulated, it takes many times as long.
    """
    import torch

    narrow = enabled and choose_dtype(torch.device(device)) is torch.bfloat16
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=narrow)


def stays_close(device: torch.device, read: Callable[[], Any]) -> bool:
    """Return whether `read`, an array of probabilities or unit vectors of typical texts, changes by
    less than 0.01 in 16 bits on a card.

    Vectors, shape [texts, d], are compared by the cosines between them.
    """
    import numpy as np

    if device.type != "cuda":
        return False
    found = []
    for enabled in (False, True):
        with mixed_precision(str(device), enabled=enabled):
            numbers = np.asarray(read(), dtype=np.float64)
        found.append(numbers @ numbers.T if numbers.ndim == 2 else numbers)
    return bool(np.abs(found[0] - found[1]).max() < CLOSE)


def free_memory(device: torch.device) -> int:
    """Return the bytes that can still be taken on a device, what PyTorch holds unused included."""
    import torch

    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    # What is cached of files counts as free where the system says so.
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        told = dict(line.split(":", 1) for line in lines)
        return int(told["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def in_gigabytes(size: float) -> str:
    """Return a number of bytes as "0.64 GB"."""
    return f"{size / 1e9:.2f} GB" if size < 1e10 else f"{size / 1e9:.1f} GB"


def rows_of_length(device: torch.device, config: Any, usual: int) -> Callable[[int], int]:
    """Return how many texts of a number of tokens an encoder reads at once: `usual` on the CPU.

    On a card, as many as a quarter of its free memory holds, from 1 to 64. `config` is that of
    transformers; what a token takes is estimated from its widths, in 32 bits.
    """
    if device.type != "cuda":
        return lambda length: usual
    width = int(getattr(config, "hidden_size", None) or getattr(config, "d_model", 1024))
    inner = int(getattr(config, "intermediate_size", None) or getattr(config, "d_ff", 4 * width))
    heads = int(getattr(config, "num_attention_heads", None) or getattr(config, "num_heads", 16))

    def rows(length: int) -> int:
        # A layer's activations, and scores of attention twice where they are written out.
        each = 4 * length * (12 * width + 3 * inner + 2 * heads * length)
        return max(1, min(_MOST_ROWS, int(_SHARE * free_memory(device)) // max(1, each)))

    return rows


def calls_together(device: torch.device) -> int:
    """Return how many questions to a judge are read in one batch, from 16."""
    return _MOST_ROWS if device.type == "cuda" else 16


def like_lengths(lengths: Sequence[int], rows: Callable[[int], int]) -> Iterator[list[int]]:
    """Yield the places of texts of like length, together: less padding is read.

    `rows` says how many texts of a length are read at once; at least one is.
    """
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lambda at: lengths[at]):
        if batch and len(batch) + 1 > rows(lengths[at]):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def in_halves(items: Sequence[T], work: Callable[[Sequence[T]], Iterable[U]]) -> list[U]:
    """Return what `work` gives for all items together; where memory is short, for halves of them.

    Raises what it raises for an item alone.
    """
    try:
        return [*work(items)]
    except Exception as error:
        if len(items) < 2 or not is_out_of_memory(error):
            raise
    release_memory()
    half = len(items) // 2
    return in_halves(items[:half], work) + in_halves(items[half:], work)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory did not suffice, of a card or of the machine."""
    named = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return named or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


def release_memory() -> None:
    """Give what PyTorch holds unused back to the card: it may be in pieces that are too small."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
