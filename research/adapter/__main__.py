"""`python -m research.adapter pairs|fit|report`: a format adapter, made and measured.

It teaches the bundled model the form of the replies that methods want of it. What the report finds
is in docs/measurements.md: where it measures no better than demonstrations, it is not used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from pipelines.errors import exit_status
from pipelines.models.llamacpp import gguf_path
from research.adapter.pairs import pairs
from research.samples.files import read_articles


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    return exit_status(lambda: options.run(options))


def _pairs(options: argparse.Namespace) -> None:
    for pair in pairs(read_articles(options.articles), seed=options.seed, most=options.most):
        print(
            json.dumps(
                {"task": pair.task, "prompt": pair.messages[-1].content, "reply": pair.reply}
            )
        )


def _fit(options: argparse.Namespace) -> None:
    from research.adapter.fit import AdapterSchedule, make_adapter

    made = pairs(read_articles(options.articles), seed=options.seed, most=options.most)
    schedule = AdapterSchedule(epochs=options.epochs, rank=options.rank, seed=options.seed)
    print(json.dumps(make_adapter(gguf_path(), made, options.to, schedule), indent=2))


def _bilingual(options: argparse.Namespace) -> None:
    from research.adapter.bilingual import Amounts, bilingual_pairs
    from research.adapter.fit import AdapterSchedule, make_adapter

    made = bilingual_pairs(options.data, Amounts(seed=options.seed))
    # A whole epoch is enough, and the lower third of the layers reads much the same either way.
    schedule = AdapterSchedule(
        epochs=1, rate=2e-4, rank=16, alpha=32, first_layer=8, compiled=True, seed=options.seed
    )
    print(json.dumps(make_adapter(options.weights, made, options.to, schedule), indent=2))


def _report(options: argparse.Namespace) -> None:
    from research.adapter.measure import measure, table

    print(table(asyncio.run(measure(options.adapter))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m research.adapter", description=__doc__)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument(
        "--articles", type=Path, required=True, help="a file in the form of SQuAD (XQuAD)"
    )
    data.add_argument("--most", type=int, default=240, help="pairs of a task at most")
    data.add_argument("--seed", type=int, default=7)
    commands = parser.add_subparsers(required=True)
    shown = commands.add_parser("pairs", parents=[data], help="print the training pairs")
    shown.set_defaults(run=_pairs)
    fit = commands.add_parser("fit", parents=[data], help="train the adapter; uses a GPU if any")
    fit.add_argument("--epochs", type=int, default=2)
    fit.add_argument("--rank", type=int, default=8)
    fit.add_argument("--to", type=Path, required=True, help="the GGUF file to write")
    fit.set_defaults(run=_fit)
    both = commands.add_parser(
        "bilingual", help="train the adapter of a bilingual model: verdicts and translations"
    )
    both.add_argument("--data", type=Path, required=True, help="the folder of public data")
    both.add_argument("--weights", type=Path, required=True, help="the model's GGUF file")
    both.add_argument("--to", type=Path, required=True, help="the GGUF file to write")
    both.add_argument("--seed", type=int, default=7)
    both.set_defaults(run=_bilingual)
    report = commands.add_parser("report", help="measure it beside demonstrations")
    report.add_argument("adapter", type=Path, help="the GGUF file of an adapter")
    report.set_defaults(run=_report)
    return parser
