"""Where a model's files are: a folder, a GGUF file, or a repository of the hub."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import InvalidInputError, UnknownModelError

__all__ = ["Progress", "Source", "find_source"]

Progress = Callable[[str, float], None]
"""Told the stage ("downloading" or "loading") and its fraction in [0, 1], in a worker thread."""

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
