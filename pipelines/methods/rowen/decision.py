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


@dataclass(frozen=True)
class ComparedPair:
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


def conclude(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    *,
    stands_in: bool = False,
    weak: bool = False,
) -> Conclusion:
    """Return the scores and whether to retrieve, for the pairs that `variant` compared.

    With `stands_in`, "cm" compared second answers of the main model, which its score says. A `weak`
    main model has its own threshold.
    """
    variant, z = _decided(settings, variant, _values(settings, variant, pairs))
    threshold = settings.threshold_for(variant, weak=weak)
    retrieve = z is None or z < threshold
    return Conclusion(
        variant=variant,
        retrieve=retrieve,
        verdict="unchecked" if z is None else "doubtful" if retrieve else "confident",
        scores=_scores(settings, variant, pairs, z, threshold, stands_in=stands_in)
        if pairs
        else (),
    )


def is_certain(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    planned: int,
    *,
    weak: bool = False,
) -> bool:
    """Return whether no outcome of the comparisons left, of `planned` a side, can change the
    decision.

    Each may yet be anything in [0, 1], or stay undecided, which moves the mean less than 0 or 1.
    Which variant decides is certain once every side has a decided pair or none left.
    """
    values = _values(settings, variant, pairs)
    left = {side: planned - sum(p.compared.side == side for p in pairs) for side in values}
    if not any(left.values()):
        return True
    if not all(values[side] or not left[side] for side in values):
        return False
    (decides, low), (_, high) = (
        _decided(settings, variant, {s: [*values[s], *[rest] * left[s]] for s in values})
        for rest in (0.0, 1.0)
    )
    threshold = settings.threshold_for(decides, weak=weak)
    return (low is not None and low >= threshold) or (high is not None and high < threshold)


def _values(
    settings: RowenSettings, variant: Variant, pairs: Sequence[ComparedPair]
) -> dict[Side, list[float]]:
    """Return C of the decided pairs of each side, in the order of their paraphrases."""
    found: dict[Side, list[float]] = {side: [] for side in SIDES[variant]}
    for side, values in found.items():
        known = (pair.compared.value(soft=settings.soft) for pair in _of_side(pairs, side))
        values += [value for value in known if value is not None]
    return found


def _of_side(pairs: Sequence[ComparedPair], side: Side) -> list[ComparedPair]:
    chosen = (pair for pair in pairs if pair.compared.side == side)
    return sorted(chosen, key=lambda pair: pair.compared.index)


def _decided(
    settings: RowenSettings, variant: Variant, values: dict[Side, list[float]]
) -> tuple[Variant, float | None]:
    """Return the variant that decides, and its Z; None where no pair was decided.

    Of two sides, one that decided nothing leaves the decision to the other.
    """
    means: dict[Side, float] = {s: fsum(each) / len(each) for s, each in values.items() if each}
    if not means:
        return variant, None
    if len(means) == 1:
        ((side, z),) = means.items()
        return side, round(z, 9)
    # A tie must be one: 0.7 + 0.1 is 0.7999999999999999 in floating point, and not below 0.8.
    return variant, round(means["cl"] + settings.alpha * means["cm"], 9)


def _scores(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    z: float | None,
    threshold: float,
    *,
    stands_in: bool,
) -> tuple[Score, ...]:
    flagged, alone = z is not None and z < threshold, variant != "hybrid"
    parts = [
        Score(
            name="rowen_again" if side == "cm" and stands_in else f"rowen_{side}",
            value=_decided(settings, side, {side: values})[1],
            threshold=threshold if alone else None,
            flagged=alone and flagged,
            formula=f"rowen.{side}",
            inputs=tuple(values),
            behind=tuple(pair.span for pair in _of_side(pairs, side)),
        )
        for side, values in _values(settings, variant, pairs).items()
    ]
    if alone:
        return tuple(parts)
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
