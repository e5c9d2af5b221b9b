"""The Evaluate page in a browser, from an uploaded file to a run behind an answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from components.base.words import LANGUAGES, Catalogue, system_title, system_titles
from pipelines.base import Language
from tests.app.conftest import Visit
from tests.app.serving import (
    DESKTOP,
    FITS,
    PHONE,
    choose,
    expect_to_fit_everywhere,
    unfold,
    wait_until_drawn,
)
from tests.app.test_browser_failures import add_model
from tests.scripted.wire import (
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
OWN_NAMES = CAPITALS.replace("question,answer,context,area", "alpha,beta,gamma,area")
"""The same under names that say nothing: its columns are mapped by hand."""


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


def latest_height(page: Page) -> float:
    box = page.locator(".vs-evaluation-latest").bounding_box()
    assert box is not None
    return box["height"]


def press(page: Page, name: str) -> None:
    wait_until_drawn(page)
    page.get_by_role("button", name=name, exact=True).click()


def press_stop(page: Page, name: str) -> None:
    """On a wide page the keys of the button belong to its name."""
    wait_until_drawn(page)
    page.get_by_role("button", name=re.compile(f"^{name}")).click()


@pytest.mark.verify
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
    # The latest answers have their places before they come.
    expect(page.locator(".vs-evaluation-latest li")).to_have_count(5)
    height = latest_height(page)
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
    # Nothing jumps when answers come: the empty list is as high as the full one.
    assert latest_height(page) == height
    press_stop(page, "Stop")
    expect(page.get_by_text("It was stopped.")).to_be_visible()
    answered(page, "Paused")
    press(page, "All evaluations")
    page.wait_for_url(lambda url: "evaluation=" not in url)
    expect(
        page.locator(".workbench-run-question", has_text="capitals: Direct, RAG")
    ).to_be_visible()
    wait_until_drawn(page)
    page.locator("[class*='st-key-open-'] button").click()
    gate.set()
    press(page, "Continue")
    answered(page, "8 of 8 answers")
    answered(page, "Done")

    # Results, exports, items that are looked for, the run behind an answer.
    row = page.get_by_role("region", name="Results").get_by_role("row").filter(has_text="direct")
    # One in four is Paris.
    expect(row).to_contain_text("0.25 [")
    wait_until_drawn(page)
    page.locator(".st-key-evaluate-export summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Table, CSV").click()
    saved = tmp_path / "table.csv"
    download.value.save_as(saved)
    assert saved.read_text().startswith("system,method,models,exact_match,")
    page.get_by_role("textbox", name="Search").fill("PERU")
    expect(page.locator(".vs-evaluation-item")).to_have_count(1)
    expect(page.locator(".vs-evaluation-item")).to_contain_text("What is the capital of Peru?")
    expect_to_fit_everywhere(page)
    page.get_by_role("button", name="Open the run").first.click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    expect(
        page.get_by_role("heading", level=2, name="What is the capital of Peru?")
    ).to_be_visible()

    # Somebody else has no such evaluation; its owner deletes it.
    stranger = visit().open(address.removeprefix(visitor.url))
    expect(stranger.get_by_role("alert")).to_contain_text("Not found")
    page.goto(address)
    press(page, "Delete")
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No evaluations yet.")).to_be_visible()


def _file(name: str, text: str) -> Any:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


@pytest.mark.verify
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_whole_walk_in_both_languages_on_both_widths(
    visit: Visit, held: Wire, gate: threading.Event, language: Language, size: ViewportSize
) -> None:
    t, name = Catalogue(language), f"held {language} {size['width']}"
    gate.set()
    page = visit().open("/models")
    add_model(page, name, held.url)
    if language == "zh":
        wait_until_drawn(page)
        page.get_by_text("中文").first.click()
    page.get_by_role("link", name=t("nav.evaluate")).click()
    expect(page.get_by_role("heading", level=1, name=t("evaluate.title"))).to_be_visible()
    page.set_viewport_size(size)

    # The file, two settings of one method, the metrics that apply, a limit.
    wait_until_drawn(page)
    page.get_by_role("radio", name=t("evaluate.data.file")).click()
    page.locator("input[type='file']").set_input_files(_file("capitals.csv", OWN_NAMES))
    expect(page.get_by_text(t("evaluate.mapping.needed"))).to_be_visible()
    fits(page)
    choose(page, t("evaluate.part.question"), "alpha")
    for part, column in (("answers", "beta"), ("passages", "gamma")):
        wait_until_drawn(page)
        field = page.locator(f".st-key-evaluate-map-1-{part} input")
        field.fill(column)
        field.press("Enter")
        field.press("Escape")
    expect(page.get_by_role("region", name=t("evaluate.first_items"))).to_contain_text("Japan")
    offered = t("evaluate.offer.count", name=t("evaluate.offer.passages"), count="4")
    expect(page.get_by_text(offered)).to_be_visible()
    for part in ("sources", "settings", "metrics", "more"):
        unfold(page, f"evaluate-{part}")
    choose(page, t("ask.model"), name)
    fill_number(page, t("evaluate.copies"), "2")
    expect(page.locator(".vs-notice")).to_contain_text("direct 2")
    expect(page.locator(".vs-evaluation-lacks").first).to_contain_text(
        t("evaluate.lacks.wrong_answers")
    )
    # The first items take three calls of each method; the third system shares its answers.
    fill_number(page, t("evaluate.most.calls"), "6")
    fits(page)

    # The forecast, the limit that is reached and raised, the end.
    press(page, t("evaluate.try"))
    expect(page.get_by_role("heading", name=t("evaluate.forecast"))).to_be_visible()
    limit = t("evaluate.limit.calls", count="6")
    expect(page.locator(".vs-notice").filter(has_text=limit)).to_be_visible()
    fits(page)
    unfold(page, "evaluate-limits")
    fill_number(page, t("evaluate.most.calls"), "1000")
    gate.clear()
    press(page, t("evaluate.continue"))
    answered(page, t("status.running"))
    press_stop(page, t("action.stop"))
    answered(page, t("evaluate.paused"))
    fits(page)
    gate.set()
    press(page, t("evaluate.continue"))
    answered(page, t("status.done"))
    address = page.url
    unfold(page, "evaluate-export")
    for kind, begins in (("csv", "system,"), ("markdown", "| System"), ("latex", "%")):
        assert downloaded(page, t(f"evaluate.export.table_{kind}")).startswith(begins)
    assert downloaded(page, t("evaluate.export.scores_jsonl")).count("\n") == 1 + 3 * 4

    # One system alone, the wrong items of it, then all beside another evaluation.
    expect(page.locator(".vs-evaluation-item")).to_have_count(4)
    choose(page, t("evaluate.which"), t("evaluate.which.wrong", system=system_title("direct", t)))
    expect(page.locator(".vs-evaluation-item")).to_have_count(3)
    fits(page)
    press(page, t("evaluate.all"))
    expect(page.get_by_role("heading", name=t("evaluate.list"))).to_be_visible()
    fits(page)
    page.locator(".st-key-evaluate-method-questions-rag label").first.click()
    unfold(page, "evaluate-settings")
    unfold(page, "evaluate-more")
    fill_number(page, t("evaluate.copies"), "1")
    fill_number(page, t("evaluate.repeats.count"), "2")
    # The limit is still there, as all that was filled in.
    fill_number(page, t("evaluate.most.calls"), "1000")
    press(page, t("evaluate.run"))
    answered(page, t("status.done"))
    assert page.url != address
    unfold(page, "evaluate-compare-fold")
    systems = system_titles(("direct", "direct 2", "rag"), t)
    choose(page, t("evaluate.compare.with"), f"capitals{t('label.separator')}{systems}")
    this, that = t("evaluate.compare.this"), t("evaluate.compare.that")
    expect(page.locator(".vs-evaluation-item").first).to_contain_text(
        system_title(f"{that}: direct", t)
    )
    expect(page.locator(".vs-evaluation-item").first).to_contain_text(
        system_title(f"{this}: direct", t)
    )
    unfold(page, "evaluate-compare-export")
    items = downloaded(page, t("evaluate.compare.export.items_csv"))
    assert items.startswith("item,question,spread")
    assert items.count("What is the capital of") == 4
    fits(page)


def downloaded(page: Page, name: str) -> str:
    """The text of the file that a button gives."""
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return download.value.path().read_text(encoding="utf-8")


def fill_number(page: Page, label: str, value: str) -> None:
    wait_until_drawn(page)
    field = page.get_by_role("spinbutton", name=label, exact=True).first
    field.fill(value)
    field.press("Enter")
    wait_until_drawn(page)


def fits(page: Page) -> None:
    """Fail where the page can be scrolled sideways."""
    wait_until_drawn(page)
    page.wait_for_function(FITS)
