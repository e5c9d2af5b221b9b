"""Which models have which role where nobody chose any."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.models.catalogue import (
    LARGE_MODEL,
    SHARED,
    SMALL_MODEL,
    DownloadManifest,
    ModelFile,
    catalogue_entry,
    place_of,
    write_manifest,
)
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.run.events import JUDGES, by_language, default_models, is_default

SMOL = ModelSpec()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models folder, and no other."""
    monkeypatch.delenv(SHARED, raising=False)
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    return tmp_path / "models"


def fetch(name: str, folder: Path) -> None:
    """Put a file of that name there as if it had been fetched: only its size is looked at."""
    entry = catalogue_entry(name)
    place = place_of(entry, folder)
    file = ModelFile(name=entry.file, size=entry.size, sha256=entry.sha256)
    manifest = DownloadManifest(revision=entry.revision, commit="", files=(file,))
    write_manifest(place, manifest)
    with (place / entry.file).open("wb") as empty:
        empty.truncate(entry.size)


def roles(language: str | None) -> tuple[str, str | None]:
    found = default_models(language)  # pyright: ignore[reportArgumentType]
    second = found.get("verifier")
    return found["main"].name, second and second.name


def test_the_bundled_model_alone_has_no_verifier(folder: Path):
    assert default_models()["main"] == SMOL
    assert roles("en") == roles("zh") == (SMOL.name, None)


def test_the_small_model_verifies_english_and_writes_chinese(folder: Path):
    fetch(SMALL_MODEL, folder)
    assert roles("en") == (SMOL.name, SMALL_MODEL)
    assert roles("zh") == (SMALL_MODEL, None)
    assert roles(None) == (SMOL.name, None)


def test_the_large_model_verifies_both_languages(folder: Path):
    fetch(LARGE_MODEL, folder)
    assert roles("en") == (SMOL.name, LARGE_MODEL)
    assert roles("zh") == (LARGE_MODEL, None)
    fetch(SMALL_MODEL, folder)
    assert roles("en") == (SMOL.name, LARGE_MODEL)
    assert roles("zh") == (SMALL_MODEL, LARGE_MODEL)


def test_what_somebody_chose_stays(folder: Path):
    fetch(SMALL_MODEL, folder)
    own = {"main": ModelSpec(kind="openai", name="own", model="own")}
    assert by_language(own, "en") == by_language(own, "zh") == own
    chosen = {"main": SMOL, "verifier": own["main"]}
    assert by_language(chosen, "en") == chosen
    # The small model in English, as somebody chose: the bundled one verifies it.
    small = default_models("zh")["main"]
    assert by_language({"main": small}, "en")["verifier"] == SMOL
    assert by_language({"main": small.to_be_checked()}, "en")["verifier"] == SMOL


def test_the_small_model_speaks_both_languages_and_is_helped(folder: Path):
    fetch(SMALL_MODEL, folder)
    can = known_capabilities(default_models("zh")["main"])
    assert can is not None
    assert can.languages == {"en", "zh"}
    assert can.weak
    assert is_default(default_models("zh")["main"])
    assert not is_default(ModelSpec(kind="openai", name=SMALL_MODEL, model="x"))


def judges(language: str) -> list[str]:
    found = default_models(language)  # pyright: ignore[reportArgumentType]
    return [found[role].name for role in JUDGES if role in found]


def test_a_language_model_judges_beside_the_bundled_ones_and_alone_in_chinese(folder: Path):
    plain = judges("en")
    assert judges("zh") == plain
    fetch(SMALL_MODEL, folder)
    assert judges("en") == [*plain, SMALL_MODEL]
    assert judges("zh") == [SMALL_MODEL]
    fetch(LARGE_MODEL, folder)
    assert judges("en") == [*plain, LARGE_MODEL]
    assert judges("zh") == [LARGE_MODEL]


def test_chosen_judges_stay(folder: Path):
    fetch(SMALL_MODEL, folder)
    one = {JUDGES[0]: default_models()[JUDGES[0]]}
    found = by_language({"main": SMOL, **one}, "zh")
    assert {role: spec for role, spec in found.items() if role in JUDGES} == one
