"""theta_2, the entropy threshold that DRAD's paper leaves open, from a model's own answers.

An entity of an answer is right when the supporting article or the reference answer names it.
Even-numbered answers (0, 2, 4, ...) fit theta_2, the others report what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.calibrate.answers import Answered
from pipelines.calibrate.curves import auroc, average_precision, best_cut, youden
from pipelines.errors import InvalidInputError
from pipelines.methods.drad import Drad, rhd
from pipelines.methods.drad.rhd import EntityReading, Thresholds
from pipelines.text import repeats_question
from pipelines.types import Frozen

__all__ = ["CRITERION", "LabelledEntity", "fit", "is_right", "label", "measured", "theta_2_of"]

CRITERION = (
    "largest Youden's J (sensitivity + specificity - 1) of 'H(E) > theta_2, so E is wrong', where"
    " H(E) is the largest entropy of E's tokens; middle of the best interval, rounded to 0.01"
)


class LabelledEntity(Frozen):
    """An entity that says more than its question, and whether it is wrong."""

    reading: EntityReading
    wrong: bool


def fit(answers: Sequence[Answered]) -> dict[str, Any]:
    """theta_2 from the even-numbered answers, with what both halves say about it.

    Raises InvalidInputError when the entities do not allow one; see `theta_2_of`.
    """
    fitted, reported = answers[0::2], answers[1::2]
    entities = label(fitted)
    theta_2 = theta_2_of(entities)
    return {
        "value": theta_2,
        "entities": len(entities),
        "report": {
            "fitted": measured(fitted, theta_2),
            "reported": measured(reported, theta_2),
        },
    }


def is_right(entity: str, evidence: Sequence[str]) -> bool:
    """Whether one of the texts has the entity's words one after another.

    Case, punctuation, articles, possessive endings and thousands separators do not matter.
    """
    return any(repeats_question(entity, text) for text in evidence)


def label(answers: Sequence[Answered]) -> list[LabelledEntity]:
    """The entities that count: measured, and more than a repetition of the question."""
    return [
        LabelledEntity(
            reading=reading, wrong=not is_right(reading.text, answered.question.evidence)
        )
        for answered in answers
        for reading in answered.readings
        if not reading.repeats and reading.probabilities and reading.entropies
    ]


def theta_2_of(entities: Sequence[LabelledEntity]) -> float:
    """The threshold in nats, rounded to 0.01.

    Raises InvalidInputError when no threshold tells wrong entities from right ones.
    """
    cut = best_cut(_entropies(entities), _wrong(entities))
    if cut is None:
        raise InvalidInputError(
            "No entropy threshold tells this model's wrong entities from its right ones.",
            remedy="Leave theta_2 out for this model, or choose another model.",
        )
    return round(cut.threshold, 2)


def measured(answers: Sequence[Answered], theta_2: float) -> dict[str, Any]:
    """What both numbers and both thresholds are worth on these answers; "wrong" is positive.

    `base_rate` is the share of wrong entities, which is the average precision of a score that
    says nothing. `either` is RHD's own verdict. `hindsight` is the threshold these answers would
    have chosen themselves: its distance from `theta_2` says how well theta_2 is determined.
    """
    entities = label(answers)
    wrong = _wrong(entities)
    theta_1 = Drad().settings({"theta_2": None}).theta_1
    thresholds = Thresholds(theta_1=theta_1, theta_2=theta_2)
    verdicts = [rhd.judge(entity.reading, thresholds) for entity in entities]
    improbable = [verdict.improbable for verdict in verdicts]
    uncertain = [verdict.uncertain for verdict in verdicts]
    return {
        "questions": len(answers),
        "entities_read": sum(len(answered.readings) for answered in answers),
        "repeating_the_question": sum(r.repeats for a in answers for r in a.readings),
        "entities": len(entities),
        "wrong": sum(wrong),
        "base_rate": round(sum(wrong) / len(wrong), 4),
        "probability_mean": {
            **_ranked([-probability for probability in _probabilities(entities)], wrong),
            "theta_1": theta_1,
            **_flagged(improbable, wrong),
        },
        "entropy_max": {
            **_ranked(_entropies(entities), wrong),
            "theta_2": theta_2,
            **_flagged(uncertain, wrong),
            "hindsight": _hindsight(entities),
        },
        "either": _flagged([verdict.doubtful for verdict in verdicts], wrong),
    }


def _ranked(scores: Sequence[float], wrong: Sequence[bool]) -> dict[str, float]:
    return {
        "auroc": round(auroc(scores, wrong), 4),
        "average_precision": round(average_precision(scores, wrong), 4),
    }


def _hindsight(entities: Sequence[LabelledEntity]) -> dict[str, float] | None:
    cut = best_cut(_entropies(entities), _wrong(entities))
    return cut and {"theta_2": round(cut.threshold, 2), "youden": round(cut.youden, 4)}


def _flagged(flagged: Sequence[bool], wrong: Sequence[bool]) -> dict[str, float]:
    return {"flagged": sum(flagged), "youden": round(youden(flagged, wrong), 4)}


def _probabilities(entities: Sequence[LabelledEntity]) -> list[float]:
    return [rhd.pool_probabilities(e.reading.probabilities, "mean") or 0.0 for e in entities]


def _entropies(entities: Sequence[LabelledEntity]) -> list[float]:
    return [rhd.pool_entropies(e.reading.entropies, "max") or 0.0 for e in entities]


def _wrong(entities: Sequence[LabelledEntity]) -> list[bool]:
    """Whether each is wrong; raises InvalidInputError unless both right and wrong ones occur."""
    wrong = [entity.wrong for entity in entities]
    if len(set(wrong)) < 2:
        raise InvalidInputError(
            f"Of {len(wrong)} entities {sum(wrong)} are wrong: there is nothing to tell apart.",
            remedy="Choose a model that gives token probabilities and answers in names and numbers,"
            " some of them right.",
        )
    return wrong
