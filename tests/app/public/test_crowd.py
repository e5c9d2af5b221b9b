"""Fifty pages and ten questions at once on the embedded model: all see it move, all are answered.

Some of the pages are open in a real browser, which loads everything. Fifty of those would measure
the browser, which has the same two cores here; the others ask the server for what a browser asks it
for that was here before (see `tests/app/public/visiting.py`). What it measures goes to
docs/space.md; run it with `-s` to see it.
"""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from playwright.sync_api import Browser, Page

from tests.app.public.starting import Started, started
from tests.app.public.visiting import PageSession, opened
from tests.browser import PATIENCE

BROWSED = 5
PAGES = 50
ASKS = 10
MOST_MEMORY = 4 * 1024**3
LIVELY = 60.0
"""Seconds after which something hangs, on any machine; what is measured is printed."""


class Asked(NamedTuple):
    """When somebody asked and when the answer was there, in seconds; and how many were before them,
    each time that they were told."""

    begun: float
    answered: float
    before: list[int]


_BEFORE = re.compile(r"(\d+) visitors? (?:is|are) before you")

_MOVES = """() => {
  const player = globalThis.veriscopePlayer;
  return player?.made.size > 0 && performance.now() - player.began > 400;
}"""

_MOVED = "() => veriscopePlayer.began / 1000 + 0.4"


def moves(page: Page) -> float:
    """Seconds from the opening of a browser's page until the walkthrough moves.

    One page is looked at after the other: on a later one it may be over by then.
    """
    page.wait_for_function(_MOVES, timeout=PATIENCE)
    return page.evaluate(_MOVED)


def size_of(browser: Browser, url: str) -> tuple[int, int]:
    """How many requests a view takes of a browser that was never here, and how many bytes."""
    page = browser.new_page()
    sizes: list[int] = []

    def count(event: dict[str, int]) -> None:
        sizes.append(int(event["encodedDataLength"]))

    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", count)
    page.goto(url)
    moves(page)
    page.close()
    return len(sizes), sum(sizes)


async def ask(page: PageSession, number: int) -> Asked:
    """Ask something that nobody else asks, and follow it to its answer."""
    begun, before = time.monotonic(), list[int]()
    async for frame in page.ask(f"What happened in the year {1800 + number}?"):
        before += [int(one) for one in _BEFORE.findall(frame)]
    return Asked(begun, time.monotonic(), before)


async def crowd(space: Started) -> tuple[list[PageSession], list[Asked]]:
    """The pages that no browser draws; the first ten ask as soon as they are loaded."""
    arrived: list[PageSession] = []
    asked: list[Asked] = []
    over = asyncio.Event()

    async def visit(number: int) -> None:
        async with opened(space.url, number) as page:
            await page.load()
            arrived.append(page)
            if number < ASKS:
                asked.append(await ask(page, number))
            if len(arrived) == PAGES - BROWSED and len(asked) == ASKS:
                over.set()
            await over.wait()

    async with asyncio.timeout(5 * LIVELY):
        await asyncio.gather(*(visit(number) for number in range(PAGES - BROWSED)))
    return arrived, asked


async def warm(space: Started) -> None:
    """One page and one question, so that nothing is loaded for the first time."""
    async with opened(space.url, 999_999) as page:
        await page.load()
        assert page.frames > 10
        await ask(page, 999)


def browser_seconds() -> float:
    """Processor time that the browsers of this test took so far."""
    found = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "chrom" in child.name():
                found += sum(child.cpu_times()[:2])
    return found


@pytest.mark.verify
@pytest.mark.alone
def test_fifty_pages_and_ten_questions_at_once(tmp_path: Path, browser: Browser):
    unlimited = {"VERISCOPE_RUNS_PER_HOUR": "0", "VERISCOPE_ADDRESS_RUNS_PER_HOUR": "0"}
    # The browser's own loop runs on this thread.
    with started(tmp_path, **unlimited) as space, ThreadPoolExecutor(1) as elsewhere:
        requests, size = size_of(browser, space.url)
        elsewhere.submit(asyncio.run, warm(space)).result()
        process = psutil.Process(space.process.pid)
        before, worked = space.memory, sum(process.cpu_times()[:2])
        drawn = browser_seconds()
        clock = time.monotonic()
        others = elsewhere.submit(asyncio.run, crowd(space))
        pages = [browser.new_page() for _ in range(BROWSED)]
        for page in pages:
            page.goto(space.url, wait_until="commit")
        seen = [moves(page) for page in pages]
        drawn = browser_seconds() - drawn
        arrived, asked = others.result()
        seconds = time.monotonic() - clock
        after, worked = space.memory, sum(process.cpu_times()[:2]) - worked
        stored = sum(file.stat().st_size for file in tmp_path.glob("veriscope.db*"))
    moved = sorted(page.moved_after for page in arrived)
    answers = [one.answered - one.begun for one in asked]
    print(
        f"\n{PAGES} pages ({requests} requests, {size / 1000:.0f} kB): the walkthrough moves after"
        f" {moved[len(moved) // 2]:.1f} s (median), {moved[-1]:.1f} s at most; in {BROWSED}"
        f" browsers after {', '.join(f'{one:.1f}' for one in seen)} s, in which those worked"
        f" {drawn:.0f} s.\n{ASKS} questions: answered"
        f" after {min(answers):.1f} to {max(answers):.1f} s.\nAll in {seconds:.0f} s, in which the"
        f" server worked {worked:.0f} s. Memory {before / 2**20:.0f} MiB before,"
        f" {after / 2**20:.0f} MiB after; {stored / 1000:.0f} kB stored."
    )
    assert len(arrived) == PAGES - BROWSED
    assert max(*moved, *seen) < LIVELY
    assert after < MOST_MEMORY
    assert len(asked) == ASKS
    # Nobody is overtaken by who came later, and who had more before them is answered later.
    assert all(one.before == sorted(one.before, reverse=True) for one in asked)
    waited = sorted((one for one in asked if one.before), key=lambda one: one.before[0])
    order = sorted(waited, key=lambda one: one.answered)
    # Two slots: neighbours may be answered in either order.
    assert all(abs(order.index(one) - place) <= 3 for place, one in enumerate(waited))
