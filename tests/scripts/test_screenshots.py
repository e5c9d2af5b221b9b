"""What is pictured, and the sheet that shows all pictures; the pictures need a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scripts import screenshots
from scripts.screenshots import OF_README, README, ROOT, Picture, Studio, contact_sheet
from tests.app.sights import SIGHTS, show_whole

LIGHT = Picture("ask-new", "en", "light", 1280)
PHONE = Picture("ask-new", "zh", "dark", 390, fits=False)


def test_a_file_is_named_after_what_it_shows():
    assert LIGHT.file == "ask-new.en.light.1280.png"


def test_the_sheet_has_every_picture_in_the_row_of_its_page_and_says_which_is_too_wide():
    text = contact_sheet([LIGHT, PHONE, Picture("runs", "en", "light", 1280)])
    assert re.findall(r"<h2>(.+)</h2>", text) == ["ask-new", "runs"]
    assert re.findall(r'src="(.+?)"', text) == [
        "ask-new.en.light.1280.png",
        "ask-new.zh.dark.390.png",
        "runs.en.light.1280.png",
    ]
    assert text.count("scrolls sideways</figcaption>") == 1
    assert "<h1>3 pictures</h1>" in text


@pytest.mark.parametrize(
    ("wanted", "name", "expected"),
    [
        ([], "ask-new", True),
        (["ask"], "ask-new", True),
        (["ask-new"], "ask-new", True),
        (["ask-new"], "ask", False),
        (["space"], "space-1", True),
        (["runs"], "space", False),
    ],
)
def test_a_page_stands_for_all_its_states(wanted: list[str], name: str, expected: bool):
    none: list[str] = []
    studio = Studio(None, Path(), wanted, [], none, [])  # pyright: ignore[reportArgumentType]
    assert studio.wants(name) == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pages", "ask,nowhere"], "no page nowhere"),
        (["--languages", "fr"], "no language fr"),
        (["--schemes", "sepia"], "no scheme sepia"),
        (["--widths", "800"], "no width 800"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(arguments: list[str], told: str):
    with pytest.raises(SystemExit, match=told):
        screenshots.main(arguments)


def test_the_readme_shows_its_pictures_and_no_others():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^\]]+\]\(assets/screenshots/([a-z]+)\.png\)", text))
    known = {one.name: one.page for one in SIGHTS}
    assert shown == {known[name] for name in OF_README}
    assert {path.stem for path in README.glob("*.png")} == shown


def test_the_window_becomes_as_tall_as_the_page(browser: Browser):
    page = browser.new_page()
    page.set_content('<div style="height: 3000px"></div>')
    show_whole(page, 390)
    assert page.viewport_size == {"width": 390, "height": 3016}
    page.set_content('<div data-testid="stMain" style="height: 90vh; overflow: auto">'
                     '<div style="height: 2000px"></div></div>')  # fmt: skip
    show_whole(page, 1280)
    assert page.viewport_size is not None
    assert page.viewport_size["height"] >= 2000
    page.close()
