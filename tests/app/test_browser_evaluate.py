"""The Evaluate page in a browser, from an uploaded file to a run behind an answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import Visit
from tests.app.serving import choose, expect_to_fit_everywhere, wait_until_drawn
from tests.app.test_browser_failures import add_model
from tests.pipelines.models.wire import (
    Handler,
    Seen,
    Wire,
    chunk,
    completion,
    says,
    serve,
    streams,
    usage_chunk,
)

CAPITALS = """question,answer,context,area
What is the capital of France?,Paris,Paris is the capital of France.,europe
What is the capital of Japan?,Tokyo,Tokyo is the capital of Japan.,asia
What is the capital of Peru?,Lima,Lima is the capital of Peru.,america
What is the capital of Italy?,Rome,Rome is the capital of Italy.,europe
"""


class HeldHandler(Handler):
    """Says "Paris." to everything, once `gate` is open."""

    gate: threading.Event

    def answer(self, seen: Seen) -> None:
        with self.wire.lock:
            self.wire.seen.append(seen)
        while not self.gate.wait(0.02):
            if self.wire.over.is_set():
                return
        # Who was stopped meanwhile has hung up.
        with suppress(OSError):
            if seen.body.get("stream"):
                streams(chunk("Paris."), chunk(finish="stop"), usage_chunk(7, 2))(self)
            else:
                says(completion(*["Paris."] * int(seen.body.get("n") or 1)))(self)


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def held(gate: threading.Event) -> Iterator[Wire]:
    with serve(type("Held", (HeldHandler,), {"gate": gate})) as served:
        yield served
        gate.set()


def answered(page: Page, words: str) -> None:
    expect(page.locator(".vs-evaluation-progress")).to_contain_text(words)


def press(page: Page, name: str) -> None:
    wait_until_drawn(page)
    page.get_by_role("button", name=name, exact=True).click()


def test_a_file_is_evaluated_stopped_continued_read_and_deleted(
    visit: Visit, held: Wire, gate: threading.Event, tmp_path: Path
) -> None:
    visitor = visit()
    page = visitor.open("/models")
    add_model(page, "held", held.url)
    page.get_by_role("link", name="Evaluate").click()
    expect(page.get_by_role("heading", level=1, name="Evaluate")).to_be_visible()

    # A file that is none says so, and the next one is taken.
    wait_until_drawn(page)
    page.get_by_role("radio", name="Your file").click()
    page.locator("input[type='file']").set_input_files(_file("broken.csv", 'question\n"Who?'))
    expect(page.get_by_role("alert")).to_contain_text("is not CSV")
    page.locator("input[type='file']").set_input_files(_file("capitals.csv", CAPITALS))
    expect(page.get_by_role("region", name="First items, as they were read")).to_contain_text(
        "What is the capital of Japan?"
    )
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("4 items × 2 systems = 8 answers")).to_be_visible()
    expect_to_fit_everywhere(page)
    wait_until_drawn(page)
    page.locator(".st-key-evaluate-sources summary").click()
    choose(page, "Model", "held")

    # The first items, watched over a reload.
    press(page, "Try the first items")
    page.wait_for_url(re.compile(r"[?&]evaluation="))
    answered(page, "0 of 8 answers")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    address = page.url
    page.reload()
    answered(page, "Running")
    assert page.url == address
    gate.set()
    expect(page.get_by_role("heading", name="Forecast: what the rest will take")).to_be_visible()
    answered(page, "6 of 8 answers")

    # Stopped, left, found in the list, continued.
    gate.clear()
    press(page, "Continue")
    answered(page, "Running")
    press(page, "Stop")
    expect(page.get_by_text("It was stopped.")).to_be_visible()
    answered(page, "Paused")
    press(page, "All evaluations")
    page.wait_for_url(lambda url: "evaluation=" not in url)
    expect(page.get_by_text("capitals: direct, rag")).to_be_visible()
    wait_until_drawn(page)
    page.locator("[class*='st-key-open-'] button").click()
    gate.set()
    press(page, "Continue")
    answered(page, "8 of 8 answers")
    answered(page, "Done")

    # Results, exports, the run behind an answer.
    row = page.get_by_role("region", name="Results").get_by_role("row").filter(has_text="direct")
    # One in four is Paris.
    expect(row).to_contain_text("0.25 [")
    wait_until_drawn(page)
    page.locator(".st-key-evaluate-export summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Table, CSV").click()
    saved = tmp_path / "table.csv"
    download.value.save_as(saved)
    assert saved.read_text().startswith("system,method,models,n")
    expect_to_fit_everywhere(page)
    page.get_by_role("button", name="Open the run").first.click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    expect(page.get_by_role("heading", level=2, name="What is the capital of")).to_be_visible()

    # Somebody else has no such evaluation; its owner deletes it.
    stranger = visit().open(address.removeprefix(visitor.url))
    expect(stranger.get_by_role("alert")).to_contain_text("Not found")
    page.goto(address)
    press(page, "Delete")
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No evaluations yet.")).to_be_visible()


def _file(name: str, text: str) -> Any:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
