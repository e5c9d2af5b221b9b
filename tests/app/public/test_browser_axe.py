"""No tab of the Space has a barrier that axe-core calls serious, in either theme.

Nor can one be scrolled sideways on a phone.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from pipelines.base import Language
from pipelines.store.exchange import recordings
from tests.app.axe import OF_COLOUR, barriers
from tests.app.public.conftest import Served
from tests.app.public.looking import PAGE_FITS, each_tab, looking, open_space
from tests.app.serving import DESKTOP, PHONE
from tests.app.sights import show_whole

pytestmark = pytest.mark.verify


@pytest.mark.parametrize(
    ("language", "scheme", "run"),
    [
        ("en", "light", ""),
        ("en", "dark", ""),
        ("zh", "light", ""),
        ("en", "light", recordings()[0].id),
    ],
)
def test_a_tab_has_no_barriers(
    browser: Browser, served: Served, language: Language, scheme: str, run: str
) -> None:
    served.let_go()
    found: list[str] = []
    with looking(browser, scheme) as context:
        page = open_space(context, served.url, language, run)
        if not run:
            # With everything that is folded at the top.
            for fold in ("methods", "settings", "own"):
                page.locator(f"#{fold} > button").click()
        for number, tab in enumerate(each_tab(page)):
            show_whole(page, DESKTOP["width"])
            rules = OF_COLOUR if scheme == "dark" else ()
            # What surrounds the run is the same beside every tab.
            within = "#result" if number else ""
            found += [f"{tab}: {one}" for one in barriers(page, rules, within)]
            page.set_viewport_size(PHONE)
            page.wait_for_function(PAGE_FITS)
    # The same element stands beside every tab.
    once = {one.partition(": ")[2]: one for one in found}
    assert not once, f"{len(once)} barriers\n\n" + "\n\n".join(once.values())
