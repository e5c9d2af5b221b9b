"""When Rowen retrieves: the consistency scores, and the decision that follows. Pure.

Source: the Rowen paper's section on deciding when to retrieve. C is 1.0 where two answers say the
same and 0.0 where they do not:

    Z_CL = mean_j C(P^j, P_T^j)    Z_CM = mean_j C(P^j, P_V^j)    Z_Hybrid = Z_CL + alpha * Z_CM

Evidence is retrieved when Z is below the threshold. Pairs that could not be decided are left out
of their mean; in the hybrid, a comparison in which no pair could be decided adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from pydantic import Field

from pipelines.methods.base import Decision
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, Side, Variant, sides_of
from pipelines.run.events import Score, Verdict
from pipelines.types import Answer, Frozen

__all__ = [
    "RowenDecision",
    "RowenPair",
    "conclude",
    "is_settled",
    "search_flags",
    "with_answer",
]


class RowenPair(Frozen):
    """Two answers to one paraphrase and whether they say the same.

    `hard` is 1.0, 0.0 or None where undecided; `soft` the probability of True in [0, 1] where the
    model was asked. `source` tells how it was decided: by the "model", by a "judge", by comparing
    "yes_no" answers, or why it was not: "refusal" (which counts as no agreement), and "empty",
    "untranslated" or "failed" (undecided). `span` is where it was judged.
    """

    side: Side
    index: int
    hard: float | None
    soft: float | None
    source: str
    span: str

    def value(self, *, soft: bool) -> float | None:
        """C of this pair, by the hard or the soft operator; None where undecided."""
        return self.soft if soft and self.soft is not None else self.hard


class RowenDecision(Decision):
    """What the recorded pairs lead to.

    `z_cl` and `z_cm` lie in [0, 1], `z` in [0, 1] or, for the hybrid, [0, 1 + alpha]; each is None
    where no pair could be decided. `planned` is the number of paraphrases and so of pairs of each
    side; `agree`, `decided` and `undecided` count the pairs by side, and `unjudged` those
    that were never compared. `scores` begin with the one that settles it; `variant` is None where
    nothing was compared, for a model that does not speak the question's language.
    """

    variant: Variant | None = None
    threshold: float | None = None
    alpha: float = 1.0
    z_cl: float | None = None
    z_cm: float | None = None
    z: float | None = None
    retrieve: bool = False
    verdict: Verdict = "unchecked"
    pairs: tuple[RowenPair, ...] = ()
    planned: int = 0
    agree: dict[Side, int] = Field(default_factory=dict)
    decided: dict[Side, int] = Field(default_factory=dict)
    undecided: dict[Side, int] = Field(default_factory=dict)
    unjudged: dict[Side, int] = Field(default_factory=dict)
    scores: tuple[Score, ...] = ()


def conclude(
    settings: RowenSettings, plan: RowenPlan, pairs: Sequence[RowenPair], planned: int
) -> RowenDecision:
    """The scores and whether to retrieve, for pairs recorded under `plan`.

    A side that the settings want and the run did not make is left without a number, and the whole
    then has none: see `is_settled` and the method's `decide` for what follows.
    """
    variant = plan.auto if settings.variant == "auto" else settings.variant
    threshold = settings.threshold_for(variant)
    sides = sides_of(variant)
    used = tuple(pair for pair in pairs if pair.side in sides)
    z_cl, z_cm = (_mean(_values(used, side, settings)) for side in ("cl", "cm"))
    known = all(side in plan.sides for side in sides)
    z = _combined(z_cl, z_cm, variant, settings.alpha) if known else None
    retrieve = z is None or z < threshold
    scores = _scores(settings, variant, used, (z_cl, z_cm, z))
    return RowenDecision(
        flagged=z is not None and retrieve,
        score=scores[0],
        variant=variant,
        threshold=threshold,
        alpha=settings.alpha,
        z_cl=z_cl,
        z_cm=z_cm,
        z=z,
        retrieve=retrieve,
        verdict="unchecked" if z is None else "doubtful" if retrieve else "confident",
        pairs=used,
        planned=planned,
        agree={side: sum(p.hard == 1.0 for p in used if p.side == side) for side in sides},
        decided={side: sum(p.hard is not None for p in used if p.side == side) for side in sides},
        undecided={side: sum(p.hard is None for p in used if p.side == side) for side in sides},
        unjudged={side: planned - sum(p.side == side for p in used) for side in sides},
        scores=scores,
    )


def is_settled(
    settings: RowenSettings, plan: RowenPlan, pairs: Sequence[RowenPair], planned: int
) -> bool:
    """Whether no outcome of the pairs still open can change the decision.

    Each may yet be anything in [0, 1], or stay undecided, which moves the mean less than 0 or 1.
    """
    variant = plan.auto if settings.variant == "auto" else settings.variant
    threshold = settings.threshold_for(variant)
    values = {side: _values(pairs, side, settings) for side in sides_of(variant)}
    judged = {side: sum(pair.side == side for pair in pairs) for side in values}
    if all(judged[side] == planned for side in values):
        return True
    least, most = (
        {side: _extreme(values[side], planned - judged[side], rest) for side in values}
        for rest in (0.0, 1.0)
    )
    low = _combined(least.get("cl"), least.get("cm"), variant, settings.alpha)
    high = _combined(most.get("cl"), most.get("cm"), variant, settings.alpha)
    if high is None or high < threshold:
        return True
    # Without a single decided pair there is no Z, and evidence is retrieved whatever the bounds.
    return low is not None and low >= threshold and any(values.values())


def search_flags(outcomes: Sequence[tuple[bool, int]]) -> tuple[str, ...]:
    """Remarks on the searches, each given as (failed, passages found)."""
    failed = any(one for one, _ in outcomes)
    if any(found for _, found in outcomes):
        return ("search_incomplete",) if failed else ()
    return ("search_failed" if failed else "no_evidence", "unverified")


def with_answer(
    decision: RowenDecision,
    plan: RowenPlan,
    settings: RowenSettings,
    original: str,
    repaired: str | None = None,
    searched: Sequence[tuple[bool, int]] = (),
) -> RowenDecision:
    """The decision with the answer it leads to: the original, or what was repaired from evidence.

    `searched` are the searches as in `search_flags`, where evidence was retrieved.
    """
    flags = list(_check_flags(decision, plan, settings))
    if decision.retrieve:
        flags += search_flags(searched)
        if repaired is None and any(found for _, found in searched):
            flags.append("repair_empty")
    text = original if repaired is None or not decision.retrieve else repaired
    answer = Answer(text=text, original=original, short=text, flags=tuple(flags))
    return decision.model_copy(update={"answer": answer})


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _check_flags(decision: RowenDecision, plan: RowenPlan, settings: RowenSettings) -> list[str]:
    flags = []
    if "cm" in decision.decided and plan.verifier != "model":
        flags.append(f"verifier_{plan.verifier}")
    if not decision.planned:
        flags.append("no_paraphrases")
    elif decision.planned < settings.k:
        flags.append("fewer_paraphrases")
    if any(pair.source == "failed" for pair in decision.pairs):
        flags.append("pairs_failed")
    by_main = any(pair.source == "model" for pair in decision.pairs)
    if by_main and settings.checked_by == "judge":
        flags.append("no_judge")
    if by_main and plan.weak:
        flags.append("weak_judge")
    if decision.verdict == "unchecked":
        flags.append("not_checked")
    return flags


def _values(pairs: Sequence[RowenPair], side: Side, settings: RowenSettings) -> list[float]:
    values = (pair.value(soft=settings.soft) for pair in _ordered(pairs, side))
    return [value for value in values if value is not None]


def _ordered(pairs: Sequence[RowenPair], side: Side) -> list[RowenPair]:
    return sorted((pair for pair in pairs if pair.side == side), key=lambda pair: pair.index)


def _combined(
    z_cl: float | None, z_cm: float | None, variant: Variant, alpha: float
) -> float | None:
    if variant != "hybrid":
        return _rounded(z_cl if variant == "cl" else z_cm)
    if z_cl is None and z_cm is None:
        return None
    return _rounded((z_cl or 0.0) + alpha * (z_cm or 0.0))


def _rounded(value: float | None) -> float | None:
    # A tie must be one: 0.7 + 0.1 is 0.7999999999999999 in floating point, and not below 0.8.
    return None if value is None else round(value, 9)


def _extreme(values: Sequence[float], open_pairs: int, rest: float) -> float:
    """The mean if every open pair came out as `rest`."""
    return fsum((*values, rest * open_pairs)) / max(1, len(values) + open_pairs)


def _scores(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[RowenPair],
    zs: tuple[float | None, float | None, float | None],
) -> tuple[Score, ...]:
    z_cl, z_cm, z = zs
    threshold = settings.threshold_for(variant)
    behind = tuple(pair.span for pair in pairs)

    def side(name: Side, value: float | None, *, alone: bool) -> Score:
        return Score(
            name=f"rowen_{name}",
            value=value,
            threshold=threshold if alone else None,
            flagged=alone and value is not None and value < threshold,
            formula=f"rowen.{name}",
            inputs=tuple(_values(pairs, name, settings)),
            behind=tuple(pair.span for pair in _ordered(pairs, name)),
        )

    if variant != "hybrid":
        return (side(variant, z, alone=True),)
    flagged = z is not None and z < threshold
    hybrid = Score(
        name="rowen_hybrid",
        value=z,
        threshold=threshold,
        flagged=flagged,
        high=1.0 + settings.alpha,
        formula="rowen.hybrid",
        inputs=(*(part for part in (z_cl, z_cm) if part is not None), settings.alpha),
        behind=behind,
    )
    normalised = Score(
        name="rowen_normalised",
        value=None if z is None else z / (1.0 + settings.alpha),
        threshold=threshold / (1.0 + settings.alpha),
        flagged=flagged,
        formula="rowen.normalised",
        inputs=() if z is None else (z, settings.alpha),
        behind=behind,
    )
    return (hybrid, side("cl", z_cl, alone=False), side("cm", z_cm, alone=False), normalised)
