"""Rowen's decision: the numbers by hand, and when they are certain."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from pipelines.methods.rowen import Rowen, RowenSettings
from pipelines.methods.rowen.check import ComparedPair, conclude, is_certain
from pipelines.run.findings import SIDES, PairCompared, Side, Variant
from tests.worlds import worlds


def settings_of(**values: Any) -> RowenSettings:
    return Rowen().settings(values)


def paired(cl: Sequence[float | None] = (), cm: Sequence[float | None] = ()) -> list[ComparedPair]:
    given: dict[Side, Sequence[float | None]] = {"cl": cl, "cm": cm}
    return [
        ComparedPair(
            PairCompared(side=side, index=n, hard=hard, soft=None, source="model"), f"{side}{n}"
        )
        for side, values in given.items()
        for n, hard in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("cl", "cm", "alpha", "z", "retrieve"),
    [
        # 1/2 + 1.0 * 1/2
        ((1, 0), (1, 0), 1.0, 1.0, False),
        # 0/2 + 0.5 * 1/2
        ((0, 0), (1, 0), 0.5, 0.25, True),
        # 1/4 + 1.0 * 1/4 lies on the threshold.
        ((1, 0, 0, 0), (0, 1, 0, 0), 1.0, 0.5, False),
        # The undecided are left out: 1/1 + 0/2.
        ((1, None), (0, 0), 1.0, 1.0, False),
        # alpha = 0 leaves the verifier out.
        ((0, 1), (1, 1), 0.0, 0.5, False),
        ((None,), (None,), 1.0, None, True),
    ],
)
def test_the_hybrid_by_hand(cl, cm, alpha, z, retrieve):
    decision = conclude(settings_of(alpha=alpha), "hybrid", paired(cl, cm))
    hybrid, _, _, normalised = decision.scores
    assert (decision.variant, hybrid.value, decision.retrieve) == ("hybrid", z, retrieve)
    assert hybrid.flagged == (retrieve and z is not None)
    assert hybrid.high == 1 + alpha
    assert normalised.value == (None if z is None else z / (1 + alpha))
    assert normalised.threshold == 0.5 / (1 + alpha)


@pytest.mark.parametrize(
    ("cl", "cm", "variant", "z", "threshold", "retrieve"),
    [
        ((1, 0), (None, None), "cl", 0.5, 0.6, True),
        ((1, 1, 0), (None, None, None), "cl", 0.666666667, 0.6, False),
        # Not alpha * 1.0 = 3.0: there is nothing to weigh it against.
        ((None, None), (1, 1), "cm", 1.0, 0.8, False),
        ((None, None), (1, 0), "cm", 0.5, 0.8, True),
    ],
)
def test_one_side_decides_alone_where_the_other_decided_nothing(
    cl, cm, variant, z, threshold, retrieve
):
    decision = conclude(settings_of(alpha=3.0), "hybrid", paired(cl, cm))
    (score,) = decision.scores
    assert (decision.variant, decision.retrieve) == (variant, retrieve)
    assert (score.name, score.value, score.threshold) == (f"rowen_{variant}", z, threshold)


def test_without_a_pair_there_is_no_number_and_evidence_is_retrieved():
    decision = conclude(settings_of(), "hybrid", [])
    assert (decision.scores, decision.retrieve, decision.verdict) == ((), True, "unchecked")


def test_a_tie_survives_floating_point():
    # 7/10 + 1.0 * 1/10 is 0.7999999999999999 in floating point.
    pairs = paired([1] * 7 + [0] * 3, [1] + [0] * 9)
    decision = conclude(settings_of(threshold=0.8), "hybrid", pairs)
    assert (decision.scores[0].value, decision.retrieve) == (0.8, False)


def test_each_variant_has_its_own_threshold_unless_one_is_set():
    settings = settings_of()
    variants: tuple[Variant, ...] = ("hybrid", "cl", "cm")
    assert [settings.threshold_for(v, weak=False) for v in variants] == [0.5, 0.6, 0.8]
    assert [settings.threshold_for(v, weak=True) for v in variants] == [1.0, 0.6, 0.8]
    assert settings_of(threshold=0.0).threshold_for("hybrid", weak=True) == 0.0


@pytest.mark.parametrize("seed", worlds(120))
def test_certain_means_that_nothing_left_can_change_the_decision(seed):
    chance = random.Random(seed)
    planned = chance.randint(1, 3)
    variant: Variant = chance.choice(["hybrid", "cl", "cm"])
    settings = settings_of(
        alpha=chance.choice([0.0, 0.5, 1.0, 3.0]),
        threshold=chance.choice([None, 0.0, 0.25, 0.5, 0.75, 1.0, 2.5]),
    )
    sides = SIDES[variant]
    known = [
        [chance.choice([0.0, 1.0, None]) for _ in range(chance.randint(0, planned))] for _ in sides
    ]

    def complete(rest: Sequence[float | None]) -> list[ComparedPair]:
        left = list(rest)
        filled = [[*one, *(left.pop() for _ in range(planned - len(one)))] for one in known]
        return paired(**dict(zip(sides, filled, strict=True)))

    missing = sum(planned - len(one) for one in known)
    outcomes = {
        (decision.variant, decision.retrieve)
        for rest in product([0.0, 1.0, None], repeat=missing)
        for decision in [conclude(settings, variant, complete(rest))]
    }
    now = paired(**dict(zip(sides, known, strict=True)))
    if is_certain(settings, variant, now, planned):
        decision = conclude(settings, variant, now)
        assert outcomes == {(decision.variant, decision.retrieve)}
    else:
        # Two outcomes; or one that rests on a side of which nothing is decided yet.
        open_sides = any(
            len(one) < planned and not any(value is not None for value in one) for one in known
        )
        assert len(outcomes) > 1 or open_sides
