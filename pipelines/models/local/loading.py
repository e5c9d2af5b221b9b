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

from pipelines.errors import VeriscopeError, failure
from pipelines.loading import ONE_AT_A_TIME
from pipelines.models.base import Progress
from pipelines.models.local.prompting import read_vocabulary

if TYPE_CHECKING:
    import torch

    from pipelines.models.local.engine import Engine

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
    """Whether it is a folder, a GGUF file or a hub id; no connection is made.

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
        raise failure("loading.no_file" if gguf_file else "loading.no_config", label, label=label)
    if isinstance(path_or_hub_id, str) and _HUB_ID.fullmatch(given) and not gguf_file:
        return Source(given, hub_id=given)
    raise failure("loading.nothing_there", label, label=label)


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

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        kind = choose_dtype(device) if dtype is None else getattr(torch, dtype)
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
        model = model.to(device).eval().requires_grad_(False)
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
    from huggingface_hub import errors as hub

    label, chain = source.label, _chain(error)
    for cause in chain:
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if kind := _hub_failure(cause, status):
            return failure(f"loading.{kind}", label, label=label, status=status)
    missing = (hub.LocalEntryNotFoundError, hub.OfflineModeIsEnabled, ConnectionError, TimeoutError)
    libraries = {type(cause).__module__.partition(".")[0] for cause in chain}
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if libraries & {"httpx", "httpx2"} or any(isinstance(cause, missing) for cause in chain):
        kind = "no_connection"
    elif type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError):
        kind = "no_memory"
    elif isinstance(error, ImportError):
        kind = "no_package"
    else:
        kind, said = "unusable", said.replace(str(folder), label)
    return failure(f"loading.{kind}", label, label=label, said=said)


def _hub_failure(cause: BaseException, status: int | None) -> str | None:
    from huggingface_hub import errors as hub

    unknown = isinstance(cause, hub.RepositoryNotFoundError | hub.HFValidationError)
    # A repository that is gated is also one that is not found.
    if isinstance(cause, hub.GatedRepoError) or (status in (401, 403) and not unknown):
        return "gated"
    if unknown:
        return "not_on_the_hub"
    if status == 429:
        return "slow_down"
    if status is not None and status >= 500:
        return "hub_failed"
    full = isinstance(cause, OSError) and cause.errno == errno.ENOSPC
    return "disk_full" if full else None


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    return chain
