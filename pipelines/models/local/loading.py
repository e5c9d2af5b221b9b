"""Finding a model's files and loading them, with progress and errors that say what to do.

A model is a folder, a GGUF file, or a repository of the hub.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import (
    AuthenticationError,
    InvalidInputError,
    RateLimitError,
    ServerFailedError,
    UnknownModelError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.loading import ONE_AT_A_TIME
from pipelines.models.base import Progress
from pipelines.models.local.prompting import read_vocabulary

if TYPE_CHECKING:
    import torch

    from pipelines.models.local.engine import Engine

__all__ = ["Source", "choose_dtype", "explain_failure", "find_source", "load_engine"]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True)
class Source:
    """Either `folder` or `hub_id` is set; `gguf_file` names the weights file within it.

    `label` is how messages name it: never a path of the machine.
    """

    label: str
    folder: Path | None = None
    hub_id: str | None = None
    gguf_file: str | None = None

    def fetch(self, progress: Progress | None = None) -> Path:
        """The folder with the files, downloaded to the hub's cache first where need be.

        Of a repository only what transformers reads is fetched: settings, tokenizer and, of the
        several formats of the same weights, safetensors where there are any.
        """
        if self.folder is not None:
            return self.folder
        if self.gguf_file is not None:
            return self._download([self.gguf_file], [], progress)
        # Weights in subfolders and "consolidated" files are second copies for other programs.
        others = ["*/*", "consolidated*"]
        folder = self._download(["*.safetensors"], others, progress)
        if not any(folder.glob("*.safetensors")):
            folder = self._download(["*.bin"], others, progress)
        return folder

    def _download(self, weights: list[str], unwanted: list[str], progress: Progress | None) -> Path:
        from huggingface_hub import snapshot_download
        from tqdm.auto import tqdm

        class Reporter(tqdm):
            """Draws nothing; hands the share of bytes on."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                kwargs.pop("name", None)
                self._counts_bytes = kwargs.get("unit") == "B"
                super().__init__(*args, **kwargs | {"disable": True})

            def update(self, n: float | None = 1) -> bool | None:
                self.n += n or 0
                if progress is not None and self._counts_bytes and self.total:
                    progress("downloading", min(1.0, self.n / self.total))
                return None

        assert self.hub_id is not None
        folder = snapshot_download(
            self.hub_id,
            allow_patterns=[*weights, "*.json", "*.txt", "*.model", "*.jinja"],
            ignore_patterns=unwanted,
            library_name="veriscope",
            tqdm_class=Reporter,
        )
        return Path(folder)


def find_source(path_or_hub_id: str | Path) -> Source:
    """Tell folder, GGUF file and hub id apart; no connection is made.

    "owner/repository:file.gguf" is a GGUF file of the hub.

    Raises UnknownModelError when a path leads nowhere, InvalidInputError when a folder holds no
    model.
    """
    given = str(path_or_hub_id).strip()
    hub_id, _, named = given.rpartition(":")
    if named.lower().endswith(".gguf") and "/" in hub_id and _HUB_ID.fullmatch(hub_id):
        return Source(named, hub_id=hub_id, gguf_file=named)
    path, gguf_file = Path(given).expanduser(), None
    label = path.resolve().name or given
    if path.suffix.lower() == ".gguf":
        path, gguf_file = path.parent, path.name
    if path.is_dir():
        if (path / (gguf_file or "config.json")).is_file():
            return Source(label, folder=path, gguf_file=gguf_file)
        if gguf_file is None:
            raise InvalidInputError(
                f"The folder {label!r} holds no model: config.json is missing.",
                remedy="Choose the folder that save_pretrained or a download of the model made.",
                provider=label,
            )
        raise UnknownModelError(
            f"There is no file named {gguf_file!r}.",
            remedy="Check the path of the GGUF file.",
            provider=label,
        )
    if isinstance(path_or_hub_id, str) and _HUB_ID.fullmatch(given) and not gguf_file:
        return Source(given, hub_id=given)
    raise UnknownModelError(
        f"There is no model named {label!r} on this machine.",
        remedy="Check the path: a folder with config.json and weights, a GGUF file, or a hub id.",
        provider=label,
    )


