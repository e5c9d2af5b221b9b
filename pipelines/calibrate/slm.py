"""What the SLM check ships: every judge's mean and deviation, and thresholds of every panel.

They come from answers whose truth is known. Even-numbered records (0, 2, 4, ...) fit, the others
report what judges and thresholds are worth; nothing makes the result look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
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
    average,
    response_score,
    scale_of_scores,
    z_score,
)
from pipelines.run.spec import JUDGES

__all__ = ["CRITERIA", "PAPER", "Panelled", "ThresholdCut", "cuts", "derive", "fit"]

Panelled = Sequence[Sequence[JudgedAnswer]]
"""For every judge of a panel the same answers, in the same order, as that judge judged them."""

MOST_JUDGES = len(JUDGES)

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


def fit(fitted: Panelled, reported: Panelled) -> dict[str, Any]:
    """Scales, thresholds and report of judges that judge together; one sequence a judge.

    Raises InvalidInputError where nothing can be told apart.
    """
    for half in (fitted, reported):
        if len({answers[0].answer.right for answers in _scored(half)}) < 2:
            raise InvalidInputError(
                "The judge scored no right or no wrong answer, so no threshold can be found.",
                remedy="Choose a model that answers YES or NO, or a file with more records.",
            )
    scales = [_scale(judged) for judged in fitted]
    thresholds: dict[str, dict[str, dict[str, float]]] = {"f1": {}, "precision": {}}
    for key, scaling in _SCALINGS.items():
        for mean in MEANS:
            scores, right = _scores(fitted, scales, mean, scaling)
            found = list(cuts(scores, right))
            # Of equally good cuts the last, which is the lowest.
            best = max(reversed(found), key=lambda cut: cut.f1)
            enough = [cut for cut in found if cut.recall >= 0.5]
            precise = max(reversed(enough), key=lambda cut: cut.precision)
            for name, cut in (("f1", best), ("precision", precise)):
                by_mean = thresholds[name].setdefault(key, {})
                by_mean[mean] = float(f"{cut.threshold:.6g}")
    return {
        "scales": [{"mu": one.mu, "sigma": one.sigma, "n": one.n} for one in scales],
        "thresholds": thresholds,
        "report": {
            "fitted": measured(fitted, scales, thresholds),
            "reported": measured(reported, scales, thresholds),
        },
    }


def derive(
    fitted: Mapping[str, Sequence[JudgedAnswer]], reported: Mapping[str, Sequence[JudgedAnswer]]
) -> dict[str, Any]:
    """Every judge's scale by its name, and what every panel that they can make is worth."""
    names = sorted(fitted)
    judges: dict[str, dict[str, float]] = {}
    panels: list[dict[str, Any]] = []
    for size in range(1, min(len(names), MOST_JUDGES) + 1):
        for panel in combinations(names, size):
            found = fit([fitted[name] for name in panel], [reported[name] for name in panel])
            judges |= dict(zip(panel, found["scales"], strict=True))
            panels.append(
                {
                    "judges": list(panel),
                    "thresholds": found["thresholds"],
                    "report": found["report"]["reported"],
                }
            )
    return {"judges": judges, "panels": panels}


def _scale(judged: Sequence[JudgedAnswer]) -> JudgeScale:
    scale = scale_of_scores([p for each in judged for p in _known(each)], "calibrated")
    rounded = {"mu": round(scale.mu, _DIGITS), "sigma": round(scale.sigma, _DIGITS)}
    return scale.model_copy(update=rounded)


def measured(
    judged: Panelled,
    scales: Sequence[JudgeScale],
    thresholds: dict[str, dict[str, dict[str, float]]],
) -> dict[str, Any]:
    """What scores and thresholds are worth on these answers; a right answer is the positive kind.

    `answer_length` is what the answer's length alone would reach, shorter ones taken for right: a
    judge has to be held against it, because made-up answers of this data are longer.
    `whole_response` is the mean of the judges' P(yes) for the whole answer.
    """
    first = judged[0]
    right = [each.answer.right for each in first]
    wholes = [
        (fmean(each.whole or 0.0 for each in answers), answers[0].answer.right)
        for answers in zip(*judged, strict=True)
        if all(each.whole is not None for each in answers)
    ]
    return {
        "answers": len(first),
        "scored": len(_scored(judged)),
        "right": sum(right),
        "sentences": sum(len(each.sentences) for each in first),
        "other_mass": round(fmean(m for one in judged for e in one for m in e.other_masses), 4),
        "auroc": {
            **{mean: _auroc(*_scores(judged, scales, mean, Scaling())) for mean in MEANS},
            "whole_response": _auroc([p for p, _ in wholes], [truth for _, truth in wholes]),
            "answer_length": _auroc([-float(len(each.answer.text)) for each in first], right),
        },
        "verdicts": {
            name: _verdicts(judged, scales, found["phi"]["harmonic"])
            for name, found in thresholds.items()
        },
    }


def _verdicts(judged: Panelled, scales: Sequence[JudgeScale], threshold: float) -> dict[str, Any]:
    """How the default score (harmonic mean of Phi) does at `threshold`."""
    scores, right = _scores(judged, scales, "harmonic", Scaling())
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
    judged: Panelled, scales: Sequence[JudgeScale], mean: Mean, scaling: Scaling
) -> tuple[list[float], list[bool]]:
    """Scores as the method makes them: averages over judges, then a mean over sentences."""
    scores, right = [], []
    for answers in _scored(judged):
        rows = zip(*(each.sentences for each in answers), strict=True)
        averages = [average(_comparable(row, scales, scaling)) for row in rows]
        known = [value for value in averages if value is not None]
        scores.append(response_score(known, mean, scaling) or 0.0)
        right.append(answers[0].answer.right)
    return scores, right


def _comparable(
    row: Sequence[float | None], scales: Sequence[JudgeScale], scaling: Scaling
) -> list[float | None]:
    if not scaling.normalise:
        return list(row)
    return [None if p is None else z_score(p, scale) for p, scale in zip(row, scales, strict=True)]


def _auroc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    return round(auroc(scores, right), _DIGITS) if len(set(right)) == 2 else None


def _scored(judged: Panelled) -> list[tuple[JudgedAnswer, ...]]:
    """The answers of which a judge scored a sentence, each as every judge judged it."""
    return [answers for answers in zip(*judged, strict=True) if any(map(_known, answers))]


def _known(judged: JudgedAnswer) -> list[float]:
    return [p for p in judged.sentences if p is not None]
