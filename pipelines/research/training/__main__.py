"""`python -m pipelines.research.training pairs|fit|calibrate|report`: the judge, made and measured.

Data files are public ones, given by path and not part of this project. Even-numbered records are
trained on, odd-numbered ones reported on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from pipelines.errors import exit_status, failure
from pipelines.files import write_whole
from pipelines.models.base import EMBEDDED_NAME
from pipelines.models.embedded import EmbeddedModel
from pipelines.models.judges.base import JudgeModel
from pipelines.models.judges.simple import OverlapJudge, SimilarityJudge
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge, encoder_folder
from pipelines.paths import ASSETS
from pipelines.research.sources import Sources
from pipelines.research.training.examples import write_examples
from pipelines.research.training.fit import JudgeSchedule, make_judge, scalings
from pipelines.research.training.recipe import RECIPES, Recipe, split
from pipelines.research.training.report import (
    LabelledSuite,
    fitted_curve,
    measure,
    suites,
    yes_or_no,
)
from pipelines.research.training.shortcuts import shortcut_areas
from pipelines.retrieval.dense import EnglishEmbedder

_CALIBRATION = ASSETS / "calibration" / "judges.json"
_FOR_CURVES = ("biographies", "answers", "answers_same_kind", "stances", "articles")
"""Suites whose even half turns the scores of the simple judges into probabilities."""

_FILES = {
    "qa": "question answering: knowledge, question, right_answer, hallucinated_answer (HaluEval)",
    "biographies": "concept, gpt3_sentences, annotation, wiki_bio_text (SelfCheckGPT's WikiBio)",
    "stances": "claim, evidence, stance (Factcheck-GPT)",
    "articles": "a file in the form of SQuAD (XQuAD)",
    "facts": "question, answer (true or false), facts (StrategyQA)",
    "truthful": "the columns of TruthfulQA",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    return exit_status(lambda: options.run(options))


def _pairs(options: argparse.Namespace) -> None:
    found = [split(_files(options), recipe) for recipe in _recipes(options)]
    write_examples(options.to, [pair for one in found for pair in one.training])
    print(json.dumps([one.described() for one in found], indent=2))


def _fit(options: argparse.Namespace) -> None:
    schedule = JudgeSchedule(steps=options.steps, seed=options.seed)
    data, recipes, encoder = _files(options), _recipes(options), encoder_folder()
    card = make_judge(data, recipes, schedule, encoder, options.to, keep=options.keep)
    _write(options.to / "judge.json", {**card, "date": options.date.isoformat()})


def _calibrate(options: argparse.Namespace) -> None:
    """Scale the scores of existing weights again, on the pairs that training held out."""
    path = options.to / "judge.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    kept = split(_files(options), _recipes(options)[0]).kept
    _write(path, {**card, "scaling": scalings(options.to, encoder_folder(), kept)})


def _report(options: argparse.Namespace) -> None:
    measured_on = suites(_files(options), 1, options.chinese)
    fitted_on = [suite for suite in suites(_files(options), 0) if suite.name in _FOR_CURVES]
    even = [claim for suite in fitted_on for claim in suite.claims]
    right = [example.supported for suite in fitted_on for example in suite.examples]
    simple = (SimilarityJudge(EnglishEmbedder()), OverlapJudge())
    curves: dict[str, dict[str, float]] = {}
    for judge in simple:
        offset, slope = fitted_curve(judge.numbers(even), right)
        judge.use_curve(offset, slope)
        curves[judge.name] = {"offset": offset, "slope": slope}
    judges: list[JudgeModel] = [*simple]
    if (options.judge / "judge.json").is_file():
        judges.insert(0, TrainedJudge(options.judge))
    quality: dict[str, Any] = {}
    for judge in judges:
        quality[judge.name] = {
            suite.name: measure(suite, np.asarray(judge.verdicts(suite.claims), dtype=np.float64))
            for suite in measured_on
        }
    # Asking the language model takes hours: what it said before stays until it has been asked.
    if (before := _zero_shot_before()) is not None:
        quality[EMBEDDED_NAME] = before
    content = {
        "curves": curves,
        "date": options.date.isoformat(),
        "quality": quality,
        "shortcuts": {suite.name: shortcut_areas(suite.examples) for suite in measured_on},
    }
    _write(_CALIBRATION, content)
    if options.every:
        quality[EMBEDDED_NAME] = asyncio.run(_zero_shot(measured_on, options.every))
        _write(_CALIBRATION, content)
    print(json.dumps(content, indent=2))


def _zero_shot_before() -> dict[str, Any] | None:
    """Return what was measured of the embedded language model before, where it was."""
    if not _CALIBRATION.is_file():
        return None
    return json.loads(_CALIBRATION.read_text(encoding="utf-8"))["quality"].get(EMBEDDED_NAME)


async def _zero_shot(measured_on: Sequence[LabelledSuite], every: int) -> dict[str, Any]:
    """Return the embedded language model on one in `every` examples, in English, asked for
    yes or no.
    """
    model = EmbeddedModel()
    found: dict[str, Any] = {}
    try:
        for suite in measured_on:
            if suite.name.endswith("_zh"):
                continue
            # Drawn at random: every n-th of alternating right and wrong answers has one label.
            few = Random(every).sample(suite.examples, max(1, len(suite.examples) // every))
            some = suite._replace(examples=few, three_way=False)
            found[suite.name] = measure(some, await yes_or_no(model, some.claims))
            print(f"asked about {suite.name}", file=sys.stderr, flush=True)
    finally:
        await model.aclose()
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2) + "\n")


def _files(options: argparse.Namespace) -> Sources:
    return Sources(**{name: getattr(options, name) for name in _FILES})


def _recipes(options: argparse.Namespace) -> list[Recipe]:
    """Return one for every number of rounds, with the number of repeats in the same position."""
    if len(options.rounds) != len(options.repeats):
        raise failure("research.other_rounds")
    return [
        Recipe(rounds=rounds, repeats=repeats, seed=options.seed, without=tuple(options.without))
        for rounds, repeats in zip(options.rounds, options.repeats, strict=True)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.training", description=__doc__
    )
    data = argparse.ArgumentParser(add_help=False)
    for name, fields in _FILES.items():
        data.add_argument(f"--{name}", type=Path, metavar="FILE", help=fields)
    data.add_argument("--seed", type=int, default=Recipe().seed)
    for name, what in (
        ("rounds", "of generating; several numbers make several judges, whose mean is taken"),
        ("repeats", "of labelled pairs, one number for every number of rounds"),
    ):
        default = [getattr(recipe, name) for recipe in RECIPES]
        data.add_argument(f"--{name}", type=int, nargs="+", default=default, help=what)
    data.add_argument(
        "--without",
        nargs="*",
        default=[],
        metavar="MAKE",
        help="makes of labelled pairs to leave out, to see what they are worth",
    )
    data.add_argument("--date", type=date.fromisoformat, default=date.today())
    commands = parser.add_subparsers(required=True)
    pairs = commands.add_parser("pairs", parents=[data], help="write the training pairs to a file")
    pairs.add_argument("--to", type=Path, required=True)
    pairs.set_defaults(run=_pairs)
    fit = commands.add_parser("fit", parents=[data], help="train the judge; uses a GPU if any")
    fit.add_argument("--steps", type=int, default=3200, help="for each recipe")
    fit.add_argument("--to", type=Path, required=True)
    fit.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="for the judges before their mean is taken"
    )
    fit.set_defaults(run=_fit)
    again = commands.add_parser("calibrate", parents=[data], help="scale the judge's scores anew")
    again.add_argument("--to", type=Path, required=True, help="folder of a judge that fit made")
    again.set_defaults(run=_calibrate)
    report = commands.add_parser("report", parents=[data], help="measure it beside its rivals")
    report.add_argument("--judge", type=Path, default=WEIGHTS)
    report.add_argument(
        "--chinese", type=Path, metavar="FILE", help="the articles in Chinese (XQuAD)"
    )
    report.add_argument(
        "--every",
        type=int,
        default=0,
        metavar="N",
        help="also ask the embedded language model about one in N examples; else its figures stay",
    )
    report.set_defaults(run=_report)
    return parser


if __name__ == "__main__":
    sys.exit(main())
