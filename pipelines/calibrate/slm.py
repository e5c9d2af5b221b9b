"""What the SLM check ships: a judge's mean and deviation, and the thresholds of every mean.

Both come from answers whose truth is known. Even-numbered records (0, 2, 4, ...) fit, the others
report what the judge and its thresholds are worth; nothing makes the result look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from pipelines.calibrate.curves import auroc
from pipelines.calibrate.slm_data import JudgedAnswer
from pipelines.errors import InvalidInputError
from pipelines.methods.slm.scores import (
    MEANS,
    JudgeScale,
    Mean,
    Scaling,
    response_score,
    scale_of_scores,
    z_score,
)

__all__ = ["CRITERIA", "PAPER", "ThresholdCut", "cuts", "fit"]

CRITERIA = {
    "f1": "largest F1 of 'score > threshold, so the answer is right'",
    "precision": "largest precision of 'score > threshold, so the answer is right' with a recall of"
    " at least 0.5",
}
"""What each threshold is best at. Of equally good ones the lowest is taken."""

PAPER: dict[str, Any] = {
    "source": "SLM paper, measured with its own judges (Qwen2-1.5B-Instruct, MiniCPM-2B) and data;"
    " F1, right against partly right answers",
    "proposed": 0.81,
    "right_against_wrong_max": 0.99,
    "right_against_wrong_p_yes": 0.89,
}

_SCALINGS = {
    "phi": Scaling(),
    "epsilon": Scaling(lift="epsilon"),
    "raw": Scaling(normalise=False),
}
_DIGITS = 4


class ThresholdCut(NamedTuple):
    """What "score > threshold" finds: shares in [0, 1], right answers being the positive kind."""

    threshold: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def cuts(scores: Sequence[float], right: Sequence[bool]) -> Iterator[ThresholdCut]:
    """Every way to cut between two neighbouring scores, and below all; the highest cut first.

    Below all means half the distance between the two lowest scores further down.
    """
    levels = sorted(set(scores), reverse=True)
    step = levels[-2] - levels[-1] if len(levels) > 1 else 1.0
    positives = sum(right)
    for above, below in pairwise([*levels, levels[-1] - step]):
        taken = [truth for score, truth in zip(scores, right, strict=True) if score >= above]
        yield ThresholdCut(
            threshold=(above + below) / 2,
            precision=sum(taken) / len(taken),
            recall=sum(taken) / positives,
        )


def fit(fitted: Sequence[JudgedAnswer], reported: Sequence[JudgedAnswer]) -> dict[str, Any]:
    """Scale, thresholds and report. Raises InvalidInputError where nothing can be told apart."""
    for half in (fitted, reported):
        if len({each.answer.right for each in _scored(half)}) < 2:
            raise InvalidInputError(
                "The judge scored no right or no wrong answer, so no threshold can be found.",
                remedy="Choose a model that answers YES or NO, or a file with more records.",
            )
    scale = scale_of_scores([p for each in fitted for p in _known(each)], "calibrated")
    scale = scale.model_copy(
        update={"mu": round(scale.mu, _DIGITS), "sigma": round(scale.sigma, _DIGITS)}
    )
    thresholds: dict[str, dict[str, dict[str, float]]] = {"f1": {}, "precision": {}}
    for key, scaling in _SCALINGS.items():
        for mean in MEANS:
            scores, right = _scores(fitted, scale, mean, scaling)
            found = list(cuts(scores, right))
            # Of equally good cuts the last, which is the lowest.
            best = max(reversed(found), key=lambda cut: cut.f1)
            enough = [cut for cut in found if cut.recall >= 0.5]
            precise = max(reversed(enough), key=lambda cut: cut.precision)
            for name, cut in (("f1", best), ("precision", precise)):
                by_mean = thresholds[name].setdefault(key, {})
                by_mean[mean] = float(f"{cut.threshold:.6g}")
    return {
        "scale": {"mu": scale.mu, "sigma": scale.sigma, "n": scale.n},
        "thresholds": thresholds,
        "report": {
            "fitted": measured(fitted, scale, thresholds),
            "reported": measured(reported, scale, thresholds),
        },
    }


def measured(
    judged: Sequence[JudgedAnswer],
    scale: JudgeScale,
    thresholds: dict[str, dict[str, dict[str, float]]],
) -> dict[str, Any]:
    """What scores and thresholds are worth on these answers; a right answer is the positive kind.

    `answer_length` is what the answer's length alone would reach, shorter ones taken for right: a
    judge has to be held against it, because made-up answers of this data are longer.
    """
    whole = [each for each in judged if each.whole is not None]
    right = [each.answer.right for each in judged]
    return {
        "answers": len(judged),
        "scored": len(_scored(judged)),
        "right": sum(right),
        "sentences": sum(len(each.sentences) for each in judged),
        "other_mass": round(fmean(m for each in judged for m in each.other_masses), _DIGITS),
        "auroc": {
            **{mean: _auroc(*_scores(judged, scale, mean, Scaling())) for mean in MEANS},
            "whole_response": _auroc(
                [each.whole or 0.0 for each in whole], [each.answer.right for each in whole]
            ),
            "answer_length": _auroc([-float(len(each.answer.text)) for each in judged], right),
        },
        "verdicts": {
            name: _verdicts(judged, scale, found["phi"]["harmonic"])
            for name, found in thresholds.items()
        },
    }


def _verdicts(
    judged: Sequence[JudgedAnswer], scale: JudgeScale, threshold: float
) -> dict[str, Any]:
    """How the default score (harmonic mean of Phi) does at `threshold`."""
    scores, right = _scores(judged, scale, "harmonic", Scaling())
    supported = [score > threshold for score in scores]
    agreed = sum(a == b for a, b in zip(supported, right, strict=True))
    hits = sum(a and b for a, b in zip(supported, right, strict=True))
    cut = ThresholdCut(threshold, hits / max(1, sum(supported)), hits / sum(right))
    return {
        "threshold": threshold,
        "supported": sum(supported),
        "accuracy": round(agreed / len(right), _DIGITS),
        "precision": round(cut.precision, _DIGITS),
        "recall": round(cut.recall, _DIGITS),
        "f1": round(cut.f1, _DIGITS),
    }


def _scores(
    judged: Sequence[JudgedAnswer], scale: JudgeScale, mean: Mean, scaling: Scaling
) -> tuple[list[float], list[bool]]:
    scores = []
    for each in _scored(judged):
        values = [z_score(p, scale) if scaling.normalise else p for p in _known(each)]
        scores.append(response_score(values, mean, scaling) or 0.0)
    return scores, [each.answer.right for each in _scored(judged)]


def _auroc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    return round(auroc(scores, right), _DIGITS) if len(set(right)) == 2 else None


def _scored(judged: Sequence[JudgedAnswer]) -> list[JudgedAnswer]:
    return [each for each in judged if _known(each)]


def _known(judged: JudgedAnswer) -> list[float]:
    return [p for p in judged.sentences if p is not None]
