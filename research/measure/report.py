"""Measure the bundled judges for the pages on models: `assets/calibration/judges.json`.

It also fits the curves that turn the numbers of the simple judges into probabilities, on
even-numbered records. Odd-numbered ones and our own statements are reported on.
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
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from pipelines.aio import together, write_whole
from pipelines.base import ASSETS, Passage
from pipelines.evaluation.metrics.detection import (
    auroc,
    calibration_error,
    precision_recall_f1,
    reliability_bins,
)
from pipelines.methods.slm.method import judge_request, probability_of_yes
from pipelines.models.base import EMBEDDED_NAME, Claim, Model
from pipelines.models.judges.base import JudgeModel, OverlapJudge, SimilarityJudge
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge
from pipelines.models.llamacpp import EmbeddedModel
from pipelines.retrieval.indexes import EnglishEmbedder
from research.commands import Command
from research.measure.sets import Suite, suites
from research.samples.files import Sources
from research.samples.pairs import LABELS

Probabilities = NDArray[np.float64]
"""P(supported), P(contradicted), P(not enough) of every example, shape [examples, 3]."""

_OUT = ASSETS / "calibration" / "judges.json"
_FOR_CURVES = ("biographies", "answers", "answers_same_kind", "stances", "articles")
"""Suites whose even half turns the scores of the simple judges into probabilities."""

_AT_ONCE = 8

_FILES = {
    "qa": "question answering: knowledge, question, right_answer, hallucinated_answer (HaluEval)",
    "biographies": "concept, gpt3_sentences, annotation, wiki_bio_text (SelfCheckGPT's WikiBio)",
    "stances": "claim, evidence, stance (Factcheck-GPT)",
    "articles": "a file in the form of SQuAD (XQuAD)",
    "facts": "question, answer (true or false), facts (StrategyQA)",
}


def measure(suite: Suite, said: Probabilities) -> dict[str, Any]:
    """Return how good `said`, shape [examples, 3], is on a suite.

    `right` counts the examples on the right side of P(supported) = 0.5; the area under the ROC
    curve and the calibration error are those of supported against the rest. With three labels the
    mean of their F1 is measured too.
    """
    truth = [example.supported for example in suite.examples]
    supported = said[:, 0].tolist()
    found: dict[str, Any] = {
        "examples": len(truth),
        "supported": round(sum(truth) / len(truth), 4),
        "right": int(((said[:, 0] > 0.5) == np.asarray(truth)).sum()),
        "auroc": round(auroc(supported, truth), 4),
        "ece": round(calibration_error(supported, truth), 4),
        "reliability": [
            [round(one.mean_score, 4), round(one.share, 4), one.items]
            for one in reliability_bins(supported, truth)
        ],
    }
    if suite.three_way:
        labels = [example.label for example in suite.examples]
        predicted = [LABELS[at] for at in said.argmax(1)]
        f1 = precision_recall_f1(labels, predicted, LABELS)[:, 2]
        found["macro_f1"] = round(float(f1.mean()), 4)
    return found


def fitted_curve(scores: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Return offset and slope of the logistic curve that turns scores into probabilities best."""
    model = LogisticRegression(C=1e6)
    model.fit(np.asarray(scores).reshape(-1, 1), np.asarray(right))
    offset, slope = np.ravel(model.intercept_), np.ravel(model.coef_)
    return round(float(offset[0]), 4), round(float(slope[0]), 4)


async def yes_or_no(model: Model, claims: Sequence[Claim]) -> Probabilities:
    """Return P(yes), its complement, and 0, shape [claims, 3]; 0.5 where `model` says neither.

    A rival of the judge: a language model that is asked, without training, as the SLM check asks.
    It is not asked whether what is not supported is contradicted.
    """
    limit = asyncio.Semaphore(_AT_ONCE)

    async def ask(claim: Claim) -> float:
        passages = [
            Passage(id=f"given-{number}", title="", text=text, source="given", rank=number)
            for number, text in enumerate(claim.evidence, start=1)
        ]
        request = judge_request(claim.question, passages, claim.statement, "en")
        async with limit:
            yes = probability_of_yes(await model.choose(request))
        return 0.5 if yes is None else yes

    yes = np.asarray(await together(*map(ask, claims)), dtype=np.float64)
    return np.stack([yes, 1 - yes, np.zeros_like(yes)], axis=1)


async def _zero_shot(measured_on: Sequence[Suite], every: int) -> dict[str, Any]:
    """Return the embedded language model on one in `every` examples in English."""
    model = EmbeddedModel()
    found: dict[str, Any] = {}
    try:
        for suite in (one for one in measured_on if not one.name.endswith("_zh")):
            # Drawn at random: every n-th of alternating right and wrong answers has one label.
            count = max(1, len(suite.examples) // every)
            few = Random(every).sample(list(suite.examples), count)
            some = suite._replace(examples=few, three_way=False)
            found[suite.name] = measure(some, await yes_or_no(model, some.claims))
            print(f"asked about {suite.name}", file=sys.stderr, flush=True)
    finally:
        await model.aclose()
    return found


def _run(options: argparse.Namespace) -> None:
    files = Sources(**{name: getattr(options, name) for name in _FILES})
    measured_on = suites(files, 1, options.chinese)
    fitted_on = [suite for suite in suites(files, 0) if suite.name in _FOR_CURVES]
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
    quality: dict[str, Any] = {
        judge.name: {
            suite.name: measure(suite, np.asarray(judge.verdicts(suite.claims), dtype=np.float64))
            for suite in measured_on
        }
        for judge in judges
    }
    if options.out.is_file():
        # Asking the language model takes hours: what it said before stays until it is asked.
        before = json.loads(options.out.read_text(encoding="utf-8"))["quality"]
        quality |= {name: of for name, of in before.items() if name == EMBEDDED_NAME}
    content = {
        "curves": curves,
        "date": options.date.isoformat(),
        "quality": quality,
    }
    if options.every:
        write_whole(options.out, json.dumps(content, indent=2) + "\n")
        quality[EMBEDDED_NAME] = asyncio.run(_zero_shot(measured_on, options.every))
    text = json.dumps(content, indent=2) + "\n"
    write_whole(options.out, text)
    print(text, end="")


def _options(parser: argparse.ArgumentParser) -> None:
    for name, fields in _FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=fields)
    parser.add_argument("--judge", type=Path, default=WEIGHTS)
    what = "the articles in Chinese (XQuAD)"
    parser.add_argument("--chinese", type=Path, metavar="FILE", help=what)
    what = "also ask the embedded language model about one in N examples; else its figures stay"
    parser.add_argument("--every", type=int, default=0, metavar="N", help=what)
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today())


COMMAND = Command(__doc__, _options, _run)
