"""`python -m research.judge COMMAND`: the bundled judge, from public files to weights.

`answers` writes what the bundled model answers; `pairs` makes the training pairs, `train` a fit of
them; `average` makes one judge of several fits. Data files are public ones, and never part of the
project. Even-numbered records are trained on.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from pipelines.base import data_folder
from pipelines.errors import failure
from pipelines.models.judges.trained import encoder_folder
from research.commands import Command, add_settings, run_command, settings
from research.judge import model_answers
from research.judge.calibrating import BALANCE, averaged
from research.judge.mixture import CARD, Mixture, written
from research.judge.training import READING, Course, Training, TrainingStoppedError
from research.samples.chinese import CHINESE
from research.samples.files import sources_in
from research.samples.pairs import read_examples

_LATER = 3
"""Exit status of a training that was stopped: the same command goes on."""


def _pair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data files")
    parser.add_argument(
        "--to", type=Path, default=data_folder() / "training", help="folder of this training"
    )
    add_settings(parser, "mixture", Mixture())


def _encoder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoder",
        type=Path,
        metavar="PATH",
        help="what the judge is made of: a folder, or the file of multilingual-e5-small"
        " (the bundled English encoder)",
    )


def _pairs(options: argparse.Namespace) -> None:
    written(options.to, sources_in(options.data), settings(options, "mixture", Mixture()))
    print((options.to / CARD).read_text(encoding="utf-8"), end="")


def _train_options(parser: argparse.ArgumentParser) -> None:
    _pair_options(parser)
    _encoder_option(parser)
    parser.add_argument("--minutes", type=float, help="stop after so many, with a checkpoint")
    parser.add_argument("--threads", type=int, default=2, help="of the processor")
    parser.add_argument(
        "--start-from", type=Path, metavar="FOLDER", help="weights to begin with, such as a judge's"
    )
    parser.add_argument("--pairs", type=int, help="at most so many, for a trial")
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--measured", type=int, default=500, help="steps between measurements")
    for name, default in (("course", Course()), ("reading", READING)):
        add_settings(parser, name, default)


def _train(options: argparse.Namespace) -> int:
    if options.minutes is not None and options.minutes <= 0:
        raise failure("research.no_minutes")
    torch.set_num_threads(options.threads)
    training = Training(
        folder=options.to,
        sources=sources_in(options.data),
        encoder=options.encoder or encoder_folder(),
        mixture=settings(options, "mixture", Mixture()),
        course=settings(options, "course", Course()),
        reading=settings(options, "reading", READING),
        start_from=options.start_from,
        limit=options.pairs,
        every=options.every,
        measured=options.measured,
        stop=_stopping(options.minutes),
        say=partial(print, flush=True),
    )
    try:
        training.run()
    except TrainingStoppedError:
        return _LATER
    return 0


def _stopping(minutes: float | None) -> Callable[[], bool]:
    """Return whether the time is over, or a signal asked to stop."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, frame: asked.append(got))
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: bool(asked) or (end is not None and time.monotonic() >= end)


def _average_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--judges", type=Path, nargs="+", required=True, help="folders of judges or of weights"
    )
    parser.add_argument("--pairs", type=Path, required=True, help="held-out pairs: kept.jsonl")
    parser.add_argument("--to", type=Path, required=True, help="folder of the new judge")
    _encoder_option(parser)
    parser.add_argument(
        "--chinese", action="store_true", help="calibrate on Chinese pairs, which it will judge"
    )
    parser.add_argument(
        "--balance", type=float, default=BALANCE, help="0 for true shares, 1 for a threshold of 0.5"
    )
    add_settings(parser, "reading", READING)


def _average(options: argparse.Namespace) -> None:
    kept, reading = read_examples(options.pairs), settings(options, "reading", READING)
    encoder, balance = options.encoder or encoder_folder(), options.balance
    if options.chinese:
        kept = [one for one in kept if one.make.startswith(CHINESE)]
    card = averaged(options.judges, kept, options.to, encoder, reading, balance=balance)
    print(json.dumps(card["scaling"], indent=2))


COMMANDS = {
    "answers": model_answers.COMMAND,
    "pairs": Command("Write the training pairs, and how many there are.", _pair_options, _pairs),
    "train": Command(
        "Make the pairs and one fit, or go on with it.\n\nIt stops by itself after --minutes, on"
        " Ctrl+C and on SIGTERM, each time with a\ncheckpoint and status 3; after a harder end at"
        " most a hundred steps are made again.",
        _train_options,
        _train,
    ),
    "average": Command(
        "Make one judge of the weights of fits and judges, with a calibration.",
        _average_options,
        _average,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 3 when a training was stopped, 1 or 2 when it failed."""
    return run_command("judge", COMMANDS, arguments, __doc__)


if __name__ == "__main__":
    sys.exit(main())
