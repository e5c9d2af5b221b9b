"""Calibrations fitted to people's labels: the probability of an error behind a method's score.

They come from a session in which people labelled what a method judged (`pipelines.annotation`), are
kept in a profile, and are recorded with the runs that use it. They change no verdict. What a run
shows of them is in `pipelines.run.calibrated`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import exp
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipelines.base import Frozen
from pipelines.error_words import PhraseError, phrase

CalibratedTask = Literal["answer", "span", "sentence", "concept"]
"""What people labelled: whether an answer is right, whether a text has a hallucinated span, whether
a sentence is accurate, whether a concept is true."""

CalibrationKind = Literal["platt", "isotonic"]

MOST_CALIBRATIONS = 50
"""Calibrations of one profile or run."""

MOST_KNOTS = 1_000
"""Points of one isotonic calibration."""

BEYOND = 1e12
"""No number of a calibration is larger: scores beyond it are on no scale."""

Real = Annotated[float, Field(ge=-BEYOND, le=BEYOND, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=0, le=10**9)]


class Platt(Frozen):
    """P(error) = 1 / (1 + exp(-(slope * score + intercept))) (Platt 1999)."""

    kind: Literal["platt"] = "platt"
    slope: Real
    intercept: Real

    def probability(self, score: float) -> float:
        """Return P(error) in [0, 1] of a finite score."""
        z = self.slope * score + self.intercept
        # Of the two forms, the one whose power cannot be too large for a float.
        return 1 / (1 + exp(-z)) if z >= 0 else exp(z) / (1 + exp(z))

    def turned(self, total: float) -> Platt:
        """Return the same fit for `total` minus the score."""
        return Platt(slope=-self.slope, intercept=self.slope * total + self.intercept)


class Isotonic(Frozen):
    """P(error) as a function that never falls, or never rises (Zadrozny and Elkan 2002).

    It is `y` at the scores `x`, which rise; straight lines between, and level beyond both ends.
    """

    kind: Literal["isotonic"] = "isotonic"
    x: Annotated[tuple[Real, ...], Field(min_length=1, max_length=MOST_KNOTS)]
    y: Annotated[tuple[Share, ...], Field(min_length=1, max_length=MOST_KNOTS)]

    @model_validator(mode="after")
    def _is_a_function(self) -> Self:
        if len(self.x) != len(self.y):
            raise PhraseError("calibration.other_lengths")
        if any(right <= left for left, right in pairwise(self.x)):
            raise PhraseError("calibration.no_rise")
        if not (self.rises or self.falls):
            raise PhraseError("calibration.both_ways")
        return self

    @property
    def rises(self) -> bool:
        """Whether it falls nowhere."""
        return all(left <= right for left, right in pairwise(self.y))

    @property
    def falls(self) -> bool:
        """Whether it rises nowhere."""
        return all(left >= right for left, right in pairwise(self.y))

    def probability(self, score: float) -> float:
        """Return P(error) in [0, 1] of a finite score."""
        place = bisect_right(self.x, score)
        if place == 0:
            return self.y[0]
        if place == len(self.x):
            return self.y[-1]
        (left, right), (low, high) = self.x[place - 1 : place + 1], self.y[place - 1 : place + 1]
        return low + (high - low) * (score - left) / (right - left)

    def turned(self, total: float) -> Isotonic:
        """Return the same fit for `total` minus the score."""
        return isotonic([total - one for one in reversed(self.x)], self.y[::-1])


Fit = Annotated[Platt | Isotonic, Field(discriminator="kind")]


def isotonic(x: Sequence[float], y: Sequence[float]) -> Isotonic:
    """Return the function through these points, whose `x` do not fall; at most MOST_KNOTS are kept.

    Where rounding has made two of `x` equal, the first stays. Of too many points, those stay that
    divide them evenly, and both ends.
    """
    kept = [place for place in range(len(x)) if place == 0 or x[place] > x[place - 1]]
    if len(kept) > MOST_KNOTS:
        step = (len(kept) - 1) / (MOST_KNOTS - 1)
        kept = [kept[round(number * step)] for number in range(MOST_KNOTS)]
    return Isotonic(x=tuple(x[one] for one in kept), y=tuple(y[one] for one in kept))


class Calibration(Frozen):
    """What a score of a method means, fitted to people's labels.

    `fit` gives the probability that people find an error, of the score `score` of `method` on what
    the task is about; on the `bad` side of the score errors are expected. It was fitted to `labels`
    labels of `session`, on the day `date` (YYYY-MM-DD); on `tested` others its Brier score and
    expected calibration error are `brier` and `calibration_error`, both in [0, 1], 0 is best.

    `setting` is the method's setting that is the threshold of the score, "" where there is none:
    it decides verdicts, not scores. `conditions` stands for all other settings and for the wording
    with which the method ran (see `pipelines.engine.calibrations`): with others the calibration
    does not hold. `models` are the names of the models of those runs, by role.
    """

    method: Name
    score: Name
    task: CalibratedTask
    bad: Literal["below", "above"]
    fit: Fit
    labels: Annotated[Count, Field(ge=1)]
    tested: Count = 0
    brier: Share | None = None
    calibration_error: Share | None = None
    session: Annotated[str, Field(max_length=200)] = ""
    date: Annotated[str, Field(pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    setting: Annotated[str, Field(max_length=200)] = ""
    conditions: Annotated[str, Field(pattern=r"^[0-9a-f]{0,64}$")] = ""
    models: Annotated[dict[Name, Name], Field(max_length=20)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_its_side(self) -> Self:
        fit = self.fit
        if isinstance(fit, Isotonic) and not (fit.rises if self.bad == "above" else fit.falls):
            raise PhraseError("calibration.other_side", bad=phrase(f"side.{self.bad}"))
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is of: method, score and task."""
        return self.method, self.score, self.task


def _each_once(found: tuple[Calibration, ...]) -> tuple[Calibration, ...]:
    if len({one.key for one in found}) < len(found):
        raise PhraseError("calibration.twice")
    return found


Calibrations = Annotated[
    tuple[Calibration, ...],
    Field(max_length=MOST_CALIBRATIONS, exclude_if=lambda found: not found),
    AfterValidator(_each_once),
]
"""Those of a profile or a run; where there are none, they are left out of what is stored."""
