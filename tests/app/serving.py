"""The real workbench on a loopback port, and what a visitor does in it."""

from __future__ import annotations

import gzip
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    StorageState,
    StorageStateCookie,
    ViewportSize,
    expect,
)
from playwright.sync_api import (
    TimeoutError as PatienceEnded,
)

from app.session import COOKIE
from pipelines.engine.estimate import basis_for, first_methods
from pipelines.run.events import default_models
from pipelines.store import RunStore, new_owner
from tests.browser import PATIENCE
from tests.network import watch_pages

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Where was Bill Clinton born and raised?"
RECORDED = ROOT / "tests" / "data" / "runs" / "clinton.jsonl.gz"
"""A run of all methods that the embedded model once made of `QUESTION`."""

STREAMLIT = ("-m", "streamlit")
SCRIPTED = ("-m", "tests.app.scripted_workbench")
"""In place of Streamlit: the same, but no model has to be loaded."""

_FAULTS = (
    "Uncaught app execution",
    "failed unexpectedly",
    "ended unexpectedly",
    "KeyError",
    "cannot be drawn",
)
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
WRITING = 240_000
"""Milliseconds until a whole run is over: the models of a busy machine may be slow."""


@dataclass
class Workbench:
    """A running server and its data."""

    url: str
    data: Path


@dataclass(frozen=True)
class Finished:
    """A run that has ended, and the browser it belongs to."""

    run: str
    browser: StorageState


