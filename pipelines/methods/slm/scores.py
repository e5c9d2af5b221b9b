"""The arithmetic of the SLM check: from judges' probabilities to sentence and response scores.

Source: the SLM framework's scoring steps. A judge m gives sentence j the probability s_j(m) that
it says yes; z = (s - mu_m) / sigma_m makes judges comparable; their average is the sentence's
score, and a mean over sentences the response's. How a score of 0 or less enters a harmonic or
geometric mean is left open there: both ways offered here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, fsum, log, sqrt
from typing import Literal, get_args

from pipelines.run.findings import JudgeScale
from pipelines.types import Frozen

__all__ = [
    "MEANS",
    "JudgeScale",
    "Lift",
    "Mean",
    "Scaling",
    "average",
    "even_score",
    "normal_cdf",
    "response_score",
    "scale_of_scores",
    "z_score",
]

Mean = Literal["harmonic", "arithmetic", "geometric", "min", "max"]
Lift = Literal["phi", "epsilon"]

MEANS: tuple[Mean, ...] = get_args(Mean)
"""Every way sentence scores become a response score, the paper's first."""

_NEED_POSITIVE = ("harmonic", "geometric")


class Scaling(Frozen):
    """How scores become comparable and positive: `lift` maps z, `epsilon` bounds it from below."""

    normalise: bool = True
    lift: Lift = "phi"
    epsilon: float = 0.01

    @property
    def key(self) -> Literal["phi", "epsilon", "raw"]:
        """What thresholds on such scores are filed under; "raw" without normalisation."""
        return self.lift if self.normalise else "raw"


def z_score(score: float, scale: JudgeScale) -> float:
    """(s - mu) / sigma; 0 for a judge that has always said the same, which then says nothing."""
    return (score - scale.mu) / scale.sigma if scale.sigma > 0 else 0.0


def scale_of_scores(
    scores: Sequence[float], source: Literal["calibrated", "history"]
) -> JudgeScale:
    """Mean and (population) standard deviation of `scores`; neutral for none."""
    if not scores:
        return JudgeScale()
    mu = fsum(scores) / len(scores)
    sigma = sqrt(fsum((score - mu) ** 2 for score in scores) / len(scores))
    return JudgeScale(mu=mu, sigma=sigma, n=len(scores), source=source)


def average(values: Sequence[float | None]) -> float | None:
    """The mean of those that are known; None when none is."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def normal_cdf(z: float) -> float:
    """Phi(z), the standard normal distribution function, in [0, 1]."""
    return erfc(-z / sqrt(2)) / 2


def even_score(mean: Mean, scaling: Scaling) -> float:
    """What a response scores whose every sentence is as likely right as wrong, P(yes) = 0.5 (ours).

    With the neutral scale that is z = 0: 0.5 under Phi and for plain P(yes), 0 for z itself, and
    the floor where a mean needs positive numbers and the floor lies above.
    """
    score = response_score([0.0 if scaling.normalise else 0.5], mean, scaling)
    assert score is not None
    return score


def response_score(scores: Sequence[float], mean: Mean, scaling: Scaling) -> float | None:
    """The response's score from its sentences' averages (z, or P(yes) when not normalised).

    Phi maps every z to (0, 1) before any mean. Epsilon is a floor where a mean needs positive
    numbers: under the harmonic and geometric means, for z and for P(yes) alike. None for no scores.
    """
    if not scores:
        return None
    values = list(scores)
    if scaling.key == "phi":
        values = [normal_cdf(value) for value in values]
    elif mean in _NEED_POSITIVE:
        values = [max(value, scaling.epsilon) for value in values]
    match mean:
        case "arithmetic":
            return fsum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        # Phi of a z below -38 is 0 in floating point.
        case "harmonic":
            return 0.0 if min(values) == 0 else len(values) / fsum(1 / value for value in values)
        case "geometric":
            return 0.0 if min(values) == 0 else exp(fsum(map(log, values)) / len(values))
