"""What the calibrations of a run say of the scores that stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from pipelines.base import Frozen
from pipelines.run.calibrations import CalibratedTask, Calibration
from pipelines.run.events import Judged, RunSpec, Score, What

JUDGED_AS: Mapping[CalibratedTask, tuple[What, ...]] = {
    "answer": ("answer",),
    "span": ("answer",),
    "sentence": ("sentence",),
    "concept": ("concept", "entity"),
}
"""What the verdicts are about whose scores are held against the labels of each task. Whether a text
has a hallucinated span is held against the verdict on the whole text."""


class CalibratedReading(Frozen):
    """A score in the light of labels: `probability` in [0, 1] that people find an error.

    `others` are the roles whose model is another one in this run than in those that were labelled.
    """

    probability: float
    calibration: Calibration
    others: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it with plain values for files and programs."""
        return {
            "probability": self.probability,
            "task": self.calibration.task,
            "fit": self.calibration.fit.kind,
            "labels": self.calibration.labels,
            "session": self.calibration.session,
            "other_models": list(self.others),
        }


def readings(
    spec: RunSpec, method: str, what: What, score: Score | None
) -> tuple[CalibratedReading, ...]:
    """Return what the run's calibrations say of a score of `method` in a verdict on `what`.

    Mostly there is none, or one; of a verdict on an answer there may be one for each of two tasks.
    """
    if score is None or score.value is None or not isfinite(score.value):
        return ()
    return tuple(
        CalibratedReading(
            probability=one.fit.probability(score.value),
            calibration=one,
            others=tuple(
                role
                for role, name in one.models.items()
                if role in spec.models and spec.models[role].name != name
            ),
        )
        for one in spec.calibrations
        if (one.method, one.score, one.bad) == (method, score.name, score.bad)
        and what in JUDGED_AS[one.task]
    )


def deciding_readings(
    spec: RunSpec, method: str, event: Judged | None
) -> tuple[CalibratedReading, ...]:
    """Return what `readings` returns, of the score that decided; none without a verdict."""
    return () if event is None else readings(spec, method, event.what, event.deciding)
