"""What a judge is worth: areas under the ROC curve, F1, calibration, against simple rivals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.calibrate.curves import auroc
from pipelines.training.examples import LABELS, Example

__all__ = ["Scorer", "binary", "calibration_error", "reliability", "three_way"]

Probabilities = NDArray[np.float64]
Scorer = Callable[[Sequence[Example]], Probabilities]
"""P(supported), P(contradicted), P(not enough) of every example, shape [examples, 3]."""


def binary(examples: Sequence[Example], probabilities: Probabilities) -> dict[str, Any]:
    """Supported against the rest: area under the ROC curve, calibration, base rate.

    `right` counts the examples on the right side of P(supported) = 0.5.
    """
    truth = [example.label == "supported" for example in examples]
    agreed = int(((probabilities[:, 0] > 0.5) == np.asarray(truth)).sum())
    return {
        "examples": len(truth),
        "supported": round(sum(truth) / len(truth), 4),
        "right": agreed,
        "auroc": round(auroc(list(map(float, probabilities[:, 0])), truth), 4),
        "ece": round(calibration_error(probabilities[:, 0], truth), 4),
    }


def three_way(examples: Sequence[Example], probabilities: Probabilities) -> dict[str, Any]:
    """Macro F1 over the three labels, and each label's precision, recall and F1."""
    said = [LABELS[place] for place in probabilities.argmax(1)]
    pairs = Counter(zip((e.label for e in examples), said, strict=True))
    classes: dict[str, Mapping[str, float]] = {}
    for label in LABELS:
        hits = pairs[label, label]
        asserted = sum(count for (_, s), count in pairs.items() if s == label)
        there = sum(count for (t, _), count in pairs.items() if t == label)
        precision, recall = hits / max(1, asserted), hits / max(1, there)
        f1 = 2 * precision * recall / max(1e-12, precision + recall)
        classes[label] = {
            "examples": there,
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "f1": round(f1, 4),
        }
    macro = sum(one["f1"] for one in classes.values()) / len(LABELS)
    return {"macro_f1": round(macro, 4), "classes": classes}


def calibration_error(probabilities: Probabilities, right: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error over `bins` bins of equal width, in [0, 1]."""
    return sum(
        abs(said - true) * count / len(right)
        for said, true, count in reliability(probabilities, right, bins)
    )


def reliability(
    probabilities: Probabilities, right: Sequence[bool], bins: int = 10
) -> list[tuple[float, float, int]]:
    """The reliability diagram: what was said, what is true and how many, of every bin in use.

    The first two are a mean probability and a share, both in [0, 1].
    """
    truth = np.asarray(right, dtype=float)
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    found: list[tuple[float, float, int]] = []
    for place in range(bins):
        inside = places == place
        if inside.any():
            said, true = float(probabilities[inside].mean()), float(truth[inside].mean())
            found.append((said, true, int(inside.sum())))
    return found
