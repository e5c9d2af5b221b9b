"""Runs that do not end well, in a browser: stopped, unreachable, in a language nobody speaks."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from pipelines.models.providers import BUILT_IN
from tests.app.conftest import Visit
from tests.app.serving import (
    Workbench,
    ask,
    card,
    choose,
    fits,
    go_to,
    leave_out,
    open_fold,
    open_setup,
    question_field,
    stop_button,
    wait_for_end,
)
from tests.scripted.wire import Wire, chunk, entry, serve, streams_then_waits

KEY = "never-to-be-stored-4711"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as served:
        yield served


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def add_model(page: Page, name: str, address: str, key: str = "") -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Model, as the server calls it").fill("some-model")
    page.get_by_label("Address").fill(address)
    page.get_by_label("API key", exact=True).fill(key)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".vs-model-name").filter(has_text=name)).to_be_visible()


def use_model(page: Page, name: str) -> None:
    page.get_by_role("link", name="Ask").click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    open_setup(page)
    choose(page, "Model", name)
    choose(page, "Search", "Keywords")


@pytest.mark.verify
def test_a_reload_goes_on_watching_and_stop_keeps_what_was_written(
    visit: Visit, wire: Wire
) -> None:
    pieces = [
        chunk(text, entries=[entry(text, 0.5, (" elsewhere", 0.3))])
        for text in ("Bill", " Clinton", " was")
    ]
    wire.answers(streams_then_waits(*pieces))
    page = visit().open("/models")
    add_model(page, "slow", wire.url)
    use_model(page, "slow")
    ask(page)
    written = page.locator("#original .vs-heat-text")
    expect(written).to_contain_text("Bill Clinton was")
    expect(card(page, "direct")).to_contain_text("Writing the answer")
    address = page.url
    page.reload()
    expect(written).to_contain_text("Bill Clinton was")
    expect(page.locator(".vs-counters")).to_contain_text("Running")
    assert page.url == address

    stop_button(page).click()
    expect(page.locator(".vs-counters")).to_contain_text("Stopped")
    expect(stop_button(page)).to_have_count(0)
    expect(page.get_by_text("The run was stopped. The results so far are shown.")).to_be_visible()
    expect(written).to_contain_text("Bill Clinton was")
    assert wire.gone.wait(60)
    page.get_by_role("button", name="Try again").first.click()
    expect(page.locator(".vs-counters")).to_contain_text("Running")
    # The button says which keys do the same.
    expect(stop_button(page)).to_contain_text("Alt + S")
    page.keyboard.press("Alt+s")
    expect(page.locator(".vs-counters")).to_contain_text("Stopped")


@pytest.mark.verify
def test_an_unreachable_server_is_named_with_a_remedy_and_shown_to_its_browser_alone(
    visit: Visit, workbench: Workbench, closed_port: int
) -> None:
    visitor = visit()
    page = visitor.open("/models")
    add_model(page, "out of reach", f"http://127.0.0.1:{closed_port}/v1", KEY)
    use_model(page, "out of reach")
    ask(page)
    wait_for_end(page)
    for method in ("direct", "rag", "drad"):
        failed = card(page, method).get_by_role("alert")
        expect(failed).to_contain_text("The provider cannot be reached")
        expect(failed).to_contain_text("Check the address")
        expect(failed.get_by_role("button", name="Try again")).to_be_visible()
    open_fold(page, "timeline-fold")
    expect(page.locator(".vs-bar-retry").first).to_be_visible()
    stored = b"".join(path.read_bytes() for path in workbench.data.rglob("*") if path.is_file())
    assert b"out of reach" in stored
    assert KEY.encode() not in stored
    reloaded = visitor.open("/models")
    expect(reloaded.locator(".vs-model-name").filter(has_text="out of reach")).to_be_visible()
    assert KEY not in reloaded.content()
    theirs = visit().open("/models")
    expect(theirs.locator(".vs-model-name").first).to_be_visible()
    assert "out of reach" not in theirs.content()


@pytest.mark.verify
def test_chinese_is_not_scored_on_a_model_that_speaks_none(visit: Visit) -> None:
    page = visit().open("/?lang=zh")
    expect(page.get_by_role("heading", level=1, name="提问")).to_be_visible()
    open_setup(page)
    choose(page, "模型", BUILT_IN[0].name)
    choose(page, "检索方式", "关键词")
    leave_out(page, "rowen", "ever", "haarag", "slm")
    page.get_by_role("radio", name="李白的号是什么？").click()
    expect(question_field(page)).to_have_value("李白的号是什么？")
    page.get_by_role("button", name="运行", exact=True).click()
    wait_for_end(page)
    expect(page.locator(".vs-notices")).to_contain_text("该模型不支持这个问题的语言")
    expect(page.locator("#original")).to_have_count(0)
    expect(page.locator(".vs-gauge")).to_have_count(0)
    go_to(page, "DRAD")
    expect(page.get_by_role("heading", level=1)).to_contain_text("检测")
    expect(page.get_by_text("该模型不支持这个问题的语言")).to_be_visible()
    assert "lang=zh" in page.url
    assert fits(page)