def load_engine(
    source: Source, *, dtype: str | None = None, progress: Progress | None = None
) -> Engine:
    """Read tokenizer and weights and place them on a device; blocks, for seconds to minutes.

    The device is CUDA when there is one, else the CPU. `dtype` is bfloat16 where the device
    computes in it natively, else float32; GPUs without it get float16. Raises one of
    `pipelines.errors`.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    folder = source.folder
    try:
        with ONE_AT_A_TIME:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            from pipelines.models.local.engine import Engine

        place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kind = choose_dtype(place) if dtype is None else getattr(torch, dtype)
        folder = source.fetch(progress)
        options = {} if source.gguf_file is None else {"gguf_file": source.gguf_file}
        with ONE_AT_A_TIME, _quietly(progress):
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=kind, output_loading_info=True, **options
            )
        model, found = loaded
        # transformers would fill them with random numbers and only warn.
        if found["missing_keys"]:
            raise ValueError(f"{len(found['missing_keys'])} weights are missing")
        model = model.to(place).eval().requires_grad_(False)
        return Engine(model, read_vocabulary(tokenizer))
    except VeriscopeError:
        raise
    except Exception as error:
        raise explain_failure(error, source, folder) from error


def choose_dtype(device: torch.device) -> torch.dtype:
    """The number format of weights and activations that is best for the device."""
    import torch

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    able = torch.cpu.get_capabilities()
    # Without such instructions the processor emulates bfloat16 and is slower than in float32.
    native = able.get("amx_bf16") or able.get("avx512_bf16") or able.get("bf16")
    return torch.bfloat16 if native else torch.float32


@contextmanager
def _quietly(progress: Progress | None) -> Iterator[None]:
    """Keep transformers' bars and warnings off the terminal, turning the bars into progress."""
    from transformers.utils import logging as library

    # This module draws its bar past the hook.
    gguf: Any = import_module("transformers.modeling_gguf_pytorch_utils")

    class Bar:
        """Stands in for tqdm around an iterable."""

        def __init__(self, items: Any = (), *_: Any, **__: Any) -> None:
            self._items = items

        def __iter__(self) -> Iterator[Any]:
            total = len(self._items)
            for number, item in enumerate(self._items, start=1):
                yield item
                if progress is not None:
                    progress("loading", number / total)

        def __getattr__(self, _: str) -> Any:
            return lambda *_, **__: None

    gguf_bar = gguf.tqdm
    previous = library.set_tqdm_hook(lambda _, args, kwargs: Bar(*args, **kwargs))
    # Left so: forward passes warn too, about kernels that are not installed.
    library.set_verbosity_error()
    gguf.tqdm = Bar
    try:
        yield
    finally:
        gguf.tqdm = gguf_bar
        library.set_tqdm_hook(previous)


def explain_failure(error: Exception, source: Source, folder: Path | None) -> VeriscopeError:
    """What went wrong while fetching or loading a model, as one of `pipelines.errors`."""
    kind, message, remedy = _explained(error, source.label, folder)
    return kind(message, remedy=remedy, provider=source.label)


def _explained(
    error: Exception, label: str, folder: Path | None
) -> tuple[type[VeriscopeError], str, str]:
    """The kind of error, what happened and what to do."""
    from huggingface_hub import errors as hub

    chain = _chain(error)
    for cause in chain:
        status = getattr(getattr(cause, "response", None), "status_code", None)
        unknown = isinstance(cause, hub.RepositoryNotFoundError | hub.HFValidationError)
        # A repository that is gated is also one that is not found.
        if isinstance(cause, hub.GatedRepoError) or (status in (401, 403) and not unknown):
            return (
                AuthenticationError,
                f"The hub does not give out {label!r} to everyone.",
                "Accept the model's terms on its page and set HF_TOKEN, or choose another.",
            )
        if unknown:
            return (
                UnknownModelError,
                f"Neither this machine nor the hub has a model named {label!r}.",
                'Check the spelling, e.g. "Qwen/Qwen3-0.6B"; private models need HF_TOKEN.',
            )
        if status == 429:
            return RateLimitError, "The hub asks to slow down.", "Try again in a minute."
        if status is not None and status >= 500:
            return ServerFailedError, f"The hub failed (status {status}).", "Try again later."
        if isinstance(cause, OSError) and cause.errno == errno.ENOSPC:
            return (
                InvalidInputError,
                f"There is no room on the disk for {label!r}.",
                "Free some space, or choose a smaller model.",
            )
    missing = (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled, ConnectionError, TimeoutError)
    libraries = {type(cause).__module__.partition(".")[0] for cause in chain}
    if libraries & {"httpx", "httpx2"} or any(isinstance(cause, missing) for cause in chain):
        return (
            UnreachableError,
            f"{label!r} could not be downloaded: the hub cannot be reached.",
            "Check the connection, or give the folder of a model that is on this machine.",
        )
    if type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError):
        return (
            InvalidInputError,
            f"{label!r} does not fit into memory.",
            "Choose a smaller model or another device.",
        )
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if isinstance(error, ImportError):
        return (
            InvalidInputError,
            f"A package that {label!r} needs is not installed ({said}).",
            "Install it, e.g. `pip install gguf` for GGUF files.",
        )
    return (
        InvalidInputError,
        f"{label!r} cannot be loaded as a language model ({said.replace(str(folder), label)}).",
        "Download it again, or choose a causal language model in transformers' own format.",
    )


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    return chain
