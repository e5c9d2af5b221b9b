"""The figures of one judge on one suite, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.evaluation.metrics.spans import count_spans
from pipelines.evaluation.statistics.resampling import Estimate, Floats, Sampling
from pipelines.models.judges.trained import WordDoubt
from pipelines.research.suites.measures import (
    Measure,
    SuitePredictions,
    Truth,
    Weights,
    area,
    balanced_at,
    best_balanced,
    best_f1_threshold,
    calibration_error,
    estimated,
    flagged_f1,
    precision_area,
)
from pipelines.research.suites.sets import Suite, never_seen
from pipelines.research.training.examples import LABELS, TrainingPair
from pipelines.types import Frozen

_USUAL = 0.5

Verdicts = Sequence[Sequence[float]]
"""P(supported), P(contradicted) and P(not enough) of every pair."""


class SuiteResult(Frozen):
    """What one judge reaches on one suite, all in [0, 1].

    `area` is that under the ROC curve of supported against the rest; `fresh` the same for pairs
    that share no text with a training pair; `alone` the same for the claims without evidence.
    `wrong_area` is the area under the precision-recall curve of what is not supported. `balanced`
    is balanced accuracy at 0.5, `best` at the best threshold. `error` is the expected calibration
    error. `tuned_f1` is F1 of what is not supported with the threshold of the even half.
    `contradictions` is F1 of what is contradicted, `spans` F1 of the characters of wrong words.
    """

    name: str
    pairs: int
    groups: int
    unsupported: float
    area: Estimate
    fresh: Estimate | None
    alone: Estimate | None
    wrong_area: Estimate
    balanced: Estimate
    best: Estimate
    error: Estimate
    tuned_f1: Estimate | None = None
    contradictions: Estimate | None = None
    spans: Estimate | None = None


def result_of(
    suite: Suite,
    said: Verdicts,
    sampling: Sampling,
    *,
    alone: Verdicts = (),
    even: Verdicts = (),
    words: Sequence[Sequence[WordDoubt]] | None = None,
) -> SuiteResult:
    """Return every measure of a suite from what the judge said about its pairs.

    `alone` is what it said about the claims without evidence, `even` about the suite's even half,
    `words` about the words of its statements.
    """
    every = _judged(suite.examples, said)
    judged = every.weakest() if suite.by_group else every

    def of(measure: Measure, chosen: SuitePredictions = judged) -> Estimate:
        return estimated(measure, chosen, sampling)

    unseen = never_seen(suite)
    asked = [one for one in suite.examples if one.relation == "support"]
    return SuiteResult(
        name=suite.name,
        pairs=len(judged.said),
        groups=len(set(judged.groups)),
        unsupported=float(1 - judged.truth.mean()),
        area=of(area),
        fresh=of(area, every.chosen(unseen)) if any(unseen) else None,
        alone=of(area, _judged(asked, alone)) if alone else None,
        wrong_area=of(precision_area),
        balanced=of(balanced_at(_USUAL)),
        best=of(best_balanced),
        error=of(calibration_error),
        tuned_f1=_tuned(suite, judged, even, sampling),
        contradictions=_contradictions(suite, said, sampling),
        spans=_spans(suite, words, sampling) if words is not None else None,
    )


def _judged(examples: Sequence[TrainingPair], said: Verdicts) -> SuitePredictions:
    shares = np.array([one[0] for one in said], dtype=np.float64)
    truth = np.array([one.supported for one in examples], dtype=bool)
    return SuitePredictions(shares, truth, tuple(one.group for one in examples))


def _tuned(
    suite: Suite, odd: SuitePredictions, even: Verdicts, sampling: Sampling
) -> Estimate | None:
    if not even:
        return None
    tuned_on = _judged(suite.even, even)
    tuned_on = tuned_on.weakest() if suite.by_group else tuned_on
    threshold = best_f1_threshold(tuned_on.said, tuned_on.truth)
    return estimated(flagged_f1(threshold), odd, sampling)


def _contradictions(suite: Suite, said: Verdicts, sampling: Sampling) -> Estimate | None:
    """Return F1 of finding what is contradicted: of the three shares that of contradiction is
    highest.
    """
    truth = np.array([one.label == "contradicted" for one in suite.examples])
    if not suite.three_way or not truth.any():
        return None
    highest = np.array([LABELS[int(np.argmax(one))] == "contradicted" for one in said])
    # As a share of support: what is found has 0, the rest 1.
    found = SuitePredictions(
        np.where(highest, 0.0, 1.0), ~truth, tuple(one.group for one in suite.examples)
    )
    return estimated(flagged_f1(_USUAL), found, sampling)


def _spans(
    suite: Suite, words: Sequence[Sequence[WordDoubt]], sampling: Sampling
) -> Estimate | None:
    """Return F1 of the characters of wrong words: twice those found, by those flagged and
    those wrong.
    """
    found: list[float] = []
    both: list[float] = []
    for example, doubts in zip(suite.examples, words, strict=True):
        flagged = [(word.start, word.end) for word in doubts if word.doubt > _USUAL]
        counts = count_spans(flagged, example.wrong or (), "characters")
        found.append(2.0 * counts.found)
        both.append(float(counts.predicted + counts.labelled))
    sums = np.array(found), np.array(both)

    def measure(said: Floats, truth: Truth, weights: Weights) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return (weights @ sums[0]) / (weights @ sums[1])

    groups = tuple(one.group for one in suite.examples)
    nothing = np.zeros(len(groups))
    return estimated(measure, SuitePredictions(nothing, nothing.astype(bool), groups), sampling)


def as_json(results: Sequence[SuiteResult]) -> list[dict[str, Any]]:
    """Return the figures, to be kept beside the table."""
    return [one.model_dump(mode="json") for one in results]