@dataclass
class Visitor:
    """A browser of its own. `faults` collects what went wrong in its pages."""

    context: BrowserContext
    url: str
    faults: list[str] = field(default_factory=list)

    def open(self, address: str = "/") -> Page:
        """A page at `address`, drawn."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.goto(self.url + address)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        return page


@contextmanager
def serve_workbench(
    data: Path,
    program: Sequence[str] = STREAMLIT,
    *,
    under: Sequence[str] = (),
    strict: bool = True,
    port: int | None = None,
    **variables: str,
) -> Iterator[Workbench]:
    """`streamlit run app/workbench.py` as people start it, until the end of the block.

    `program` is what Python is to run in place of Streamlit, `under` what Python is run by;
    `variables` are of its environment. Without `strict`, what has no words is shown by its name,
    as people see it. `port` is one that was served before, for a server that is started again.
    """
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    log = data / "server.log"
    # One thread: threads that wait for each other by spinning are slowest on a busy machine.
    settings = {
        "VERISCOPE_DATA": str(data),
        "VERISCOPE_STRICT_MESSAGES": "1" if strict else "0",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    command = [*under, sys.executable, *program, "run", "app/workbench.py"]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "--server.port", str(port), "--server.headless", "true"],
            cwd=ROOT,
            env=os.environ | settings,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_served(url, server)
            yield Workbench(url, data)
        finally:
            server.terminate()
            # What is being computed is not cut short.
            server.wait(timeout=WRITING / 1000)
    told = log.read_text(errors="replace")
    assert not [fault for fault in _FAULTS if fault in told], told


def bring_recording(workbench: Workbench) -> Finished:
    """Gives a new browser a run of its own: the one in `RECORDED`."""
    owner = new_owner()
    store = RunStore(f"sqlite:///{workbench.data / 'veriscope.db'}")
    try:
        run = store.import_run(gzip.decompress(RECORDED.read_bytes()).decode(), owner)
    finally:
        store.close()
    return Finished(run, browser_of(workbench, owner))


def browser_of(workbench: Workbench, owner: str) -> StorageState:
    """What a browser remembers that was here before as `owner`."""
    address = urlsplit(workbench.url)
    cookie: StorageStateCookie = {
        "name": COOKIE,
        "value": owner,
        "domain": address.hostname or "",
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Lax",
    }
    return {"cookies": [cookie], "origins": []}


def _wait_until_served(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urlopen(f"{url}/_stcore/health", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("The workbench ended before it served anything.")


@contextmanager
def visiting(
    browser: Browser,
    workbench: Workbench,
    *,
    scheme: str = "light",
    viewport: ViewportSize = DESKTOP,
    known: StorageState | None = None,
    touch: bool = False,
) -> Iterator[Visitor]:
    """A browser of its own, or with `known` one that was here before; `touch`: with fingers."""
    context = browser.new_context(
        viewport=viewport,
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-US",
        # What moves is drawn over and over, which costs more than all the rest of a page.
        reduced_motion="reduce",
        storage_state=known,
        has_touch=touch,
    )
    visitor = Visitor(context, workbench.url)
    watch_pages(context, visitor.faults.append)
    try:
        yield visitor
    finally:
        context.close()
    assert visitor.faults == [], "\n".join(visitor.faults)


def question_field(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^(Question|问题)$"))


def stop_button(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("^(Stop|停止)"))


UNFOLDED = """() => document.querySelector('.st-key-setup details')
    .getAnimations({subtree: true}).length === 0"""
"""Whether the setup has unfolded to the end, for the browser to find out."""


def open_setup(page: Page) -> None:
    """Unfold the methods, the model and the evidence on the Ask page."""
    wait_until_drawn(page)
    page.locator(".st-key-setup summary").click()
    expect(page.locator(".st-key-choice-direct")).to_be_visible()
    # A list that is opened while the fields still move closes at once.
    page.wait_for_function(UNFOLDED)
    wait_until_drawn(page)


def unfold(page: Page, key: str) -> None:
    """Unfold the part of the page whose key begins so, unless it is open; it is drawn then."""
    wait_until_drawn(page)
    fold = page.locator(f"[class*='st-key-{key}'] details").first
    if fold.get_attribute("open") is None:
        fold.locator("summary").click()
        # A browser unfolds at once; another press before the server has answered may be lost.
        inside = fold.get_by_test_id("stExpanderDetails").get_by_test_id("stElementContainer")
        expect(inside.first).to_be_visible()
    wait_until_drawn(page)


def wait_until_drawn(page: Page) -> None:
    """Wait until the page is whole: what is changed while it is being drawn may be lost."""
    expect(page.locator("[data-testid='stApp']")).to_have_attribute(
        "data-test-script-state", "notRunning"
    )
    # The first field of its kind is fetched by the browser, and a grey box keeps its place.
    expect(page.locator("[data-testid='stSkeleton']:visible")).to_have_count(0)


def ticked_at_first() -> list[str]:
    """The methods that a new visitor finds ticked."""
    models = default_models()
    return first_methods(models, basis_for(models["main"]))


def leave_out(page: Page, *methods: str) -> None:
    """Untick methods on the Ask page: what is not looked at need not be waited for."""
    if not page.locator(".st-key-choice-direct").is_visible():
        open_setup(page)
    for method in methods:
        wait_until_drawn(page)
        if page.locator(f".st-key-choice-{method} input").is_checked():
            page.locator(f".st-key-choice-{method} label").click()
        expect(page.locator(f".st-key-choice-{method} input")).not_to_be_checked()


def ask(page: Page, question: str = QUESTION) -> None:
    """Type a question and press Enter."""
    question_field(page).fill(question)
    question_field(page).press("Enter")


def wait_for_end(page: Page) -> str:
    """Wait until the run of the page is over; its id."""
    expect(page).to_have_url(re.compile(r"[?&]run="), timeout=WRITING)
    expect(page.locator(".vs-counters")).to_contain_text(
        re.compile("Done|Failed|Stopped|完成|失败|停止"), timeout=WRITING
    )
    expect(stop_button(page)).to_have_count(0)
    return run_of(page)


def run_of(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query)["run"][0]


ENDED = re.compile(r"\bvs-method-done\b")
"""The class of the line of a method that has ended well."""


def open_fold(page: Page, key: str) -> None:
    """Open what is folded on the page of a run: "timeline-fold", "evidence-fold"."""
    page.locator(f"details[data-key={key}] > summary").first.click()


def card(page: Page, method: str) -> Locator:
    """The row of a method on the Ask page."""
    return page.locator(f"#methods-{method}")


def choose(page: Page, label: str, option: str) -> None:
    """Choose an option of a select box, whose list a page that is drawn again closes."""
    box = page.get_by_role("combobox", name=label, exact=True)
    wanted = page.get_by_role("option", name=option).last
    for _ in range(5):
        wait_until_drawn(page)
        box.click()
        with suppress(PatienceEnded):
            wanted.click(timeout=PATIENCE / 5)
            return
        page.keyboard.press("Escape")
    raise AssertionError(f"{label!r} offers no {option!r}.")


OF_MODELS = ("Models", "Profiles", "Prompts", "模型", "配置方案", "提示词")
"""The entries of the menu of models."""


def go_to(page: Page, name: str) -> None:
    """Follow the link to another page, which keeps the run that is looked at."""
    link = page.get_by_role("link", name=name, exact=True)
    # The methods have a menu of their own, and so have the models. For a moment there is another
    # one, while it is found out whether there is room for all pages.
    group = "^(Models|模型)" if name in OF_MODELS else "^(Methods|方法)"
    menu = page.get_by_test_id("stTopNavSection").filter(has_text=re.compile(group))
    entry = page.get_by_role("menuitem", name=name, exact=True)
    for _ in range(5):
        wait_until_drawn(page)
        expect(menu).to_be_visible()
        with suppress(PatienceEnded):
            for one in [link] if link.count() else [menu, entry]:
                one.click(timeout=PATIENCE / 10)
            return
        page.keyboard.press("Escape")
    raise AssertionError(f"The navigation has no {name!r}.")


def events_stored(data: Path) -> int:
    """How many events all runs have recorded."""
    with sqlite3.connect(data / "veriscope.db") as database:
        return database.execute("select count(*) from events").fetchone()[0]


FITS = """() => [document.documentElement, document.querySelector('[data-testid="stMain"]')]
    .every((element) => element.scrollWidth <= element.clientWidth)"""
"""Whether nothing has to be scrolled sideways, for the browser to find out."""


def fits(page: Page) -> bool:
    """Whether nothing has to be scrolled sideways."""
    return page.evaluate(FITS)


def expect_to_fit_everywhere(page: Page) -> None:
    """Fail unless it fits on a desktop and on a phone, which it is left on."""
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        # Drawings follow a moment later.
        page.wait_for_function(FITS)
