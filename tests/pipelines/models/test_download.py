"""Downloads of models, from a hub on this machine."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock
from huggingface_hub import constants

from pipelines.models import download
from pipelines.models.catalogue import CatalogueEntry, downloaded, folder_of, part_of
from pipelines.models.download import ACTIVE, Downloads, DownloadState
from pipelines.models.llamacpp import GgufModel
from pipelines.models.providers import build_model, model_spec
from pipelines.models.transformers import LocalModel
from pipelines.models.transformers.model import find_source
from tests.pipelines.models.hub import COMMIT, Hub, serve_hub, sha256
from tests.pipelines.models.transformers import tiny
from tests.pipelines.models.transformers.tiny_gguf import SAID, save_gguf
from tests.scripted.wire import asks

REPOSITORY = "someone/Small-GGUF"
CONTENT = os.urandom(1_000_000)
PATIENCE = 60.0


def entry_of(content: bytes = CONTENT, **changes: object) -> CatalogueEntry:
    described: dict[str, object] = {
        "name": "Small",
        "repository": REPOSITORY,
        "file": "small.gguf",
        "size": len(content),
        "memory": 1.0,
        "parameters": 0.1,
        "languages": ("en", "zh"),
        "licence": "Apache-2.0",
        "family": "Small",
        "for": "processor",
        "note": "smallest",
    }
    return CatalogueEntry.model_validate(described | changes)


ENTRY = entry_of()


class Place(NamedTuple):
    """A hub with one file, and the downloads from it."""

    hub: Hub
    downloads: Downloads
    models: Path

    @property
    def file(self) -> Path:
        return folder_of(REPOSITORY, self.models) / "small.gguf"

    def until(
        self, condition: Callable[[DownloadState], bool], entry: CatalogueEntry = ENTRY
    ) -> DownloadState:
        deadline = time.monotonic() + PATIENCE
        while not condition(state := self.downloads.state(entry)):
            assert time.monotonic() < deadline, state
            time.sleep(0.005)
        return state

    def over(self, entry: CatalogueEntry = ENTRY) -> DownloadState:
        return self.until(lambda state: state.stage not in ACTIVE, entry)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_hub() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        served.add(REPOSITORY, small__gguf=CONTENT)
        yield served


@pytest.fixture
def place(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("VERISCOPE_DATA", str(tmp_path))
    downloads = Downloads(tmp_path / "models", pause=0.0)
    yield Place(hub, downloads, tmp_path / "models")
    hub.release.set()
    downloads.close()


def test_a_file_is_downloaded_and_has_its_name_when_it_is_right(place: Place):
    assert place.downloads.state(ENTRY) == DownloadState("absent", 0, ENTRY.size)
    told: list[str] = []
    place.downloads.start(ENTRY, lambda: told.append("there"))
    state = place.over()
    assert (state.stage, state.done, state.total) == ("done", len(CONTENT), len(CONTENT))
    assert place.file.read_bytes() == CONTENT
    assert not part_of(place.file).exists()
    # The listener is told before the state is "done".
    assert told == ["there"]
    place.downloads.close()
    assert downloaded(REPOSITORY, "small.gguf") == place.file.parent
    assert downloaded(REPOSITORY, "other.gguf") is None
    assert place.downloads.path(ENTRY) == place.file
    # The address of the file names the commit, which does not change while it is fetched.
    assert any(f"/resolve/{COMMIT}/" in one.path for one in place.hub.asked)
    source = find_source(f"{REPOSITORY}:small.gguf")
    assert (source.folder, source.gguf_file) == (place.file.parent, "small.gguf")


def test_a_broken_connection_goes_on_from_where_it_was(place: Place):
    place.hub.cuts += [300_000, 300_000]
    place.downloads.start(ENTRY)
    assert place.over().stage == "done"
    asked = [one.range for one in place.hub.requests_of("small.gguf") if "elsewhere" in one.path]
    assert asked == [None, "bytes=300000-", "bytes=600000-"]
    assert place.file.read_bytes() == CONTENT


def test_a_server_that_begins_again_is_followed(place: Place):
    place.hub.cuts.append(300_000)
    place.hub.ranges = False
    place.downloads.start(ENTRY)
    state = place.over()
    assert (state.stage, state.done) == ("done", len(CONTENT))
    assert place.file.read_bytes() == CONTENT


def test_one_that_never_comes_back_is_an_error_and_what_arrived_is_kept(place: Place):
    place.hub.cuts += [300_000] + [0] * 20
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.stage == "failed"
    assert state.error is not None
    assert state.error.code == "offline"
    assert part_of(place.file).stat().st_size == 300_000
    place.hub.cuts.clear()
    place.downloads.start(ENTRY)
    assert place.over().stage == "done"


def test_it_is_paused_and_gone_on_with(place: Place):
    place.hub.held_at = 500_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    running = place.until(lambda state: state.done >= 250_000)
    assert running.stage == "running"
    assert 0 < running.fraction < 1
    place.downloads.pause(ENTRY)
    assert place.downloads.state(ENTRY).stage == "paused"
    place.hub.held_at = None
    place.hub.release.set()
    place.downloads.close()
    arrived = part_of(place.file).stat().st_size
    assert 250_000 <= arrived < len(CONTENT)
    assert not place.file.exists()

    # Another process finds it so.
    later = Downloads(place.models)
    assert later.state(ENTRY) == DownloadState("paused", arrived, len(CONTENT))
    later.start(ENTRY)
    later_place = place._replace(downloads=later)
    assert later_place.over().stage == "done"
    assert place.file.read_bytes() == CONTENT
    assert place.hub.requests_of("small.gguf")[-1].range == f"bytes={arrived}-"


def test_it_is_cancelled_and_nothing_is_left(place: Place):
    place.hub.held_at = 500_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    place.downloads.delete(ENTRY)
    assert place.downloads.state(ENTRY).stage == "absent"
    place.hub.release.set()
    place.downloads.close()
    assert not place.file.parent.exists()


def test_who_closes_waits_for_what_is_being_deleted(place: Place, monkeypatch: pytest.MonkeyPatch):
    delete, deleting = download._delete, threading.Event()

    def slowly(folder: Path) -> None:
        deleting.set()
        time.sleep(0.2)
        delete(folder)

    place.hub.held_at = 500_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    monkeypatch.setattr(download, "_delete", slowly)
    place.downloads.delete(ENTRY)
    place.hub.release.set()
    assert deleting.wait(PATIENCE)
    place.downloads.close()
    assert not place.file.parent.exists()


def test_it_is_paused_and_cancelled_before_it_stands_still(place: Place):
    place.hub.held_at = 500_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    place.downloads.pause(ENTRY)
    place.downloads.delete(ENTRY)
    place.hub.release.set()
    place.downloads.close()
    assert place.downloads.state(ENTRY).stage == "absent"
    assert not place.file.parent.exists()


@pytest.mark.parametrize("broken", ["then", "delete"])
def test_an_accident_ends_no_other_download(
    place: Place, monkeypatch: pytest.MonkeyPatch, broken: str
):
    def fails(*_: object) -> None:
        raise PermissionError

    delete = download._delete
    other = entry_of(b"other", name="Other", repository="someone/Other-GGUF")
    place.hub.add("someone/Other-GGUF", small__gguf=b"other")
    place.hub.held_at = 500_000
    place.downloads.start(ENTRY, fails if broken == "then" else None)
    assert place.hub.standing.wait(PATIENCE)
    place.downloads.start(other)
    if broken == "delete":
        mine = place.file.parent
        monkeypatch.setattr(download, "_delete", lambda at: fails() if at == mine else delete(at))
        place.downloads.delete(ENTRY)
    place.hub.release.set()
    assert place.over(other).stage == "done"
    assert place.downloads.state(ENTRY).stage == ("done" if broken == "then" else "absent")


@pytest.mark.parametrize("changes", [{"revision": "newer"}, {"file": "other.gguf"}])
def test_another_revision_or_file_is_downloaded_anew(place: Place, changes: dict[str, str]):
    place.hub.add(REPOSITORY, other__gguf=b"other")
    place.downloads.start(ENTRY)
    place.over()
    other = ENTRY.model_copy(update=changes)
    assert place.downloads.state(other).stage == "absent"
    place.downloads.start(other)
    assert place.over(other).stage == "done"
    assert place.downloads.path(other).is_file()


def test_a_file_of_another_size_is_not_counted(place: Place):
    place.downloads.start(ENTRY)
    place.over()
    place.downloads.close()
    place.file.write_bytes(CONTENT + b"more")
    place.downloads.start(ENTRY)
    state = place.over()
    assert (state.stage, state.done) == ("done", len(CONTENT))
    assert place.file.read_bytes() == CONTENT


@pytest.mark.parametrize("first", ["pause", "delete"])
def test_it_is_begun_again_before_it_stands_still(place: Place, first: str):
    place.hub.held_at = 500_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    getattr(place.downloads, first)(ENTRY)
    place.downloads.start(ENTRY)
    place.hub.held_at = None
    place.hub.release.set()
    assert place.over().stage == "done"
    assert place.file.read_bytes() == CONTENT


def test_what_is_there_is_deleted(place: Place):
    place.downloads.start(ENTRY)
    place.over()
    place.downloads.close()
    place.downloads.delete(ENTRY)
    assert place.downloads.state(ENTRY).stage == "absent"
    assert not place.file.parent.exists()


def test_two_presses_are_one_download(place: Place):
    place.hub.held_at = 100_000
    told: list[int] = []
    for number in range(3):
        place.downloads.start(ENTRY, lambda number=number: told.append(number))
    assert place.hub.standing.wait(PATIENCE)
    place.downloads.start(ENTRY)
    place.hub.release.set()
    assert place.over().stage == "done"
    place.downloads.close()
    assert len([one for one in place.hub.requests_of("small.gguf") if "elsewhere" in one.path]) == 1
    assert told == [0, 1, 2]


def test_a_second_model_waits_for_the_first(place: Place):
    other = entry_of(b"other" * 1000, name="Other", repository="someone/Other-GGUF")
    place.hub.add("someone/Other-GGUF", small__gguf=b"other" * 1000)
    place.hub.held_at = 100_000
    place.downloads.start(ENTRY)
    assert place.hub.standing.wait(PATIENCE)
    place.downloads.start(other)
    assert place.downloads.state(other).stage == "waiting"
    place.hub.release.set()
    assert place.over(other).stage == "done"
    assert place.over().stage == "done"


def test_another_process_is_not_disturbed(place: Place):
    place.models.mkdir(parents=True)
    with FileLock(place.models / f"{place.file.parent.name}.lock"):
        place.downloads.start(ENTRY)
        state = place.over()
    assert state.error is not None
    assert "Another process" in state.error.message


def test_a_wrong_checksum_deletes_what_arrived_and_says_so(place: Place):
    place.hub.lies.add("small.gguf")
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.stage == "failed"
    assert state.error is not None
    assert state.error.code == "damaged_download"
    assert "small.gguf" in state.error.message
    assert not place.file.exists()
    assert not part_of(place.file).exists()
    assert state.done == 0


def test_a_file_that_is_not_the_one_of_the_catalogue_is_not_fetched(place: Place):
    right = entry_of(sha256=sha256(CONTENT))
    place.downloads.start(entry_of(sha256=sha256(b"another")))
    state = place.over()
    assert state.error is not None
    assert state.error.code == "unknown_model"
    assert "Nothing was downloaded" in state.error.message
    assert place.hub.requests_of("small.gguf") == []
    place.downloads.start(right)
    assert place.over().stage == "done"


@pytest.mark.parametrize("where", ["offline mode", "no server"])
def test_without_a_connection_it_says_what_to_do(
    place: Place, monkeypatch: pytest.MonkeyPatch, where: str
):
    if where == "offline mode":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.stage == "failed"
    assert state.error is not None
    assert state.error.code == "offline"
    assert "HF_ENDPOINT" in state.error.remedy
    assert "small.gguf" in state.error.remedy


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        ((404, "RepoNotFound"), "unknown_model"),
        ((404, "RevisionNotFound"), "unknown_model"),
        ((403, "GatedRepo"), "gated"),
        ((429, ""), "rate_limit"),
        ((500, ""), "server_failed"),
        ((400, ""), "refused_request"),
        ((451, ""), "refused_request"),
    ],
)
def test_refusals_of_the_hub_are_told_apart(place: Place, refusal: tuple[int, str], code: str):
    place.hub.refusal = refusal
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.error is not None
    assert state.error.code == code
    assert "127.0.0.1" in str(state.error.provider)


def test_a_token_is_sent_to_the_hub(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_mine")
    place.downloads.start(ENTRY)
    place.over()
    (asked, *_) = place.hub.requests_of("resolve/" + COMMIT + "/small.gguf")
    assert asked.authorization == "Bearer hf_of_mine"


def test_a_full_disk_is_told_before(place: Place, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(place.models.parent)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=500_000))
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.error is not None
    assert state.error.code == "disk_full"
    assert "0.20 GB more" in state.error.message
    assert place.hub.requests_of("small.gguf") == []


def test_a_folder_that_cannot_be_written_to_is_told(place: Place):
    place.models.write_text("no folder")
    place.downloads.start(ENTRY)
    state = place.over()
    assert state.error is not None
    assert state.error.code == "unwritable"
    place.models.unlink()


def test_a_disk_that_becomes_full_keeps_what_arrived(place: Place, monkeypatch: pytest.MonkeyPatch):
    add = download._PartialFile.add

    def full(part: Any, chunk: bytes, out: Any) -> None:
        if part.size:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(part, chunk, out)

    with monkeypatch.context() as patched:
        patched.setattr(download._PartialFile, "add", full)
        place.downloads.start(ENTRY)
        state = place.over()
    assert state.error is not None
    assert state.error.code == "disk_full"
    assert part_of(place.file).stat().st_size > 0
    place.downloads.start(ENTRY)
    assert place.over().stage == "done"


def test_names_that_lead_elsewhere_are_left_out(place: Place):
    place.hub.add("someone/Folder", large=False, config__json=b"{}")
    place.hub.files["someone/Folder"]["../evil.json"] = b"{}"
    place.hub.files["someone/Folder"]["a\\evil.json"] = b"{}"
    entry = entry_of(repository="someone/Folder", file="", name="Folder")
    place.downloads.start(entry)
    assert place.over(entry).stage == "done"
    assert not list(place.models.rglob("*evil*"))


async def test_a_gguf_file_that_was_downloaded_answers(place: Place, tmp_path: Path):
    content = save_gguf(tmp_path / "made.gguf", tmp_path / "made").read_bytes()
    place.hub.add(REPOSITORY, small__gguf=content)
    entry = entry_of(content, sha256=sha256(content))
    place.downloads.start(entry)
    place.over()
    spec = model_spec(entry)
    # No run that was made with it tells where it was kept.
    assert str(tmp_path) not in spec.model_dump_json()
    model = build_model(spec)
    assert isinstance(model, GgufModel)
    assert model.capabilities.languages == {"en", "zh"}
    (reply,) = await model.generate(asks("What is it?", max_tokens=20))
    assert reply.text == SAID
    await model.aclose()


async def test_a_repository_for_transformers_that_was_downloaded_answers(
    place: Place, tmp_path: Path
):
    tokenizer = tiny.byte_level_tokenizer()
    transitions = tiny.recite(tokenizer, SAID, after=tiny.last_prompt_token(tokenizer))
    made = tiny.save_reciter(tmp_path / "made", tokenizer, transitions)
    repository = "someone/Small"
    for file in made.iterdir():
        place.hub.files.setdefault(repository, {})[file.name] = file.read_bytes()
    place.hub.large.add("model.safetensors")
    place.hub.files[repository]["original/model.safetensors"] = b"a second copy"
    place.hub.files[repository]["README.md"] = b"not wanted"
    entry = entry_of(repository=repository, file="", name="Small-T")
    place.downloads.start(entry)
    assert place.over(entry).stage == "done"
    kept = {path.name for path in folder_of(repository, place.models).iterdir()}
    assert kept == {path.name for path in made.iterdir()} | {"download.json"}
    model = build_model(model_spec(entry))
    assert isinstance(model, LocalModel)
    (reply,) = await model.generate(asks("What is it?", max_tokens=20))
    assert reply.text == SAID
    await model.aclose()
