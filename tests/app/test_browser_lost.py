"""The server of an open page goes away: what a visitor reads then, in either language."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pipelines.base import Language
from tests.app.serving import SCRIPTED, serve_workbench
from tests.browser import PATIENCE

WORDS: dict[Language, tuple[str, str, str]] = {
    "en": ("Connection error", "Veriscope does not answer.", "What has been recorded is kept."),
    "zh": ("连接中断", "Veriscope 没有响应。", "已记录的内容不会丢失。"),
}


@pytest.mark.verify
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_workbench_that_is_gone_says_what_is_kept_and_what_to_do(
    browser: Browser, tmp_path: Path, language: Language
) -> None:
    title, gone, kept = WORDS[language]
    context = browser.new_context(reduced_motion="reduce")
    with context, ExitStack() as running:
        served = running.enter_context(serve_workbench(tmp_path, SCRIPTED))
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{served.url}/?lang={language}")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("dialog")).to_have_count(0)
        running.close()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        page.screenshot(path=tmp_path / "lost.png")
        for words in (title, gone, kept):
            expect(dialog).to_contain_text(words)
        # What is started anew is this program, and nothing names another one.
        expect(dialog).to_contain_text("make run")
        expect(dialog).not_to_contain_text("Streamlit")
        # What was on the page can still be read.
        dialog.get_by_role("button").first.click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
