"""`python -m pipelines.research.long_training --data FOLDER --to FOLDER`: a judge, over days.

The same command begins a training and goes on with it. It stops by itself after `--minutes`, on
Ctrl+C and on SIGTERM, each time with a checkpoint; after a harder end at most a hundred steps are
made again. Even-numbered records of the public files are trained on. Files of the training are
never part of the project; the finished judge is in the folder `judge` below it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from pipelines.errors import exit_status, failure
from pipelines.models.judges.trained import encoder_folder
from pipelines.paths import data_folder
from pipelines.research.long_training.cosines import remembered_cosines
from pipelines.research.long_training.mixture import Mixture
from pipelines.research.long_training.options import add_options, given
from pipelines.research.long_training.stages import Training, TrainingPlan, TrainingStoppedError
from pipelines.research.long_training.trainer import Course
from pipelines.research.sources import sources_in

_READING = TrainingPlan().reading
_GROUPS: tuple[tuple[str, NamedTuple], ...] = (
    ("mixture", Mixture()),
    ("course", Course()),
    ("reading", _READING),
)
_LATER = 3
"""Exit status of a training that was stopped: the same command goes on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when the judge is made, 3 when it was stopped on the way.

    1 when it failed, 2 for unusable input.
    """
    options = _parser().parse_args(arguments)
    status = 0

    def run() -> None:
        nonlocal status
        status = 0 if _run(options) else _LATER

    return exit_status(run) or status


def _run(options: argparse.Namespace) -> bool:
    if options.minutes is not None and options.minutes <= 0:
        raise failure("research.no_minutes")
    torch.set_num_threads(options.threads)
    plan = _plan(options)
    training = Training(
        folder=options.to,
        sources=sources_in(options.data),
        plan=plan,
        encoder=encoder_folder(),
        stop=_stopping(options.minutes),
        near=remembered_cosines() if plan.reading.nearness else None,
        say=partial(print, flush=True),
    )
    try:
        training.run()
    except TrainingStoppedError:
        return False
    return True


def _stopping(minutes: float | None) -> Callable[[], bool]:
    """Return whether the time is over, or a signal asked to stop."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, frame: asked.append(got))
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: bool(asked) or (end is not None and time.monotonic() >= end)


def _plan(options: argparse.Namespace) -> TrainingPlan:
    return TrainingPlan(
        mixture=given(options, "mixture", Mixture()),
        reading=given(options, "reading", _READING),
        course=given(options, "course", Course()),
        seeds=tuple(options.seeds),
        distil=not options.no_distilling,
        start_from=options.start_from,
        limit=options.pairs,
        every=options.every,
        measured=options.measured,
        balance=options.balance,
    )


def _parser() -> argparse.ArgumentParser:
    plan = TrainingPlan()
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.long_training", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data files")
    parser.add_argument(
        "--to", type=Path, default=data_folder() / "training", help="folder of this training"
    )
    parser.add_argument("--minutes", type=float, help="stop after so many, with a checkpoint")
    parser.add_argument("--threads", type=int, default=2, help="of the processor")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(plan.seeds))
    parser.add_argument(
        "--no-distilling", action="store_true", help="no further fit that learns from the seeds'"
    )
    parser.add_argument(
        "--start-from", type=Path, metavar="FOLDER", help="weights to begin with, such as a judge's"
    )
    parser.add_argument("--pairs", type=int, help="at most so many, for a trial")
    parser.add_argument("--every", type=int, default=plan.every, help="steps between checkpoints")
    parser.add_argument(
        "--measured", type=int, default=plan.measured, help="steps between measurements"
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=plan.balance,
        help="of the calibration: 0 for true shares, 1 for a threshold of 0.5",
    )
    for name, default in _GROUPS:
        add_options(parser, name, default)
    return parser


if __name__ == "__main__":
    sys.exit(main())
