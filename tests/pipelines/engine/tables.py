"""A table of efforts with small numbers, in place of the shipped one."""

from __future__ import annotations

from pipelines.engine.estimate import (
    Effort,
    EffortTable,
    MeasuredChecks,
    MeasuredEffort,
    Pace,
    PerText,
)


def effort(calls: float, read: float = 0.0, written: float = 0.0) -> Effort:
    return Effort(calls=calls, read=read, written=written)


WEAK = MeasuredEffort(
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

STRONG = MeasuredEffort(
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

WEAK_CHECKS = MeasuredChecks(
    model="Small",
    texts=3,
    sentences=9,
    methods={
        "drad": {"main": PerText(text=effort(1), sentence=effort(0, 30))},
        "ever": {
            "main": PerText(sentence=effort(2, 500, 20)),
            "judge_1": PerText(sentence=effort(1.5)),
        },
        "token_probability": {},
        "p_yes": {"judge_1": PerText(text=effort(1), sentence=effort(1))},
    },
    shares={"token_probability": ("drad",)},
    alone={"token_probability": {"main": PerText(text=effort(1), sentence=effort(0, 30))}},
    pace=Pace(start=2.0, read=0.002, written=0.1, cores=2, judged=0.5),
)
STRONG_CHECKS = MeasuredChecks(
    model="",
    texts=2,
    sentences=5,
    methods={"ever": {"main": PerText(sentence=effort(6, 900, 100))}},
)

TABLE = EffortTable(
    default=WEAK,
    walkthroughs=STRONG,
    pace=PACE,
    checks={"default": WEAK_CHECKS, "walkthroughs": STRONG_CHECKS},
)
WHOLE_RUN = 5.0 + 1.93 + 37.0
