"""The report in a real browser: opened from disk, offline, on a phone, and on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from components.base.words import Catalogue
from components.run.report import MOST_BYTES, report_html
from pipelines.base import Language
from pipelines.run.view import RunView, fold
from pipelines.store.exchange import load_recording, recordings
from tests.components.run.test_report import long_run

PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
MADE = datetime(2026, 11, 25, 8, 30, tzinfo=UTC)

HIDDEN = """(without) => [...document.querySelectorAll("main *")].filter((element) => {
  const text = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  const unseen = ".vs-sr, legend, [role=tooltip], .vs-outcome .vs-diff-summary";
  if (!text || element.closest(without ? `${unseen}, ${without}` : unseen)) return false;
  return !element.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true });
}).map((element) => `${element.className}: ${element.textContent.slice(0, 40)}`)
"""
"""Texts that cannot be seen, but for those that are only heard, and what is inside `without`."""

CHOICES = ".vs-draft-panel, .vs-by-entropy, .vs-by-probability"
"""Of these one is seen at a time, as the reader chooses; on paper all."""

PRINTED_ONCE = ".vs-part-evidence details, tr .vs-means, thead"
"""On paper the passages stand in the part with the evidence, what a number means in a table is said
in its first row, and cells that stand one below the other are labelled themselves."""

CUT = """() => [...document.querySelectorAll("main *")].filter((element) => {
  const style = getComputedStyle(element);
  if (element.closest(".vs-sr, thead") || element.clientWidth < 2) return false;
  const wide = element.scrollWidth > element.clientWidth + 1 && style.overflowX !== "visible";
  const long = element.scrollHeight > element.clientHeight + 1 && style.overflowY !== "visible";
  return wide || long;
}).map((element) => `${element.tagName} ${element.className}`)"""
"""What would have to be scrolled, which paper cannot be."""

FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


class Offline:
    """A browser without a network, which notes every request and every breach of a policy."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.faults: list[str] = []
        context.set_offline(True)
        context.on("request", self._requested)
        context.on("console", lambda message: self._said(message.type, message.text))
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"
        )

    def open(self, file: Path) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.goto(file.as_uri())
        return page

    def _requested(self, request: object) -> None:
        url = str(getattr(request, "url", ""))
        if not url.startswith("file:"):
            self.faults.append(url)

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.faults.append(text)


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def offline(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Offline]:
    context = browser.new_context(viewport=request.param, reduced_motion="reduce")
    opened = Offline(context)
    yield opened
    context.close()
    assert not opened.faults, opened.faults


def real() -> RunView:
    return fold(load_recording(recordings()[0].id).events)


def written(folder: Path, view: RunView, language: Language = "en") -> Path:
    file = folder / "report.html"
    file.write_text(report_html(view, Catalogue(language), made=MADE), encoding="utf-8")
    return file


def leaves_on_paper(page: Page) -> int:
    """How many pages it takes; the file has one object for each."""
    paper = page.pdf(format="A4", print_background=True)
    return len(re.findall(rb"/Type\s*/Page\b", paper))


@pytest.mark.verify
@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_opens_offline_and_shows_everything(
    offline: Offline, tmp_path: Path, language: Language
):
    page = offline.open(written(tmp_path, real(), language))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert page.evaluate(FITS)
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => d.open = true)")
    # Its styles are there: the policy lets them in by their hash.
    shown = page.locator(".vs-gauge-value").filter(visible=True)
    assert shown.first.evaluate("e => e.offsetWidth") > 0
    assert page.evaluate(HIDDEN, CHOICES) == []
    assert page.evaluate(FITS)


@pytest.mark.verify
def test_on_paper_nothing_is_out_of_sight(offline: Offline, tmp_path: Path):
    page = offline.open(written(tmp_path, real()))
    unfolded = page.locator("details[open]").count()
    page.emulate_media(media="print")
    # The styles alone unfold everything, where a browser does not say that it prints.
    assert page.evaluate(HIDDEN, f".vs-choices, {PRINTED_ONCE}") == []
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("details:not([open])")).to_have_count(0)
    assert page.evaluate(CUT) == []
    # Methods that are compared stand one below the other.
    tops = "(all) => all.map((one) => one.getBoundingClientRect().left)"
    assert len(set(page.locator(".vs-column").evaluate_all(tops))) == 1
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    expect(page.locator("details[open]")).to_have_count(unfolded)
    page.emulate_media(media="screen")
    # Each of ten parts begins on a page of its own.
    assert leaves_on_paper(page) >= 11


@pytest.mark.verify
def test_a_link_opens_the_call_it_leads_to(offline: Offline, tmp_path: Path):
    page = offline.open(written(tmp_path, real()))
    section = page.locator("section[aria-labelledby=report-method-drad]")
    section.locator("details").evaluate_all("(all) => all.forEach((one) => one.open = true)")
    link = section.locator("a[href^='#timeline-call-']").first
    target = link.get_attribute("href")
    assert target is not None
    link.click()
    expect(page.locator(target)).to_be_visible()
    expect(page.locator(f"{target} > summary")).to_be_in_viewport()


@pytest.mark.verify
def test_a_token_tells_its_numbers(offline: Offline, tmp_path: Path):
    page = offline.open(written(tmp_path, real()))
    token = page.locator("#report-overview ~ * [data-roving] span[data-i]").first
    token.click()
    expect(page.get_by_role("tooltip")).to_be_visible()


@pytest.mark.verify
def test_a_long_run_is_small_and_opens(offline: Offline, tmp_path: Path):
    file = written(tmp_path, long_run(1_500, 12_000))
    assert file.stat().st_size <= MOST_BYTES
    page = offline.open(file)
    expect(page.locator(".vs-report .vs-notices")).to_contain_text("To keep this file under 5 MB")
    expect(page.locator(".vs-calls > li")).to_have_count(1_500)
    assert page.evaluate(FITS)
