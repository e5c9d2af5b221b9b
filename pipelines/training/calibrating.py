"""Turns scores into probabilities that mean what they say, on pairs that were not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from pipelines.models.judges.reader import Scores, settle
from pipelines.training.examples import LABELS, Example

__all__ = ["best_temperature", "fitted_curve"]

_TEMPERATURES = [round(0.5 + 0.05 * step, 2) for step in range(71)]
_LEAST = 1e-6


def best_temperature(examples: Sequence[Example], scored: Sequence[Sequence[Scores]]) -> float:
    """The temperature under which the labels are most probable, in [0.5, 4].

    Every make of pair weighs the same, however many there are of it.
    """
    counts = Counter(example.make for example in examples)

    def surprise(temperature: float) -> float:
        total = 0.0
        for example, windows in zip(examples, scored, strict=True):
            reading = settle(windows, temperature)
            if example.label == "unsupported":
                share = reading.contradicted + reading.not_enough
            else:
                share = reading[LABELS.index(example.label)]
            total -= log(max(share, _LEAST)) / counts[example.make]
        return total

    return min(_TEMPERATURES, key=surprise)


def fitted_curve(numbers: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Offset and slope of the logistic curve that fits best."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6)
    model.fit(np.asarray(numbers).reshape(-1, 1), np.asarray(right))
    offset, slope = np.ravel(model.intercept_), np.ravel(model.coef_)
    return round(float(offset[0]), 4), round(float(slope[0]), 4)
