"""The matrix of calls and faults: a sample for every change, an eighth by the day for a release."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pipelines.methods.registry import METHODS
from tests.drawing import drawn_today
from tests.faults.brain import PROBE_KINDS
from tests.faults.faults import FAULTS
from tests.faults.matrix import OUTCOMES, problems_of, run_all, run_cells
from tests.faults.programs import ALL_PROGRAMS, BASELINES, all_cells, mixed_cells

SAMPLE, MIXED_EACH = 30, 4
"""Runs of the matrix for every change; runs of each program with several faults for a release."""


def test_the_matrix_is_complete():
    cells = list(all_cells())
    kinds = {(cell.program, cell.kind) for cell in cells}
    assert len(kinds) == sum(len(one.kinds) for one in ALL_PROGRAMS.values()) + len(PROBE_KINDS)
    # The one verdict of several detectors makes their calls.
    run = {name for name, method in METHODS.items() if not method.own_weights} - {"together"}
    assert {one.method for one in ALL_PROGRAMS.values()} == run
    met = Counter((cell.program, cell.kind, cell.fault, cell.often) for cell in cells)
    assert set(met.values()) == {1}
    faults = Counter((cell.program, cell.kind, cell.often) for cell in cells)
    assert min(faults.values()) >= 30
    for program, kind, _ in faults:
        if program not in BASELINES:
            assert faults[program, kind, "once"] == faults[program, kind, "always"] == len(FAULTS)
    for fault in FAULTS:
        ways = {(c.streamed, c.native, c.language) for c in cells if c.fault == fault}
        assert len(ways) == 8


async def test_a_sample_of_the_matrix():
    # What only a limit ends takes seconds.
    quick = [cell for cell in all_cells() if not FAULTS[cell.fault].slow]
    programs = ("direct", "drad", "slm", "critic", "factool")
    one_program = [cell for cell in quick if cell.program in programs]
    results = await run_cells(random.Random(3).sample(one_program, SAMPLE))
    assert problems_of(results) == []
    assert len(results) == SAMPLE


async def test_some_runs_with_several_faults():
    cells = [one for one in mixed_cells(random.Random(5), 1) if one.program in ("drad", "critic")]
    results = await run_cells(cells)
    assert problems_of(results) == []
    assert len(results) == len(cells)


@pytest.mark.verify
def test_every_program_with_several_faults_drawn_by_the_day():
    cells = list(mixed_cells(drawn_today(), MIXED_EACH))
    results = run_all(cells)
    problems = problems_of(results)
    assert not problems, "\n".join(problems)
    assert len(results) == len(cells)


@pytest.mark.verify
def test_an_eighth_of_the_matrix_drawn_by_the_day():
    every = list(all_cells())
    cells = drawn_today().sample(every, len(every) // 8)
    results = run_all(cells)
    problems = problems_of(results)
    assert not problems, "\n".join(problems)
    assert {result.outcome for result in results} == set(OUTCOMES)
    assert len(results) == len(cells)
