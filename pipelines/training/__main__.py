"""`python -m pipelines.training pairs|fit|report`: make, train and measure the embedded judge.

Data files are public ones, given by path and not part of this project. Even-numbered records are
trained on, odd-numbered ones reported on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.calibration import calibration
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.models.base import Claim
from pipelines.models.judges.base import JudgeModel
from pipelines.models.judges.simple import OverlapJudge, SimilarityJudge
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge, encoder_folder
from pipelines.retrieval.embedders import EmbeddedEmbedder
from pipelines.training.calibrating import best_temperature, fitted_curve
from pipelines.training.examples import Example, write_examples
from pipelines.training.recipe import Files, Recipe, build, held_out
from pipelines.training.report import Probabilities
from pipelines.training.shortcuts import shortcut_areas, statement_alone
from pipelines.training.suites import measure, suites

__all__ = ["main"]

_CALIBRATION = Path(__file__).parents[2] / "assets" / "calibration" / "judges.json"
_FILES = {
    "qa": "question answering: knowledge, question, right_answer, hallucinated_answer (HaluEval)",
    "biographies": "concept, gpt3_sentences, annotation, wiki_bio_text (SelfCheckGPT's WikiBio)",
    "stances": "claim, evidence, stance (Factcheck-GPT)",
    "articles": "a file in the form of SQuAD (XQuAD)",
    "facts": "question, facts (StrategyQA)",
    "truthful": "the columns of TruthfulQA",
}


@dataclass(frozen=True)
class Split:
    """Pairs to train on, and pairs kept for the temperature."""

    training: list[Example]
    kept: list[Example]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except VeriscopeError as error:
        print(f"veriscope: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInputError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


def _pairs(options: argparse.Namespace) -> None:
    split = _split(options)
    write_examples(options.to, split.training)
    print(json.dumps(_described(split), indent=2))


def _fit(options: argparse.Namespace) -> None:
    import torch

    from pipelines.models.judges.network import JudgeNetwork
    from pipelines.models.judges.reader import JudgeReader
    from pipelines.models.judges.weights import load_weights, save_weights
    from pipelines.training.fit import Schedule, fit, prepared

    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = datetime.now(UTC)
    split = _split(options)
    encoder = encoder_folder()
    network = JudgeNetwork.from_folder(encoder)
    schedule = Schedule(steps=options.steps, seed=options.seed)
    curve: list[dict[str, float]] = []

    def progress(step: int, loss: float, seconds: float) -> None:
        if step % 50 == 0 or step == schedule.steps:
            curve.append({"step": step, "loss": round(loss, 4)})
            print(f"step {step} of {schedule.steps}: loss {loss:.4f}, {seconds:.0f} s", flush=True)

    fit(network, prepared(split.training, encoder), schedule, device=device, progress=progress)
    network.cpu()
    save_weights(network, options.to, encoder)
    # What is shipped is rounded; the temperature is that of the rounded weights.
    shipped = JudgeNetwork.from_folder(encoder)
    load_weights(shipped, options.to)
    scored = JudgeReader(shipped, encoder).scores([_claim(one) for one in split.kept])
    card = {
        "temperature": best_temperature(split.kept, scored),
        "recipe": _recipe(options)._asdict(),
        "schedule": schedule._asdict(),
        "pairs": _described(split),
        "loss": curve,
        "date": options.date.isoformat(),
        "device": device,
        "minutes": round((datetime.now(UTC) - started).total_seconds() / 60, 1),
    }
    (options.to / "judge.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _report(options: argparse.Namespace) -> None:
    trained = (options.judge / "judge.json").is_file()
    judges: list[JudgeModel] = [TrainedJudge(options.judge)] if trained else []
    simple = (SimilarityJudge(EmbeddedEmbedder()), OverlapJudge())
    even = [pair for suite in suites(_files(options), 0) for pair in suite.examples]
    curves: dict[str, dict[str, float]] = {}
    for judge in simple:
        numbers = judge.numbers([_claim(pair) for pair in even])
        offset, slope = fitted_curve(numbers, [pair.label == "supported" for pair in even])
        curves[judge.name] = {"offset": offset, "slope": slope}
    content: dict[str, Any] = {"curves": curves, "date": options.date.isoformat()}
    _write(content)
    calibration.cache_clear()
    judges += [SimilarityJudge(EmbeddedEmbedder()), OverlapJudge()]
    content["quality"] = {judge.name: _measured(judge, options) for judge in judges}
    _write(content)
    print(json.dumps(content, indent=2))


def _measured(judge: JudgeModel, options: argparse.Namespace) -> dict[str, Any]:
    def said(examples: Sequence[Example]) -> Probabilities:
        return np.asarray(judge.read([_claim(one) for one in examples]), dtype=np.float64)

    return {suite.name: measure(suite, said) for suite in suites(_files(options), 1)}


def _write(content: dict[str, Any]) -> None:
    _CALIBRATION.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _claim(example: Example) -> Claim:
    return Claim(
        statement=example.statement, evidence=(example.evidence,), question=example.question
    )


def _split(options: argparse.Namespace) -> Split:
    pairs = build(_files(options), _recipe(options))
    return Split(
        training=[pair for pair in pairs if not held_out(pair)],
        kept=[pair for pair in pairs if held_out(pair)],
    )


def _described(split: Split) -> dict[str, Any]:
    areas = shortcut_areas(split.kept)
    for side in ("statement", "evidence"):
        areas[f"words of the {side} alone"] = statement_alone(split.training, split.kept, side)
    return {
        "trained on": len(split.training),
        "kept for the temperature": len(split.kept),
        "labels": dict(Counter(pair.label for pair in split.training).most_common()),
        "makes": dict(Counter(pair.make for pair in split.training).most_common()),
        "areas under the curve of shortcuts": areas,
    }


def _files(options: argparse.Namespace) -> Files:
    return Files(**{name: getattr(options, name) for name in _FILES})


def _recipe(options: argparse.Namespace) -> Recipe:
    return Recipe(rounds=options.rounds, repeats=options.repeats, seed=options.seed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.training", description=__doc__)
    data = argparse.ArgumentParser(add_help=False)
    for name, fields in _FILES.items():
        data.add_argument(f"--{name}", type=Path, metavar="FILE", help=fields)
    data.add_argument("--seed", type=int, default=Recipe().seed)
    data.add_argument("--rounds", type=int, default=Recipe().rounds, help="rounds of generating")
    data.add_argument("--repeats", type=int, default=Recipe().repeats, help="of labelled pairs")
    data.add_argument("--date", type=date.fromisoformat, default=date.today())
    commands = parser.add_subparsers(required=True)
    pairs = commands.add_parser("pairs", parents=[data], help="write the training pairs to a file")
    pairs.add_argument("--to", type=Path, required=True)
    pairs.set_defaults(run=_pairs)
    fit = commands.add_parser("fit", parents=[data], help="train the judge; uses a GPU if any")
    fit.add_argument("--steps", type=int, default=2400)
    fit.add_argument("--to", type=Path, default=WEIGHTS)
    fit.set_defaults(run=_fit)
    report = commands.add_parser("report", parents=[data], help="measure it beside its rivals")
    report.add_argument("--judge", type=Path, default=WEIGHTS)
    report.set_defaults(run=_report)
    return parser


if __name__ == "__main__":
    sys.exit(main())
