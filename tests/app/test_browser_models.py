"""A better model in a browser: from the press on Download to an answer that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest
from playwright.sync_api import Locator, Page, expect

from pipelines.base import ASSETS
from pipelines.methods.registry import standard_methods
from pipelines.models.probe import keep_speed
from tests.app.conftest import Visit
from tests.app.serving import (
    DESKTOP,
    Workbench,
    ask,
    expect_to_fit_everywhere,
    go_to,
    leave_out,
    serve_workbench,
    wait_for_end,
)
from tests.pipelines.models.hub import Hub, serve_hub, sha256
from tests.pipelines.models.transformers.tiny_gguf import SAID, save_gguf

NAME = "Qwen3-0.6B-Q8_0"
OFFERED = ("-m", "tests.app.catalogue_workbench")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that has a small model under the name of one of the catalogue."""
    made = Path(tmp_path_factory.mktemp("made"))
    with serve_hub() as served:
        content = save_gguf(made / "small.gguf", made / "small").read_bytes()
        served.files["Qwen/Qwen3-0.6B-GGUF"] = {f"{NAME}.gguf": content}
        served.large.add(f"{NAME}.gguf")
        yield served


@pytest.fixture(scope="module")
def workbench(
    hub: Hub, sample_index: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """The workbench as people start it; the hub is the one of this module."""
    folder = Path(tmp_path_factory.mktemp("catalogue"))
    (content,) = hub.files["Qwen/Qwen3-0.6B-GGUF"].values()
    listed = (ASSETS / "catalogue.toml").read_text(encoding="utf-8")
    offered = re.sub('sha256 = "[^"]+"', f'sha256 = "{sha256(content)}"', listed, count=1)
    (folder / "catalogue.toml").write_text(offered, encoding="utf-8")
    copy(ASSETS / "pieces.toml", folder)
    # So that no model is loaded to be measured.
    keep_speed(folder / "models", 1e10)
    (folder / "index").symlink_to(sample_index)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.setenv("HF_HUB_OFFLINE", "0")
        patch.setenv("VERISCOPE_TEST_ASSETS", str(folder))
        with serve_workbench(folder, OFFERED) as served:
            yield served


def card(page: Page) -> Locator:
    return page.locator(f".st-key-card-catalogue-{NAME.encode().hex()}")


def press(page: Page, name: str) -> None:
    card(page).get_by_role("button", name=name).click()


@pytest.mark.verify
def test_a_model_is_downloaded_and_answers(visit: Visit, hub: Hub) -> None:
    visitor = visit()
    page = visitor.open("/models")
    expect(card(page)).to_contain_text("0.64 GB to download · 3.0 GB of memory")
    expect(card(page)).to_contain_text("about 16 tokens per second (rough estimate)")
    hub.held_at = 500_000
    press(page, "Download")
    expect(card(page).get_by_role("button", name="Pause")).to_be_visible()
    expect(card(page).locator("progress")).to_have_attribute("value", re.compile(r"0\.[3-6]"))

    # It is not the page that downloads.
    page.close()
    page = visitor.open("/models")
    expect(card(page)).to_contain_text("Downloading")
    expect_to_fit_everywhere(page)
    press(page, "Pause")
    expect(card(page)).to_contain_text("Paused")
    hub.held_at = None
    hub.release.set()
    # By the keyboard.
    resume = card(page).get_by_role("button", name="Resume")
    resume.focus()
    resume.press("Enter")
    expect(card(page)).to_contain_text("Downloaded")
    expect(page.locator(".vs-model-name").filter(has_text=NAME)).to_have_count(1)

    press(page, "Use as main model")
    role = page.get_by_role("combobox", name="Main model")
    expect(role).to_have_value(NAME)
    expect(card(page).get_by_role("button", name="Use as main model")).to_be_disabled()
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    go_to(page, "Ask")
    leave_out(page, *(name for name in standard_methods() if name != "direct"))
    ask(page, "What is the capital of France?")
    wait_for_end(page)
    expect(page.locator("#original")).to_contain_text(SAID)


@pytest.mark.verify
def test_a_refusal_is_told_in_the_language_of_the_visitor(visit: Visit, hub: Hub) -> None:
    hub.refusal = (403, "GatedRepo")
    page = visit().open("/models?lang=zh")
    other = page.locator(f".st-key-card-catalogue-{b'Qwen3-1.7B-Q8_0'.hex()}")
    other.get_by_role("button", name="下载").click()
    failed = other.get_by_role("alert")
    expect(failed).to_contain_text("模型库不向所有人提供这个模型")
    expect(failed).to_contain_text("HF_TOKEN")
    expect(other.get_by_role("button", name="下载")).to_be_visible()
    hub.refusal = None
