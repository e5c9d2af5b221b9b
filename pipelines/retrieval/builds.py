"""The folder an index lives in: finished builds that never change, and which of them counts.

    target/current           name of the build to read
    target/build-<random>/   one build: manifest.json and the files it lists
    target/build.lock        held by whoever builds

A build is written under another name and renamed when complete, and `current` is replaced in one
step, so a reader sees the old index or the new one and never half of either.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import FileLock

from pipelines.retrieval.manifest import Manifest

__all__ = ["building", "current_build", "new_build", "publish", "read_manifest"]

_MANIFEST = "manifest.json"
_CURRENT = "current"
_PREFIX = "build-"


def current_build(target: Path) -> Path | None:
    """The folder of the build in use, which need not be sound; None when nothing was built."""
    try:
        return target / (target / _CURRENT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


def read_manifest(build: Path) -> Manifest:
    """The manifest of a build. `OSError` or `ValueError` when a file is missing or incomplete."""
    manifest = Manifest.model_validate_json((build / _MANIFEST).read_bytes())
    if _sizes(build) != manifest.files:
        raise ValueError("The files of the build are not those it was made with.")
    return manifest


@contextmanager
def building(target: Path) -> Iterator[None]:
    """Hold the right to build in `target`, which is made if need be; waits for another builder."""
    target.mkdir(parents=True, exist_ok=True)
    with FileLock(target / "build.lock"):
        yield


@contextmanager
def new_build(target: Path) -> Iterator[Path]:
    """An empty folder to write a build into, removed at the end unless `publish` took it.

    To be used inside `building`.
    """
    folder = target / f"{_PREFIX}{uuid4().hex}.partial"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(partial: Path, manifest: Manifest) -> None:
    """Make a written build the current one and remove the others. To be used inside `building`."""
    target = partial.parent
    sized = manifest.model_copy(update={"files": _sizes(partial)})
    (partial / _MANIFEST).write_text(sized.model_dump_json(indent=1), encoding="utf-8")
    build = partial.rename(partial.with_suffix(""))
    pointer = target / f"{_CURRENT}.partial"
    pointer.write_text(build.name, encoding="utf-8")
    pointer.replace(target / _CURRENT)
    for other in target.glob(f"{_PREFIX}*"):
        if other != build:
            # A reader may still hold one open, which some systems do not allow to be removed:
            # then the next build clears it away.
            shutil.rmtree(other, ignore_errors=True)


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _MANIFEST
    }
