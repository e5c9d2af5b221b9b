"""Ten thousand items: memory does not grow with the answers while an evaluation goes on."""

from __future__ import annotations

import gc
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from pipelines.evaluation.plan import Item
from pipelines.evaluation.runner import Runner
from tests.pipelines.evaluation.bench import create, opened, spec
from tests.scripted.fakes import FakeModel

ITEMS = 10_000
EVERY = 1_000
SETTLED = 3
"""Thousands of answers until caches and pools are as large as they get."""

MOST_GROWTH = 64 * 2**20
"""Bytes: the scores of ten thousand answers that the runner keeps, and what comes and goes."""


@pytest.mark.verify
async def test_memory_is_bounded_while_ten_thousand_items_are_answered(tmp_path: Path):
    items = [
        Item(
            id=f"q{number}",
            question=f"Who was number {number} of {ITEMS}?",
            answers=(f"Nobody {number}",),
        )
        for number in range(ITEMS)
    ]
    model = FakeModel("Nobody 7, whom all of them knew well.")
    process, found = psutil.Process(), list[int]()
    async with opened(tmp_path, model) as service:
        name = create(service, spec(), items=items)
        del items
        async with aclosing(Runner(service, name, owner="me", at_once=8).run()) as steps:
            async for progress in steps:
                if progress.answered >= EVERY * (len(found) + 1):
                    # What the test's own model remembers is not the evaluation's.
                    model.asked.clear()
                    gc.collect()
                    found.append(process.memory_info().rss)
        assert service.store.evaluations.get(name, "me").done == ITEMS
    print("MiB after each thousand answers:", *(one // 2**20 for one in found))
    assert len(found) == ITEMS // EVERY
    assert min(found[-2:]) - max(found[:SETTLED]) < MOST_GROWTH
