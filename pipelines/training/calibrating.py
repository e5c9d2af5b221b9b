"""Turns scores into probabilities that mean what they say, on pairs that were not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.models.judges.reader import Scaling, Scores
from pipelines.training.examples import Example

__all__ = ["best_scaling", "fitted_curve"]

_TEMPERATURES = [round(0.2 + 0.05 * step, 2) for step in range(77)]
_OFFSETS = [round(0.05 * step, 2) for step in range(-60, 61)]
_ROUNDS = 4
_LEAST = 1e-6
_NO_WINDOW = -1e9


def best_scaling(examples: Sequence[Example], scored: Sequence[Sequence[Scores]]) -> Scaling:
    """Temperature and offsets under which it is most probable what is supported and what is not.

    Temperatures in [0.2, 4], offsets of the first two labels in [-3, 3], that of the third 0. Every
    make of pair weighs the same, however many there are of it. The lean towards contradiction, in
    [-3, 3], is the most probable one for the pairs of which it is known whether they are
    contradicted or not settled.
    """
    scores = _padded(scored)
    counts = Counter(example.make for example in examples)
    weights = np.array([1 / counts[example.make] for example in examples])
    right = np.array([example.label == "supported" for example in examples])

    def surprise(scaling: Scaling) -> float:
        supported = _supported(scores, scaling)
        shares = np.where(right, supported, 1 - supported)
        return float((weights * -np.log(np.maximum(shares, _LEAST))).sum())

    best = Scaling()
    for _ in range(_ROUNDS):
        supported, contradicted, rest = best.offsets
        best = min((best._replace(temperature=t) for t in _TEMPERATURES), key=surprise)
        supported = min(
            _OFFSETS, key=lambda b: surprise(best._replace(offsets=(b, contradicted, rest)))
        )
        contradicted = min(
            _OFFSETS, key=lambda b: surprise(best._replace(offsets=(supported, b, rest)))
        )
        best = best._replace(offsets=(supported, contradicted, rest))
    return best._replace(lean=_best_lean(examples, scores, weights, best.temperature))


def _best_lean(
    examples: Sequence[Example],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    temperature: float,
) -> float:
    known = np.array([one.label in ("contradicted", "not_enough") for one in examples])
    if not known.any():
        return 0.0
    against = np.array([one.label == "contradicted" for one in examples])[known]
    # Of several windows the first decides.
    towards = (scores[known, 0, 1] - scores[known, 0, 2]) / temperature

    def surprise(lean: float) -> float:
        signed = np.where(against, towards + lean, -(towards + lean))
        return float((weights[known] * np.logaddexp(0, -signed)).sum())

    return min(_OFFSETS, key=surprise)


def fitted_curve(numbers: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Offset and slope of the logistic curve that fits best."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6)
    model.fit(np.asarray(numbers).reshape(-1, 1), np.asarray(right))
    offset, slope = np.ravel(model.intercept_), np.ravel(model.coef_)
    return round(float(offset[0]), 4), round(float(slope[0]), 4)


def _padded(scored: Sequence[Sequence[Scores]]) -> NDArray[np.float64]:
    """Scores as an array of shape [examples, windows, 3]; missing windows settle nothing."""
    most = max(1, *(len(windows) for windows in scored))
    nothing = (_NO_WINDOW, _NO_WINDOW, 0.0)
    return np.array([[*w, *[nothing] * (most - len(w))] for w in scored], dtype=np.float64)


def _supported(scores: NDArray[np.float64], scaling: Scaling) -> NDArray[np.float64]:
    """P(supported) as `settle` of the reader has it, for many examples at once."""
    scaled = scores / scaling.temperature + np.array(scaling.offsets)
    powers = np.exp(scaled - scaled.max(-1, keepdims=True))
    return (powers[..., 0] / powers.sum(-1)).max(1)
