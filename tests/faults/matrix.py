"""Runs cells of the matrix, many at once, and counts what came of them."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context

from pipelines.base import Answer
from tests.faults.cells import Result, Server, follow_tasks, run_cell, served
from tests.faults.faults import FAULTS
from tests.faults.programs import Cell

AT_ONCE, SLOW_AT_ONCE = 8, 24
"""Cells under way at once: those that work, and those that mostly wait for a limit."""

PROCESSES = 2

STANDSTILL = 10.0
"""Seconds without a turn of the event loop that are reported: calls time out by them."""

OUTCOMES = ("recovered", "remarked", "early", "failed")
"""How a run with a fault may end: as without it; with a remark on the answer; with the draft and
the error; with the error alone."""


def run_all(cells: Sequence[Cell]) -> list[Result]:
    """The results of `cells`, computed by two processes, and of the runs without a fault."""
    shares = [cells[number::PROCESSES] for number in range(PROCESSES)]
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        return [result for results in pool.map(_share, shares) for result in results]


def _share(cells: Sequence[Cell]) -> list[Result]:
    logging.disable(logging.CRITICAL)
    os.environ["OMP_NUM_THREADS"] = "1"
    return asyncio.run(run_cells(cells))


async def run_cells(cells: Sequence[Cell]) -> list[Result]:
    """The results of `cells`, and those runs without a fault that went wrong by themselves."""
    follow_tasks()
    async with _watched(), served() as server:
        healthy = {_healthy(cell): Result(cell, "") for cell in cells if cell.program != "probe"}
        for cell in healthy:
            healthy[cell] = await _without_fault(server, cell)
        quick, slow = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(SLOW_AT_ONCE)

        async def one(cell: Cell) -> Result:
            known = healthy.get(_healthy(cell))
            fault = FAULTS.get(cell.fault)
            async with slow if fault and fault.slow else quick:
                return await run_cell(server, cell, known.answer if known else None)

        wrong = [result for result in healthy.values() if result.problems]
        results = await asyncio.gather(*map(one, cells))
        for number, result in enumerate(results):
            if result.outcome == "void":
                # On a busy machine a call may pass its limit before the server has seen it.
                results[number] = await one(result.cell)
        return wrong + results


@asynccontextmanager
async def _watched() -> AsyncIterator[None]:
    """Print where the event loop stood still, and whether it computed meanwhile or had no turn."""

    async def pulse() -> None:
        while True:
            faulthandler.dump_traceback_later(STANDSTILL)
            began, computed = time.monotonic(), time.process_time()
            await asyncio.sleep(1)
            took, used = time.monotonic() - began, time.process_time() - computed
            if took > STANDSTILL:
                words = f"{took:.0f} s without a turn of the event loop, {used:.0f} s computed"
                print(words, file=sys.stderr, flush=True)

    watch = asyncio.create_task(pulse())
    try:
        yield
    finally:
        watch.cancel()
        faulthandler.cancel_dump_traceback_later()


def _healthy(cell: Cell) -> Cell:
    """The same run without a fault."""
    return Cell(cell.program, "none", "none", "once", cell.streamed, cell.native, cell.language)


async def _without_fault(server: Server, cell: Cell) -> Result:
    result = await run_cell(server, cell, None)
    answered: Answer | None = result.answer
    if result.outcome != "recovered" or answered is None:
        result.problems.append(f"without a fault: {result.outcome} {result.code}")
    return result


def counted(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """Outcomes by fault."""
    table: dict[str, Counter[str]] = {name: Counter() for name in FAULTS}
    for result in results:
        if result.cell.fault in table:
            table[result.cell.fault][result.outcome] += 1
    return table


def problems_of(results: Sequence[Result]) -> list[str]:
    """Every problem with its cell."""
    found = [f"{result.cell}: {problem}" for result in results for problem in result.problems]
    void = [f"{r.cell}: the fault did not strike" for r in results if r.outcome == "void"]
    return found + void
