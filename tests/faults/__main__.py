"""The matrix: `python -m tests.faults` runs it and writes docs/reliability-faults.md.

With a number N only every N-th run is made.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from tests.faults.cells import Result
from tests.faults.matrix import OUTCOMES, counted, problems_of, run_all
from tests.faults.programs import ALL_PROGRAMS, all_cells

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability-faults.md"

_TEXT = """\
# What faults of a model's server do to a run

Every kind of call that a method makes was answered by a server that is at fault, once or always,
in one piece and streamed, in English and Chinese, by the protocols of OpenAI and of DashScope.
The server is a process of its own; all other calls of the run are answered well. Calls of the five
methods, of Direct and RAG, and of the check of a model meet every fault; those of the other
baselines meet a third of them, {least} or more. Written by `{command}`, which makes {part} of the
matrix.

| counted | |
|---|---|
| kinds of calls | {kinds} |
| faults | {faults} |
| runs | {runs} |
| recovered: the answer is that of a run without the fault | {recovered} |
| remarked: an answer with a flag that says what was wrong | {remarked} |
| ended early: the draft, unverified, with the error beside it | {early} |
| failed: the error, typed, with what to do about it | {failed} |
| anything else | {other} |

Of every run is asserted: it ends within its limit; exactly one event ends it; each error has its
code and a remedy; it can be exported, imported and shown on every page; no text that is wrong was
found supported; no verdict rests on a reply that holds none; no broken text is in the answer
without a remark; no task and no connection is left over. A fault that passes after one call, and
one that leaves the reply readable, must be recovered.

| fault | recovered | remarked | ended early | failed |
|---|---|---|---|---|
{rows}
"""


def page(results: list[Result], every: int) -> str:
    """The page of `results`, which are those of every so many cells."""
    table, all_of = counted(results), Counter(result.outcome for result in results)
    rows = (
        f"| {fault.replace('_', ' ')} | {' | '.join(str(counts[o]) for o in OUTCOMES)} |"
        for fault, counts in table.items()
    )
    met = Counter((cell.program, cell.kind) for cell in all_cells() if cell.often == "always")
    return _TEXT.format(
        least=min(met.values()),
        command="python -m tests.faults" + (f" {every}" if every > 1 else ""),
        part="all runs" if every == 1 else f"one in {every} runs",
        kinds=len({(cell.program, cell.kind) for cell in all_cells()}),
        faults=len(table),
        runs=len(results),
        rows="\n".join(rows),
        other=sum(count for outcome, count in all_of.items() if outcome not in OUTCOMES),
        **{outcome: all_of[outcome] for outcome in OUTCOMES},
    )


def main() -> int:
    """Run every cell, print what is wrong, write the page."""
    began = time.monotonic()
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    results = run_all(list(all_cells())[::every])
    problems = problems_of(results)
    print("\n".join(problems))
    outcomes = dict(Counter(result.outcome for result in results))
    seconds = time.monotonic() - began
    print(f"{len(results)} runs of {len(ALL_PROGRAMS)} set-ups in {seconds:.0f} s: {outcomes}")
    print(f"{len(problems)} problems")
    if not problems:
        PAGE.write_text(page(results, every), encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
