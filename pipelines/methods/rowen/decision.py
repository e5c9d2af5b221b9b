"""When Rowen retrieves: the consistency scores, and the decision that follows. Pure.

Source: the Rowen paper's section on deciding when to retrieve. C is 1.0 where two answers agree as
answers to the question and 0.0 where they do not:

    Z_CL = mean_j C(P^j, P_T^j)    Z_CM = mean_j C(P^j, P_V^j)    Z_Hybrid = Z_CL + alpha * Z_CM

Evidence is retrieved when Z is below the threshold. Pairs that could not be decided are left out
of their mean. Where one comparison of the hybrid decided no pair at all, the other one decides
alone, against its own threshold (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from pipelines.methods.rowen.settings import RowenSettings
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import SIDES, PairCompared, Side, Variant

__all__ = ["Conclusion", "Pair", "conclude", "is_certain"]


@dataclass(frozen=True)
class Pair:
    """A compared pair and the span in which it was judged."""

    compared: PairCompared
    span: str


@dataclass(frozen=True)
class Conclusion:
    """What the pairs lead to.

    `variant` is the one that decided. `verdict` is "unchecked" where no pair was decided; evidence
    is retrieved then, too. `scores` begin with the one that decides it and are empty where there
    was no paraphrase to compare answers to.
    """

    variant: Variant
    retrieve: bool
    verdict: Verdict
    scores: tuple[Score, ...]


def conclude(settings: RowenSettings, variant: Variant, pairs: Sequence[Pair]) -> Conclusion:
    """The scores and whether to retrieve, for the pairs that `variant` compared."""
    values: dict[Side, list[float]] = {
        side: _values(pairs, side, settings) for side in SIDES[variant]
    }
    decided: list[Side] = [side for side in values if values[side]]
    # Of two sides, one that decided nothing leaves the decision to the other.
    variant = decided[0] if len(decided) == 1 else variant
    threshold = settings.threshold_for(variant)
    z = _z({side: _mean(values[side]) for side in decided}, variant, settings.alpha)
    retrieve = z is None or z < threshold
    return Conclusion(
        variant=variant,
        retrieve=retrieve,
        verdict="unchecked" if z is None else "doubtful" if retrieve else "confident",
        scores=_scores(settings, variant, pairs, z) if pairs else (),
    )


def is_certain(
    settings: RowenSettings, variant: Variant, pairs: Sequence[Pair], planned: int
) -> bool:
    """Whether no outcome of the comparisons left, of `planned` a side, can change the decision.

    Each may yet be anything in [0, 1], or stay undecided, which moves the mean less than 0 or 1.
    Which variant decides is certain once every side has a decided pair or none left.
    """
    values: dict[Side, list[float]] = {
        side: _values(pairs, side, settings) for side in SIDES[variant]
    }
    left = {side: planned - sum(p.compared.side == side for p in pairs) for side in values}
    if not any(left.values()):
        return True
    if not all(values[side] or not left[side] for side in values):
        return False
    known: list[Side] = [side for side in values if values[side]]
    variant = known[0] if len(known) == 1 else variant
    low, high = (
        _z(
            {side: _mean([*values[side], *[rest] * left[side]]) for side in known},
            variant,
            settings.alpha,
        )
        for rest in (0.0, 1.0)
    )
    threshold = settings.threshold_for(variant)
    return (low is not None and low >= threshold) or (high is not None and high < threshold)


def _values(pairs: Sequence[Pair], side: Side, settings: RowenSettings) -> list[float]:
    """C of the decided pairs of a side, in the order of their paraphrases."""
    values = (pair.compared.value(soft=settings.soft) for pair in _of_side(pairs, side))
    return [value for value in values if value is not None]


def _of_side(pairs: Sequence[Pair], side: Side) -> list[Pair]:
    chosen = (pair for pair in pairs if pair.compared.side == side)
    return sorted(chosen, key=lambda pair: pair.compared.index)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _z(means: dict[Side, float], variant: Variant, alpha: float) -> float | None:
    """Z from the means of the sides that decided anything; None where none did."""
    if not means:
        return None
    value = means["cl"] + alpha * means["cm"] if variant == "hybrid" else means[variant]
    # A tie must be one: 0.7 + 0.1 is 0.7999999999999999 in floating point, and not below 0.8.
    return round(value, 9)


def _scores(
    settings: RowenSettings, variant: Variant, pairs: Sequence[Pair], z: float | None
) -> tuple[Score, ...]:
    threshold = settings.threshold_for(variant)
    flagged = z is not None and z < threshold

    def side(name: Side, *, alone: bool) -> Score:
        values = _values(pairs, name, settings)
        mean = round(_mean(values), 9) if values else None
        return Score(
            name=f"rowen_{name}",
            value=mean,
            threshold=threshold if alone else None,
            flagged=alone and flagged,
            formula=f"rowen.{name}",
            inputs=tuple(values),
            behind=tuple(pair.span for pair in _of_side(pairs, name)),
        )

    if variant != "hybrid":
        return (side(variant, alone=True),)
    parts = side("cl", alone=False), side("cm", alone=False)
    scale = 1.0 + settings.alpha
    behind = tuple(span for part in parts for span in part.behind)
    hybrid = Score(
        name="rowen_hybrid",
        value=z,
        threshold=threshold,
        flagged=flagged,
        high=scale,
        formula="rowen.hybrid",
        inputs=(*(part.value for part in parts if part.value is not None), settings.alpha),
        behind=behind,
    )
    normalised = Score(
        name="rowen_normalised",
        value=None if z is None else z / scale,
        threshold=threshold / scale,
        flagged=flagged,
        formula="rowen.normalised",
        inputs=() if z is None else (z, settings.alpha),
        behind=behind,
    )
    return (hybrid, *parts, normalised)
