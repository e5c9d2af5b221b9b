"""Models that can be downloaded: which there are, and what of them is on this machine.

The list is `assets/catalogue.toml`. A downloaded model is a folder of its own in the data folder,
with a manifest that says what belongs to it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pipelines.errors import failure
from pipelines.files import write_whole
from pipelines.paths import ASSETS, data_folder
from pipelines.types import Frozen, Language

Hardware = Literal["processor", "gpu"]
Note = Literal["smallest", "laptop", "balanced", "best", "verifier", "proxy"]

_MANIFEST = "download.json"
_PART = ".part"


class CatalogueEntry(Frozen):
    """A model of the catalogue; the fields are explained at the top of the file.

    Without `file` it is all that transformers needs of the repository.
    """

    name: str
    repository: str
    file: str = ""
    revision: str = "main"
    sha256: str = ""
    size: int = Field(gt=0)
    approximate: bool = False
    memory: float = Field(gt=0)
    parameters: float = Field(gt=0)
    languages: tuple[Language, ...]
    licence: str
    family: str
    hardware: Hardware = Field(alias="for")
    note: Note

    @property
    def model(self) -> str:
        """What a `ModelSpec` calls it: no path, so that a run does not tell where it was kept."""
        return f"{self.repository}:{self.file}" if self.file else self.repository


class ModelFile(Frozen):
    """A file of a download: its size in bytes and its SHA-256, or without one its git blob id."""

    name: str
    size: int
    sha256: str = ""
    blob_id: str = ""


class Manifest(Frozen):
    """What a download consists of. `commit` is what the `revision` asked for was at the time."""

    revision: str
    commit: str
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """The models that can be downloaded, in the order in which they are shown."""
    listed = tomllib.loads((ASSETS / "catalogue.toml").read_text(encoding="utf-8"))["model"]
    return tuple(CatalogueEntry.model_validate(one) for one in listed)


def catalogue_entry(name: str) -> CatalogueEntry:
    """The model of that name; raises NotFoundError naming those there are."""
    for entry in catalogue():
        if entry.name.lower() == name.lower():
            return entry
    names = ", ".join(entry.name for entry in catalogue())
    raise failure("downloads.not_listed", label=name, names=names)


def models_folder() -> Path:
    """Where the application keeps downloaded models."""
    return data_folder() / "models"


def folder_of(repository: str, models: Path) -> Path:
    """Where the files of a repository of the hub are kept inside the folder `models`."""
    return models / repository.replace("/", "--")


def part_of(file: Path) -> Path:
    """What of `file` has arrived so far."""
    return file.with_name(file.name + _PART)


def read_manifest(folder: Path) -> Manifest | None:
    """What the download in `folder` consists of; None where there is none that can be read."""
    try:
        return Manifest.model_validate_json((folder / _MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None


def manifest_of(entry: CatalogueEntry, folder: Path) -> Manifest | None:
    """The manifest in `folder` if it is of this entry, at its revision and with its file."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.revision != entry.revision:
        return None
    names = {file.name for file in manifest.files}
    return manifest if not entry.file or entry.file in names else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Say what the download in `folder` consists of."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / _MANIFEST, manifest.model_dump_json(indent=1))


def bytes_arrived(folder: Path, manifest: Manifest) -> int:
    """How much of a download is on the disk."""
    return sum(
        _size(folder / one.name) or _size(part_of(folder / one.name)) for one in manifest.files
    )


def forget_manifest(folder: Path) -> None:
    """From now on, what is in `folder` belongs to no download."""
    (folder / _MANIFEST).unlink(missing_ok=True)


def is_complete(folder: Path, manifest: Manifest) -> bool:
    """Whether every file is there under its name, which it gets when its checksum was right."""
    return all(_size(folder / file.name) == file.size for file in manifest.files)


def downloaded(repository: str, file: str = "") -> Path | None:
    """The folder of a downloaded model, with `file` in it where one is named; None without it."""
    folder = folder_of(repository, models_folder())
    manifest = read_manifest(folder)
    if manifest is None or not is_complete(folder, manifest):
        return None
    return folder if not file or file in {one.name for one in manifest.files} else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
