"""The Check page in a browser: an example, its verdicts in columns, in both languages."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from pipelines.samples.walkthroughs import sample_texts
from tests.app.conftest import Visit
from tests.app.serving import DESKTOP, WRITING, expect_to_fit_everywhere, wait_until_drawn


def take_example(page: Page, language: Language, number: int) -> None:
    sample = [one for one in sample_texts() if one.language == language][number]
    page.get_by_text(sample.title, exact=True).click()
    field = page.get_by_label(Catalogue(language)("check.text"), exact=True)
    expect(field).to_have_value(sample.text)
    wait_until_drawn(page)


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_checked_and_read_on_a_desk_and_on_a_phone(visit: Visit, language: Language):
    t = Catalogue(language)
    page = visit(viewport=DESKTOP).open(f"/check?lang={language}")
    wait_until_drawn(page)
    take_example(page, language, 1)
    page.get_by_role("button", name=t("check.run"), exact=True).click()
    # Every sentence stands once, and somebody has said something of one of them.
    expect(page.locator(".vs-check-sentences tbody tr")).to_have_count(4)
    expect(page.locator(".vs-check-sentences .vs-badge").first).to_be_visible()
    expect(page.get_by_role("button", name=t("runs.report"))).to_be_enabled()
    wait_until_drawn(page)
    expect_to_fit_everywhere(page)
    for reading in ("spans", "heat"):
        page.set_viewport_size(DESKTOP)
        page.get_by_text(t(f"check.reading.{reading}"), exact=True).first.click()
        expect(page.locator(f".vs-section-check-{reading}")).to_be_visible()
        expect_to_fit_everywhere(page)


@pytest.mark.verify
def test_a_check_above_a_limit_is_held_back_raised_and_begun(visit: Visit):
    t = Catalogue("en")
    page = visit(viewport=DESKTOP).open("/check")
    wait_until_drawn(page)
    estimate = page.locator(".st-key-estimate")
    expect(estimate).to_contain_text(t("check.estimate.none"))
    take_example(page, "en", 1)
    expect(estimate).to_contain_text(re.compile(r"About \d+ calls"))
    page.get_by_text(t("check.settings"), exact=True).click()
    page.get_by_role("tab", name=t("setting.run.title")).click()
    field = page.get_by_role("spinbutton", name=t("limit.calls"))
    field.fill("2")
    field.press("Enter")
    expect(estimate).to_contain_text("limit: 2 calls")
    page.get_by_role("button", name=t("check.run"), exact=True).click()
    expect(page.locator(".st-key-over-limit")).to_contain_text("more than the limit of 2")
    expect(page).not_to_have_url(re.compile("run="))
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    page.get_by_role("button", name=t("limit.over.anyway")).click()
    expect(page.locator(".vs-notices")).to_contain_text("The run stopped at the limit of calls")
    expect(page.locator(".vs-spending")).to_contain_text(re.compile(r"limit 2"))
    # What there is of it is kept: every sentence stands there.
    expect(page.locator(".vs-check-sentences tbody tr")).to_have_count(4)


@pytest.mark.verify
@pytest.mark.parametrize(
    ("language", "refused"),
    [
        ("en", "The text holds no word that could be checked."),
        ("zh", "文本中没有可以核查的词语。"),
    ],
)
def test_a_file_of_texts_is_checked_saved_and_opened(
    visit: Visit, language: Language, refused: str
):
    t = Catalogue(language)
    page = visit(viewport=DESKTOP).open(f"/check?lang={language}")
    wait_until_drawn(page)
    page.get_by_text(t("check.many"), exact=True).click()
    rows = [
        {"id": "tea", "text": "Tea is hot. Ice is cold.", "sources": ["Tea is hot."]},
        {"id": "nothing", "text": "…"},
    ]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    file: Any = {"name": "texts.jsonl", "mimeType": "application/jsonl", "buffer": data}
    page.locator("input[type='file']").set_input_files(file)
    begin = page.get_by_role("button", name=t("check.many.run"), exact=True)
    expect(begin).to_be_enabled()
    wait_until_drawn(page)
    begin.click()
    said = t("check.many.done", done="2", total="2")
    expect(page.get_by_text(said)).to_be_visible(timeout=WRITING)
    found = page.get_by_role("table", name=t("check.many"))
    expect(found.locator("tbody tr")).to_have_count(2)
    expect(found).to_contain_text(refused)
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=t("check.many.csv"), exact=True).click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as saved:
        assert [row["id"] for row in csv.DictReader(saved)] == ["tea", "tea", "tea", "nothing"]
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    found.get_by_role("button").first.click()
    expect(page.locator(".vs-check-sentences tbody tr")).to_have_count(2)
