"""No page of the workbench has a barrier that axe-core calls serious, in either theme.

Nor can one be scrolled sideways on a phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from components.base.words import Catalogue
from pipelines.base import Language
from tests.app.axe import OF_COLOUR, barriers, expect_no_barriers
from tests.app.playing import open_engine
from tests.app.public.looking import PAGE_FITS, looking
from tests.app.serving import (
    DESKTOP,
    FITS,
    PHONE,
    SCRIPTED,
    Workbench,
    browser_of,
    serve_workbench,
    visiting,
    wait_until_drawn,
)
from tests.app.sights import SIGHTS, Filled, Sight, fill, report_of, show_whole

CHINESE = (
    "ask",
    "evaluate",
    *(one.name for one in SIGHTS if one.page == "annotate"),
    "library-collection",
)
"""Pages that are also looked at in Chinese: their markup is the same, their letters are not."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workbench, Filled]]:
    """A workbench with something of each kind in it."""
    data = Path(tmp_path_factory.mktemp("axe"))
    found = fill(data, open_engine)
    with serve_workbench(data, SCRIPTED) as workbench:
        yield workbench, found


def look(
    browser: Browser,
    place: tuple[Workbench, Filled],
    sight: Sight,
    language: Language,
) -> None:
    workbench, found = place
    known: StorageState | None = None if sight.guest else browser_of(workbench, found.owner)
    with visiting(browser, workbench, known=known) as visitor:
        page = visitor.open(sight.at(found, language))
        wait_until_drawn(page)
        sight.prepare(page, Catalogue(language))
        wait_until_drawn(page)
        show_whole(page, DESKTOP["width"])
        expect_no_barriers(page)
        darken(page)
        expect_no_barriers(page, OF_COLOUR)
        page.set_viewport_size(PHONE)
        page.wait_for_function(FITS)


def darken(page: Page) -> None:
    """As the browser's owner does who turns the lights off."""
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    expect(page.locator("[data-testid='stApp']")).to_have_css("color-scheme", "dark")
    wait_until_drawn(page)
    # Half way between two themes there is no contrast to be measured.
    page.wait_for_function(
        "() => !document.getAnimations().some((one) => one instanceof CSSTransition)"
    )


@pytest.mark.verify
@pytest.mark.parametrize("sight", SIGHTS, ids=lambda one: one.name)
def test_a_page_has_no_barriers(
    browser: Browser, filled: tuple[Workbench, Filled], sight: Sight
) -> None:
    look(browser, filled, sight, "en")


@pytest.mark.verify
@pytest.mark.parametrize("name", CHINESE)
def test_a_page_has_no_barriers_in_chinese(
    browser: Browser, filled: tuple[Workbench, Filled], name: str
) -> None:
    look(browser, filled, next(one for one in SIGHTS if one.name == name), "zh")


@pytest.mark.verify
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_has_no_barriers(
    browser: Browser, filled: tuple[Workbench, Filled], tmp_path: Path, scheme: str
) -> None:
    workbench, found = filled
    file = tmp_path / "report.html"
    file.write_text(report_of(workbench.data, found, "en"), encoding="utf-8")
    with looking(browser, scheme) as context:
        page = context.new_page()
        page.goto(file.as_uri())
        expect_no_barriers(page, OF_COLOUR if scheme == "dark" else ())
        page.set_viewport_size(PHONE)
        assert page.evaluate(PAGE_FITS)


@pytest.mark.verify
def test_a_barrier_is_told_with_its_element_and_its_remedy(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        '<html lang="en"><title>t</title><main><h1>One</h1><img src="data:,">'
        '<p style="color: #999; background: #fff">Weak words</p><p>Strong words</p></main></html>'
    )
    image, contrast = sorted(barriers(page), reverse=True)
    assert image.startswith("image-alt (critical): ")
    assert '  is    <img src="data:,">' in image
    assert "  mend  Element does not have an alt attribute" in image
    assert contrast.startswith("color-contrast (serious): ")
    assert "Weak words" in contrast
    assert "insufficient color contrast of 2.84" in contrast
    assert barriers(page, ["image-alt"]) == [image]
    page.close()
