"""How long the page with the results of a large evaluation takes: `python -m scripts.bench_page`.

The workbench is served on the made-up evaluation of `scripts.bench_results`, scores and table
computed as at the end of an evaluation, and opened in a browser. What is measured is what a person
waits for, by the clock: until the table of all items stands on the page of a new server, of a
server that has shown it before, and after a filter was chosen. Then also until all that comes
below the table is drawn, and how many seconds of processors the server took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import psutil
from playwright.sync_api import Page, expect, sync_playwright

from components.base.words import Catalogue, integer
from pipelines.evaluation.runner import keep_overview
from pipelines.store import RunStore, file_url, new_owner
from scripts.bench_results import ITEMS, NAME, SYSTEMS, TAGS, made_up
from tests.app.serving import browser_of, serve_workbench, visiting, wait_until_drawn
from tests.browser import PATIENCE, require_chromium

_TIMES = 3


def _filled(data: Path) -> str:
    """Store the evaluation in the data folder of a workbench, and give its owner."""
    owner = new_owner()
    with closing(RunStore(file_url(data))) as store:
        made_up(store, owner=owner)
        keep_overview(store.evaluations, NAME, owner)
    return owner


def _server() -> psutil.Process:
    """Return the process that serves the workbench: the one child of this that runs it."""
    children = psutil.Process().children(recursive=True)
    return next(one for one in children if "app/workbench.py" in one.cmdline())


def _processors(server: psutil.Process) -> float:
    times = server.cpu_times()
    return times.user + times.system


def _measure(name: str, page: Page, act: Callable[[], object], items: int) -> None:
    """Do `act` and print how long it takes until the table of so many items, and all, is there."""
    t = Catalogue("en")
    server = _server()
    before, started = _processors(server), time.perf_counter()
    act()
    table = page.locator(".vs-evaluation").first
    expect(table).to_contain_text(t("evaluate.items", count=integer(items)), timeout=PATIENCE)
    shown = time.perf_counter() - started
    wait_until_drawn(page)
    whole, took = time.perf_counter() - started, _processors(server) - before
    print(f"{name}: table {shown:.2f} s, all of it {whole:.2f} s; {took:.2f} s of processors")


def main() -> None:
    """Measure and print."""
    t = Catalogue("en")
    expect.set_options(timeout=PATIENCE)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = Path(folder)
        owner = _filled(data)
        browser = playwright.chromium.launch(executable_path=require_chromium())
        print(f"{ITEMS:,} items, {len(SYSTEMS)} systems, by the clock:")
        with serve_workbench(data) as workbench:
            known = browser_of(workbench, owner)
            results = f"{workbench.url}/evaluate?{urlencode({'evaluation': NAME})}"
            with visiting(browser, workbench, known=known) as visitor:
                # What every page needs, and only a new server has not loaded.
                page = visitor.open("/runs")
                wait_until_drawn(page)
                for number in range(_TIMES):
                    name = "opened again" if number else "opened on a new server"
                    _measure(name, page, lambda: page.goto(results), ITEMS)
                tags = page.get_by_role("combobox", name=t("evaluate.filter.tags"))

                def choose() -> None:
                    tags.click()
                    page.get_by_role("option", name=TAGS[0]).click()

                _measure("filtered by a tag", page, choose, ITEMS // 2)
                _measure("and not any more", page, lambda: tags.press("Backspace"), ITEMS)
        browser.close()


if __name__ == "__main__":
    main()
