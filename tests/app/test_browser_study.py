"""A study in a browser: started, read as a curve and a table, saved as a profile, and used."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect

from pipelines.engine.service import Engine
from pipelines.store import new_owner
from tests.app.conftest import Visit
from tests.app.serving import (
    Workbench,
    browser_of,
    choose,
    expect_to_fit_everywhere,
    wait_until_drawn,
)
from tests.pipelines.evaluation.studies.recorded import record

_FILES = {"CSV": ".csv", "JSON Lines": ".jsonl", "Markdown": ".md", "LaTeX": ".tex"}


@pytest.mark.verify
def test_a_setting_is_studied_saved_and_used(visit: Visit, workbench: Workbench) -> None:
    owner = new_owner()
    with closing(Engine(workbench.data)) as engine:
        engine.call(record(engine.service, owner, name=f"study-{owner[:8]}"))
    page = visit(known=browser_of(workbench, owner)).open(f"/evaluate?evaluation=study-{owner[:8]}")
    wait_until_drawn(page)
    page.get_by_text("Study a setting").click()
    values = page.get_by_role("textbox", name="Values")
    values.fill("0.5:4:0.5")
    values.press("Enter")
    wait_until_drawn(page)
    page.get_by_role("button", name="Study", exact=True).click()
    table = page.get_by_role("region", name="The study as a table")
    expect(table.get_by_role("row")).to_have_count(10)
    expect(page.get_by_text("Chosen on even items")).to_be_visible()
    expect(page.locator(".st-key-study-figure .js-plotly-plot")).to_be_visible()
    expect_to_fit_everywhere(page)
    wait_until_drawn(page)
    for form, ending in _FILES.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Study as {form}", exact=True).click()
        assert download.value.suggested_filename.endswith(f"-study{ending}")
        assert download.value.path().stat().st_size > 0
    page.get_by_role("textbox", name="Name of the profile").fill("Strict")
    page.get_by_role("textbox", name="Name of the profile").press("Enter")
    wait_until_drawn(page)
    page.get_by_role("button", name="Save as profile").click()
    expect(page.get_by_text("Saved as the profile")).to_be_visible()
    page.goto(workbench.url)
    wait_until_drawn(page)
    page.locator(".st-key-settings summary").click()
    choose(page, "Profile", "Strict")
    expect(page.get_by_text("Settings of the profile “Strict”.")).to_be_visible()
    expect_to_fit_everywhere(page)
