"""A judge's mean corrected by labels that were drawn with known probabilities.

`statistics.judges` takes it where labels have different probabilities, or groups are labelled in
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    group_numbers,
    within_unit,
)
from pipelines.types import Frozen

FEW = 5
"""Labels of the rarer of two classes below which a normal interval is not to be trusted."""


class PoweredMean(Frozen):
    """A judge's mean, corrected; `tuning` in [0, 1] is how far the judge was relied on."""

    corrected: Estimate
    tuning: float


def powered_mean(
    judge: Sequence[float],
    labels: Sequence[float],
    labelled: Sequence[int],
    probabilities: Sequence[float] | None = None,
    groups: Sequence[str] = (),
    *,
    level: float = 0.95,
) -> PoweredMean:
    """Return the mean of what people would say of all answers, of which they labelled a part.

    `judge` are values in [0, 1] of all N answers, `labels` those of people at the places
    `labelled`, `probabilities` in (0, 1] those with which these were drawn (None: all the same).
    With w = 1 / probability, f the judge and Y the labels, it is

        tuning * mean(f) + sum(w * (Y - tuning * f)) / sum(w)

    where the sums are over labelled answers: prediction-powered inference (Angelopoulos and others
    2023, Science 382) with inverse-probability weights (Horvitz and Thompson 1952, in the form of
    Hajek 1971), as in active statistical inference (Zrnic and Candes 2024, arXiv 2403.03208). The
    weights need be right up to a factor only: labels that are still missing do no harm if they are
    missing at random. The tuning is the one with the smallest variance in [0, 1] (PPI++, arXiv
    2311.01453). The variance is that of the linearised estimate, summed within `groups`, which may
    be labelled in part. The interval is Student's; where there are fewer than five labels of one
    kind, it is not narrower than Wilson's for as many labels as the weights are worth (Kish 1965).

    Raises ValueError with fewer than two labelled groups, or for lists that do not fit.
    """
    f, y = np.asarray(judge, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    at = np.asarray(labelled, dtype=np.intp)
    drawn = np.ones(len(y)) if probabilities is None else np.asarray(probabilities, np.float64)
    if not len(y) == len(at) == len(drawn) or (len(groups) and len(groups) != len(f)):
        raise ValueError("There must be one label and one probability for each labelled answer.")
    if not ((drawn > 0) & (drawn <= 1)).all():
        raise ValueError("A probability lies in (0, 1].")
    numbers = group_numbers(groups or [""] * len(f))
    held, every = len(np.unique(numbers[at])), len(np.unique(numbers))
    if held < 2:
        raise ValueError("Two labelled groups are needed at least.")
    weights = 1 / drawn
    # What each label stands for: these add up to the number of answers.
    counts = len(f) * weights / weights.sum()
    mean_y, mean_f = float(counts @ y) / len(f), float(counts @ f[at]) / len(f)
    of_labels = _by_group(counts * (y - mean_y), numbers[at], every)
    of_judged = _by_group(counts * (f[at] - mean_f), numbers[at], every)
    of_judge = _by_group(f - f.mean(), numbers, every)
    gained = of_judge - of_judged
    least = float(gained @ gained)
    tuning = min(1.0, max(0.0, -float(of_labels @ gained) / least)) if least > 1e-12 else 0.0
    rectified = of_labels - tuning * of_judged
    relied = tuning * of_judge
    by_labels = held / (held - 1) * float(rectified @ rectified) / len(f) ** 2
    by_judge = float(relied @ relied + 2 * relied @ rectified) / len(f) ** 2
    value = tuning * float(f.mean()) + mean_y - tuning * mean_f
    half = float(stdtrit(held - 1, (1 + level) / 2)) * sqrt(max(0.0, by_labels + by_judge))
    binary = bool(np.isin(y, (0.0, 1.0)).all())
    few = binary and min(y.sum(), len(y) - y.sum()) < FEW
    if few:
        worth = float(weights.sum() ** 2 / (weights**2).sum())
        half = max(half, _wilson_half(mean_y, worth, float(ndtri((1 + level) / 2))))
    return PoweredMean(
        corrected=Estimate(
            value=within_unit(value),
            low=within_unit(value - half),
            high=within_unit(value + half),
            n=len(f),
            groups=every,
        ),
        tuning=tuning,
    )


def _by_group(values: Floats, numbers: np.ndarray, groups: int) -> Floats:
    return np.bincount(numbers, weights=values, minlength=groups).astype(np.float64)


def _wilson_half(share: float, n: float, z: float) -> float:
    """Return half the width of Wilson's interval of a share of `n`."""
    return z / (n + z**2) * sqrt(n * share * (1 - share) + z**2 / 4)
