"""`python -m pipelines.training pairs|fit|average|calibrate|report`: the judge, made and measured.

Data files are public ones, given by path and not part of this project. Even-numbered records are
trained on, odd-numbered ones reported on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from pipelines.calibrate.curves import auroc
from pipelines.calibration import calibration
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.models.embedded import EMBEDDED_NAME
from pipelines.models.judges.base import JudgeModel
from pipelines.models.judges.simple import OverlapJudge, SimilarityJudge
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge, encoder_folder
from pipelines.retrieval.embedders import EmbeddedEmbedder
from pipelines.training.calibrating import best_scaling, fitted_curve
from pipelines.training.examples import Example, write_examples
from pipelines.training.recipe import Files, Recipe, build, held_out
from pipelines.training.rivals import said_by
from pipelines.training.shortcuts import shortcut_areas, statement_alone
from pipelines.training.suites import Suite, measure, suites

__all__ = ["main"]

_CALIBRATION = Path(__file__).parents[2] / "assets" / "calibration" / "judges.json"
_FOR_CURVES = (
    "biographies",
    "answers",
    "answers_same_kind",
    "stances",
    "articles",
)
"""Suites whose even half turns the numbers of the simple judges into probabilities."""

_CALIBRATED_ON = {
    "statements": ("wikibio", "stance", "told"),
    "answers": ("qa", "qa-span", "article", "other answer"),
}
"""Makes of pairs, people's and not ours, on which probabilities come to mean what they say."""

_SEEN = 1000
"""Pairs kept back that the learning curve is drawn with."""

_FILES = {
    "qa": "question answering: knowledge, question, right_answer, hallucinated_answer (HaluEval)",
    "biographies": "concept, gpt3_sentences, annotation, wiki_bio_text (SelfCheckGPT's WikiBio)",
    "stances": "claim, evidence, stance (Factcheck-GPT)",
    "articles": "a file in the form of SQuAD (XQuAD)",
    "facts": "question, answer (true or false), facts (StrategyQA)",
    "truthful": "the columns of TruthfulQA",
}


@dataclass(frozen=True)
class Split:
    """Pairs to train on, and pairs kept back for the scaling."""

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
    from pipelines.models.judges.weights import save_weights
    from pipelines.training.fit import Schedule, fit, prepared

    device = "cuda" if torch.cuda.is_available() else "cpu"
    started = datetime.now(UTC)
    split = _split(options)
    encoder = encoder_folder()
    network = JudgeNetwork.from_folder(encoder)
    schedule = Schedule(steps=options.steps, seed=options.seed)
    curve: list[dict[str, float]] = []
    areas: list[dict[str, float]] = []
    seen = split.kept[:_SEEN]

    def progress(step: int, loss: float, seconds: float) -> None:
        if step % 50 == 0:
            curve.append({"step": step, "loss": round(loss, 4)})
            print(f"step {step}: loss {loss:.4f}, {seconds:.0f} s", flush=True)

    def checkpoint(step: int) -> None:
        network.cpu()
        save_weights(network, options.to, encoder)
        scored = JudgeReader(network, encoder).read([one.claim for one in seen])
        area = auroc([one.supported for one in scored], [one.label == "supported" for one in seen])
        areas.append({"step": step, "auroc": round(area, 4)})
        print(
            f"step {step}: area under the ROC curve on pairs kept back {area:.4f}",
            flush=True,
        )
        network.to(device)

    fit(
        network,
        prepared(split.training, encoder),
        schedule,
        device=device,
        progress=progress,
        checkpoint=checkpoint,
    )
    network.cpu()
    save_weights(network, options.to, encoder)
    card = {
        "recipe": _recipe(options)._asdict(),
        "schedule": schedule._asdict(),
        "pairs": _described(split),
        "loss": curve,
        "learning": areas,
        "date": options.date.isoformat(),
        "device": device,
        "minutes": round((datetime.now(UTC) - started).total_seconds() / 60, 1),
    }
    _write_card(options.to, {"scaling": _scalings(options.to, split.kept), **card})


def _average(options: argparse.Namespace) -> None:
    """The mean of several judges' weights, with the record of each, and a scaling of its own."""
    from pipelines.models.judges.weights import read_network, save_weights
    from pipelines.training.averaging import average

    encoder = encoder_folder()
    networks = [read_network(folder, encoder) for folder in options.judges]
    save_weights(average(networks), options.to, encoder)
    cards = [json.loads((one / "judge.json").read_text(encoding="utf-8")) for one in options.judges]
    for card in cards:
        card.pop("scaling", None)
    scaling = _scalings(options.to, _split(options).kept)
    date = options.date.isoformat()
    _write_card(options.to, {"scaling": scaling, "averaged": cards, "date": date})


def _calibrate(options: argparse.Namespace) -> None:
    """The scaling of weights that are there already, on the pairs that training kept back."""
    card = json.loads((options.to / "judge.json").read_text(encoding="utf-8"))
    _write_card(options.to, {**card, "scaling": _scalings(options.to, _split(options).kept)})


