"""A table of efforts with small numbers, in place of the shipped one."""

from __future__ import annotations

from pipelines.engine.estimate import Effort, EffortTable, Measured, Pace


def effort(calls: float, read: float = 0.0, written: float = 0.0) -> Effort:
    return Effort(calls=calls, read=read, written=written)


WEAK = Measured(
    model="Small",
    questions=4,
    methods={
        "direct": {"main": effort(1, 10, 20)},
        "rag": {"main": effort(1, 90, 10), "judge_1": effort(2)},
        "rowen": {"main": effort(12, 1000, 400), "judge_1": effort(5)},
        "drad": {"main": effort(0.5, 30, 10), "judge_1": effort(1)},
        "ever": {"main": effort(4, 800, 300)},
        "haarag": {"main": effort(0), "judge_1": effort(3)},
        "slm": {"judge_1": effort(3)},
    },
)

STRONG = Measured(
    model="",
    questions=2,
    methods={
        "direct": {"main": effort(1, 100, 50)},
        "rowen": {"main": effort(20, 2000, 500), "verifier": effort(5, 400, 100)},
        "slm": {role: effort(3, 600, 3) for role in ("judge_1", "judge_2", "judge_3")},
    },
)

# A run of all methods reads 1,930 tokens and writes 740: 5 + 2 + 37 - 0.07 seconds.
PACE = Pace(start=5.0, read=0.001, written=0.05, cores=2)

TABLE = EffortTable(default=WEAK, walkthroughs=STRONG, pace=PACE)
WHOLE_RUN = 5.0 + 1.93 + 37.0
