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
_FILES = ("*.json", "*.txt", "*.model", "*.jinja")


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
        assert self.hub_id is not None
        if self.gguf_file is not None:
            return _download(self.hub_id, [self.gguf_file, *_FILES], [], progress)
        # Weights in subfolders and "consolidated" files are second copies for other programs.
        others = ["*/*", "consolidated*"]
        folder = _download(self.hub_id, [*_FILES, "*.safetensors"], others, progress)
        if not any(folder.glob("*.safetensors")):
            folder = _download(self.hub_id, [*_FILES, "*.bin"], others, progress)
        return folder


def find_source(path_or_hub_id: str | Path, gguf_file: str | None = None) -> Source:
    """Tell folder, GGUF file and hub id apart; no connection is made.

    "owner/repository:file.gguf" is a GGUF file of the hub.

    Raises UnknownModelError when a path leads nowhere, InvalidInputError when a folder holds no
    model.
    """
    given = str(path_or_hub_id).strip()
    hub_id, _, named = given.rpartition(":")
    if named.lower().endswith(".gguf") and "/" in hub_id and _HUB_ID.fullmatch(hub_id):
        return Source(named, hub_id=hub_id, gguf_file=named)
    path = Path(given).expanduser()
    if path.suffix.lower() == ".gguf" and gguf_file is None:
        path, gguf_file = path.parent, path.name
        label = gguf_file
    else:
        label = path.resolve().name or given
    if path.is_dir():
        return _checked(Source(label, folder=path, gguf_file=gguf_file))
    if isinstance(path_or_hub_id, str) and _HUB_ID.fullmatch(given) and path.suffix != ".gguf":
        return Source(given, hub_id=given, gguf_file=gguf_file)
    raise UnknownModelError(
        f"There is no model named {label!r} on this machine.",
        remedy="Check the path: a folder with config.json and weights, a GGUF file, or a hub id.",
        provider=label,
    )


def _checked(source: Source) -> Source:
    assert source.folder is not None
    if source.gguf_file is None:
        if (source.folder / "config.json").is_file():
            return source
        raise InvalidInputError(
            f"The folder {source.label!r} holds no model: config.json is missing.",
            remedy="Choose the folder that save_pretrained or a download of the model made.",
            provider=source.label,
        )
    if (source.folder / source.gguf_file).is_file():
        return source
    raise UnknownModelError(
        f"There is no file named {source.gguf_file!r}.",
        remedy="Check the path of the GGUF file.",
        provider=source.label,
    )


def _download(
    hub_id: str, wanted: list[str], unwanted: list[str], progress: Progress | None
) -> Path:
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

    folder = snapshot_download(
        hub_id,
        allow_patterns=wanted,
        ignore_patterns=unwanted,
        library_name="veriscope",
        tqdm_class=Reporter,
    )
    return Path(folder)


def load_engine(
    source: Source,
    *,
    device: str | None = None,
    dtype: str | None = None,
    progress: Progress | None = None,
) -> Engine:
    """Read tokenizer and weights and place them on a device; blocks, for seconds to minutes.

    `device` is CUDA when there is one, else the CPU. `dtype` is bfloat16 where the device computes
    in it natively, else float32; GPUs without it get float16. Raises one of `pipelines.errors`.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    folder = source.folder
    try:
        with ONE_AT_A_TIME:
            from transformers import AutoModelForCausalLM, AutoTokenizer

            from pipelines.models.local.engine import Engine

        place = choose_device(device)
        kind = choose_dtype(place, dtype)
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
        return Engine(model, tokenizer, read_vocabulary(tokenizer))
    except VeriscopeError:
        raise
    except Exception as error:
        raise explain_failure(error, source, folder) from error


def choose_device(wanted: str | None) -> torch.device:
    """The device to compute on. Raises InvalidInputError when it is not there."""
    import torch

    if wanted is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = wanted.partition(":")
    if kind == "cpu" and not index:
        return torch.device("cpu")
    if kind == "cuda" and (index or "0").isdecimal():
        number = int(index or 0)
        if number < torch.cuda.device_count():
            return torch.device("cuda", number)
    raise InvalidInputError(
        f"There is no device {wanted!r} on this machine.", remedy='Choose "cpu" or "cuda".'
    )


def choose_dtype(device: torch.device, wanted: str | None) -> torch.dtype:
    """The number format of weights and activations, by name or best for the device."""
    import torch

    known = {kind: getattr(torch, kind) for kind in ("float32", "bfloat16", "float16")}
    if wanted is not None:
        if wanted in known:
            return known[wanted]
        raise InvalidInputError(
            f"Unknown number format {wanted!r}.", remedy=f"Choose one of {', '.join(known)}."
        )
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
    from huggingface_hub import errors as hub

    label, chain = source.label, _chain(error)
    for cause in chain:
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if isinstance(cause, hub.GatedRepoError) or (
            status in (401, 403) and not isinstance(cause, hub.RepositoryNotFoundError)
        ):
            return AuthenticationError(
                f"The hub does not give out {label!r} to everyone.",
                remedy="Accept the model's terms on its page and set HF_TOKEN, or choose another.",
                provider=label,
            )
        if isinstance(cause, hub.RepositoryNotFoundError | hub.HFValidationError):
            return UnknownModelError(
                f"Neither this machine nor the hub has a model named {label!r}.",
                remedy='Check the spelling, e.g. "Qwen/Qwen3-0.6B"; private models need HF_TOKEN.',
                provider=label,
            )
        if status == 429:
            return RateLimitError(
                "The hub asks to slow down.", remedy="Try again in a minute.", provider=label
            )
        if status is not None and status >= 500:
            return ServerFailedError(
                f"The hub failed (status {status}).", remedy="Try again later.", provider=label
            )
        if isinstance(cause, OSError) and cause.errno == errno.ENOSPC:
            return InvalidInputError(
                f"There is no room on the disk for {label!r}.",
                remedy="Free some space, or choose a smaller model.",
                provider=label,
            )
    if any(_is_connection_failure(cause) for cause in chain):
        return UnreachableError(
            f"{label!r} could not be downloaded: the hub cannot be reached.",
            remedy="Check the connection, or give the folder of a model that is on this machine.",
            provider=label,
        )
    if type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError):
        return InvalidInputError(
            f"{label!r} does not fit into memory.",
            remedy="Choose a smaller model or another device.",
            provider=label,
        )
    if isinstance(error, ImportError):
        return InvalidInputError(
            f"A package that {label!r} needs is not installed ({_first_line(error)}).",
            remedy="Install it, e.g. `pip install gguf` for GGUF files.",
            provider=label,
        )
    reason = _first_line(error).replace(str(folder), label)
    return InvalidInputError(
        f"{label!r} cannot be loaded as a language model ({reason}).",
        remedy="Download it again, or choose a causal language model in transformers' own format.",
        provider=label,
    )


def _is_connection_failure(error: BaseException) -> bool:
    from huggingface_hub import errors as hub

    missing = (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled, ConnectionError, TimeoutError)
    library = type(error).__module__.partition(".")[0]
    return isinstance(error, missing) or library in ("httpx", "httpx2")


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    return chain


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
