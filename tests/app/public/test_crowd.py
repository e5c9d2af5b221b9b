"""Twenty visitors at once, on the embedded model: everyone is answered, in order, or told why not.

What it measures goes to docs/space.md; run it with `-s` to see it.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client

from tests.app.public.starting import Started, started

VISITORS = 20
WAITING = 16
MOST_MEMORY = 4 * 1024**3


def visit(space: Started, number: int) -> dict[str, Any]:
    """Ask something nobody else asks; when one was let in, when answered, and what."""
    client = Client(space.url, verbose=False)
    question = f"What happened in the year {1800 + number}?"
    begun, let_in = time.monotonic(), None
    try:
        job: Any = client.submit(question, "direct", api_name="/ask")
        for stage in job:
            if let_in is None and stage["status"] != "waiting":
                let_in = time.monotonic()
        found = job.result()
    except Exception as error:
        return {"number": number, "told": str(error), "begun": begun}
    return {"number": number, "found": found, "begun": begun, "in": let_in}


@pytest.mark.verify
def test_twenty_visitors_at_once(tmp_path: Path) -> None:
    with started(tmp_path, VERISCOPE_MAX_QUEUE=str(WAITING), VERISCOPE_MAX_RUNS="2") as space:
        visit(space, 99)
        before = space.memory
        with ThreadPoolExecutor(VISITORS) as pool:
            clock = time.monotonic()
            visits = []
            for number in range(VISITORS):
                visits.append(pool.submit(visit, space, number))
                # Far enough apart for an order to be kept, far less than a run takes.
                time.sleep(0.25)
            found = [one.result() for one in visits]
            seconds = time.monotonic() - clock
        after = space.memory
    answered = [one for one in found if "found" in one]
    turned_away = [one for one in found if "told" in one]
    assert all("are waiting already" in one["told"] for one in turned_away)
    assert len(answered) >= WAITING
    for one in answered:
        assert one["found"]["status"] == "finished"
        assert str(1800 + one["number"]) in one["found"]["question"]
        assert one["found"]["methods"]["direct"]["answer"]
    order = [one["number"] for one in sorted(answered, key=lambda one: one["in"])]
    # Two slots: neighbours may be noticed in either order.
    assert all(abs(place - sorted(order).index(number)) <= 2 for place, number in enumerate(order))
    assert after < MOST_MEMORY
    waits = sorted(one["in"] - one["begun"] for one in answered)
    print(
        f"\n{len(answered)} answered and {len(turned_away)} turned away in {seconds:.0f} s; "
        f"waited {waits[len(waits) // 2]:.1f} s (median), {waits[-1]:.1f} s at most; "
        f"memory {before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after"
    )