def _scalings(folder: Path, kept: Sequence[Example]) -> dict[str, Any]:
    """Of statements and of answers, for the weights as they are shipped: rounded."""
    from pipelines.models.judges.reader import JudgeReader
    from pipelines.models.judges.weights import read_network

    encoder = encoder_folder()
    reader = JudgeReader(read_network(folder, encoder), encoder)
    found: dict[str, Any] = {}
    for kind, makes in _CALIBRATED_ON.items():
        pairs = list(dict.fromkeys(pair for pair in kept if pair.make in makes))
        scaling = best_scaling(pairs, reader.scores([pair.claim for pair in pairs]))
        found[kind] = {**scaling._asdict(), "pairs": len(pairs)}
    return found


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    (folder / "judge.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _report(options: argparse.Namespace) -> None:
    measured_on = list(suites(_files(options), 1, options.chinese))
    fitted_on = [suite for suite in suites(_files(options), 0) if suite.name in _FOR_CURVES]
    even = [claim for suite in fitted_on for claim in suite.claims()]
    right = [pair.label == "supported" for suite in fitted_on for pair in suite.examples]
    curves: dict[str, dict[str, float]] = {}
    for judge in (SimilarityJudge(EmbeddedEmbedder()), OverlapJudge()):
        offset, slope = fitted_curve(judge.numbers(even), right)
        curves[judge.name] = {"offset": offset, "slope": slope}
    content: dict[str, Any] = {"curves": curves, "date": options.date.isoformat()}
    _write(content)
    calibration.cache_clear()
    judges: list[JudgeModel] = [SimilarityJudge(EmbeddedEmbedder()), OverlapJudge()]
    if (options.judge / "judge.json").is_file():
        judges.insert(0, TrainedJudge(options.judge))
    quality: dict[str, Any] = {}
    for judge in judges:
        quality[judge.name] = {suite.name: _measured(judge, suite) for suite in measured_on}
    content["quality"] = quality
    content["shortcuts"] = {suite.name: shortcut_areas(suite.examples) for suite in measured_on}
    _write(content)
    if options.every:
        quality[EMBEDDED_NAME] = asyncio.run(_zero_shot(measured_on, options.every))
        _write(content)
    print(json.dumps(content, indent=2))


def _measured(judge: JudgeModel, suite: Suite) -> dict[str, Any]:
    return measure(suite, np.asarray(judge.settle(suite.claims()), dtype=np.float64))


async def _zero_shot(measured_on: Sequence[Suite], every: int) -> dict[str, Any]:
    """The embedded language model on one in `every` examples, in English, asked for yes or no."""
    from pipelines.models.embedded import EmbeddedModel

    model = EmbeddedModel()
    found: dict[str, Any] = {}
    try:
        for suite in measured_on:
            if suite.name.endswith("_zh"):
                continue
            # At random: every n-th of alternating right and wrong answers would be all of one sort.
            few = Random(every).sample(suite.examples, max(1, len(suite.examples) // every))
            some = suite._replace(examples=few, three_way=False)
            found[suite.name] = measure(some, await said_by(model, some.claims()))
            print(f"asked about {suite.name}", file=sys.stderr, flush=True)
    finally:
        await model.aclose()
    return found


def _write(content: dict[str, Any]) -> None:
    _CALIBRATION.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


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
        "kept back": len(split.kept),
        "labels": dict(Counter(pair.label for pair in split.training).most_common()),
        "makes": dict(Counter(pair.make for pair in split.training).most_common()),
        "areas under the curve of shortcuts": areas,
    }


def _files(options: argparse.Namespace) -> Files:
    return Files(**{name: getattr(options, name) for name in _FILES})


def _recipe(options: argparse.Namespace) -> Recipe:
    return Recipe(
        rounds=options.rounds,
        repeats=options.repeats,
        seed=options.seed,
        without=tuple(options.without),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.training", description=__doc__)
    data = argparse.ArgumentParser(add_help=False)
    for name, fields in _FILES.items():
        data.add_argument(f"--{name}", type=Path, metavar="FILE", help=fields)
    data.add_argument("--seed", type=int, default=Recipe().seed)
    data.add_argument("--rounds", type=int, default=Recipe().rounds, help="rounds of generating")
    data.add_argument("--repeats", type=int, default=Recipe().repeats, help="of labelled pairs")
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
    fit.add_argument("--steps", type=int, default=3200)
    fit.add_argument("--to", type=Path, default=WEIGHTS)
    fit.set_defaults(run=_fit)
    mean = commands.add_parser(
        "average", parents=[data], help="make one judge of several: the mean of their weights"
    )
    mean.add_argument("judges", nargs="+", type=Path, metavar="FOLDER")
    mean.add_argument("--to", type=Path, default=WEIGHTS)
    mean.set_defaults(run=_average)
    again = commands.add_parser("calibrate", parents=[data], help="scale the judge's scores anew")
    again.add_argument("--to", type=Path, default=WEIGHTS)
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
        help="also ask the embedded language model about one in N examples",
    )
    report.set_defaults(run=_report)
    return parser


if __name__ == "__main__":
    sys.exit(main())
