"""The list of models that can be downloaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.errors import NotFoundError
from pipelines.models.catalogue import (
    CatalogueEntry,
    DownloadManifest,
    ModelFile,
    catalogue,
    catalogue_entry,
    downloaded,
    folder_of,
    is_complete,
    read_manifest,
    write_manifest,
)
from pipelines.models.providers import known_capabilities, model_spec

GGUF = [entry for entry in catalogue() if entry.hardware == "processor"]
GPU = [entry for entry in catalogue() if entry.hardware == "gpu"]


def test_names_and_repositories_are_all_different():
    for field in ("name", "repository"):
        values = [getattr(entry, field) for entry in catalogue()]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("entries", [GGUF, GPU], ids=["processor", "gpu"])
def test_each_kind_of_machine_has_sizes_to_choose_from_and_a_second_family(
    entries: list[CatalogueEntry],
):
    assert len({entry.parameters for entry in entries}) >= 3
    assert len({entry.family for entry in entries}) >= 2
    assert any(entry.note == "verifier" for entry in entries)
    assert all(set(entry.languages) == {"en", "zh"} for entry in entries)
    assert len({entry.note for entry in entries if entry.note == "best"}) == 1


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_an_entry_is_plausible(entry: CatalogueEntry):
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.repository)
    assert re.fullmatch(r"[0-9a-f]{40}", entry.revision)
    assert entry.file.endswith(".gguf") == (entry.hardware == "processor")
    # A file's exact size and checksum are known; of several files the hub tells them.
    assert bool(re.fullmatch(r"[0-9a-f]{64}", entry.sha256)) == bool(entry.file)
    assert entry.approximate != bool(entry.file)
    bytes_a_weight = entry.size / (entry.parameters * 1e9)
    assert (0.5 if entry.file else 1.9) < bytes_a_weight < (1.2 if entry.file else 2.6)
    assert entry.memory * 1e9 > entry.size


def test_it_becomes_a_model_that_writes_both_languages():
    for entry in catalogue():
        spec = model_spec(entry)
        can = known_capabilities(spec)
        assert can is not None
        assert can.languages == {"en", "zh"}
        # Either library scores given texts, so that such a model can be a proxy.
        assert can.scores


def test_a_model_is_found_by_its_name():
    assert catalogue_entry(GGUF[0].name.upper()) == GGUF[0]
    with pytest.raises(NotFoundError, match=re.escape(GGUF[-1].name)):
        catalogue_entry("nothing")


def test_a_download_is_complete_when_every_file_has_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    files = (ModelFile(name="a.json", size=2), ModelFile(name="b.bin", size=3))
    manifest = DownloadManifest(revision="main", commit="c", files=files)
    folder = folder_of("some/model", tmp_path / "models")
    assert read_manifest(folder) is None
    write_manifest(folder, manifest)
    assert read_manifest(folder) == manifest
    (folder / "a.json").write_bytes(b"{}")
    assert not is_complete(folder, manifest)
    assert downloaded("some/model") is None
    (folder / "b.bin").write_bytes(b"123")
    assert downloaded("some/model") == folder
    assert downloaded("some/model", "b.bin") == folder
    (folder / "download.json").write_text("{}")
    assert read_manifest(folder) is None
    assert downloaded("some/model") is None
