"""What a machine has that decides what an evaluation finds: workers prove that they have the same.

A package, weights or an index that a worker lacks changes its answers without an error: another
embedder searches, another judge checks. So both sides describe what they have, each by itself, and
an evaluation does not begin where the descriptions differ.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipelines.base import ROOT
from pipelines.engine.library import Libraries
from pipelines.errors import VeriscopeError
from pipelines.evaluation.plan import EvaluationSpec, code_version
from pipelines.models.llamacpp import gguf_path
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.retrieval.documents import load_library
from pipelines.retrieval.indexes import default_embedder
from pipelines.retrieval.library import digest

MISSING = "missing"
"""What is described of something that is not there."""

_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)
_FILES = ("requirements.txt", "requirements-embedded.txt", "requirements-ray.txt")
_AT_ONCE = 2**22


def packages() -> tuple[str, ...]:
    """Return the packages that this project names, as far as it lies here with its lists."""
    found: list[str] = []
    for name in _FILES:
        with suppress(OSError):
            found += _NAME.findall((ROOT / name).read_text(encoding="utf-8"))
    return tuple(sorted(set(found)))


def proof_of(spec: EvaluationSpec, named: Sequence[str], libraries: Libraries) -> dict[str, str]:
    """Return what this machine has of all that decides the answers of `spec`, by what it is.

    `named` are packages. Weights and libraries are named by the hash of their contents; reading
    them takes a while, so call it by `asyncio.to_thread`. What cannot be read is `MISSING`.
    """
    models = {one.name: one for system in spec.systems for one in system.models.values()}
    sources = {
        system.evidence.library
        for system in spec.systems
        if system.evidence is not None and system.evidence.source == "library"
    }
    embedder = default_embedder()
    return {
        "Python": platform.python_version(),
        "Veriscope": code_version(),
        **{name: _version(name) for name in named},
        "embedder": MISSING if embedder is None else embedder.name,
        **{f"weights of {name}": _weights(one) for name, one in models.items()},
        **{f"abilities of {name}": _abilities(one) for name, one in models.items()},
        **{f"library {name}": _library(name, libraries) for name in sorted(sources)},
    }


def differing(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return what differs, as "name: there instead of here", sorted."""
    return [
        f"{name}: {other.get(name, MISSING)} instead of {own.get(name, MISSING)}"
        for name in sorted({*own, *other})
        if own.get(name, MISSING) != other.get(name, MISSING)
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING


def _weights(spec: ModelSpec) -> str:
    """Return the hash of the weights of a model in the process; of another one what names it."""
    if spec.kind == "embedded":
        try:
            return _hash(gguf_path())
        except (VeriscopeError, OSError):
            return MISSING
    place = Path(spec.model).expanduser()
    if spec.base_url is None and place.exists():
        return _hash(place)
    return f"{spec.kind} {spec.model} {spec.revision or ''}".strip()


def _abilities(spec: ModelSpec) -> str:
    known = known_capabilities(spec)
    told = "" if known is None else known.model_dump_json()
    return sha256(told.encode()).hexdigest()[:12]


def _library(name: str, libraries: Libraries) -> str:
    try:
        documents = load_library(libraries.folder(name))
    except (VeriscopeError, OSError):
        return MISSING
    told = "\n".join(f"{one.id} {digest(one)}" for one in documents)
    return sha256(told.encode()).hexdigest()[:12]


def _hash(place: Path) -> str:
    """Return 12 hexadecimal digits for a file, or for all files of a folder."""
    found = sha256()
    files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
    for file in files:
        found.update(file.name.encode())
        with file.open("rb") as opened:
            while part := opened.read(_AT_ONCE):
                found.update(part)
    return found.hexdigest()[:12]
