"""Rowen's decision: the numbers by hand, their bounds, and taking it again from a recorded run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from pipelines.errors import UnreachableError
from pipelines.methods.rowen import Rowen
from pipelines.methods.rowen.decision import RowenPair, conclude, is_settled
from pipelines.methods.rowen.repair import fused
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, Side
from pipelines.types import Passage
from tests.pipelines.methods.bench import Outcome, Shelf
from tests.pipelines.methods.rowen.bench import ENGLISH, EVIDENCE, NOTHING, Speaker, decided, rowen

HYBRID = RowenPlan(variant="hybrid", auto="hybrid", source="en", target="zh", verifier="model")
BROKEN = Shelf(UnreachableError("The index is gone.", remedy="Build it."))
ALL = range(6)


def settings_of(**values: Any) -> RowenSettings:
    return Rowen().settings(values)


def paired(cl: Sequence[float | None] = (), cm: Sequence[float | None] = ()) -> list[RowenPair]:
    given: dict[Side, Sequence[float | None]] = {"cl": cl, "cm": cm}
    return [
        RowenPair(side=side, index=n, hard=hard, soft=None, source="model", span=f"{side}{n}")
        for side, values in given.items()
        for n, hard in enumerate(values)
    ]  # fmt: skip


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
        # Nothing decided by the verifier adds nothing.
        ((0, 0), (None, None), 1.0, 0.0, True),
        # alpha = 0 leaves the verifier out.
        ((0, 1), (1, 1), 0.0, 0.5, False),
        ((None,), (None,), 1.0, None, True),
        ((), (), 1.0, None, True),
    ],
)
def test_the_hybrid_by_hand(cl, cm, alpha, z, retrieve):
    decision = conclude(settings_of(alpha=alpha), HYBRID, paired(cl, cm), max(len(cl), len(cm)))
    assert (decision.z, decision.retrieve) == (z, retrieve)
    assert decision.flagged == (retrieve and z is not None)
    hybrid, _, _, normalised = decision.scores
    assert hybrid.high == 1 + alpha
    assert normalised.value == (None if z is None else z / (1 + alpha))
    assert normalised.threshold == 0.5 / (1 + alpha)


def test_a_tie_survives_floating_point():
    # 7/10 + 1.0 * 1/10 is 0.7999999999999999 in floating point.
    pairs = paired([1] * 7 + [0] * 3, [1] + [0] * 9)
    decision = conclude(settings_of(threshold=0.8), HYBRID, pairs, 10)
    assert (decision.z, decision.retrieve) == (0.8, False)


def test_each_variant_has_its_own_threshold_unless_one_is_set():
    settings = settings_of()
    assert [settings.threshold_for(v) for v in ("hybrid", "cl", "cm")] == [0.5, 0.6, 0.8]
    assert settings_of(threshold=0.0).threshold_for("cm") == 0.0


@pytest.mark.parametrize("seed", range(60))
def test_settled_means_that_nothing_open_can_change_the_decision(seed):
    chance = random.Random(seed)
    planned = chance.randint(1, 3)
    variant = chance.choice(["hybrid", "cl", "cm"])
    settings = settings_of(
        variant=variant,
        alpha=chance.choice([0.0, 0.5, 1.0, 3.0]),
        threshold=chance.choice([0.0, 0.25, 0.5, 0.75, 1.0, 2.5]),
    )
    plan = HYBRID.model_copy(update={"variant": variant})
    known = [
        [chance.choice([0.0, 1.0, None]) for _ in range(chance.randint(0, planned))]
        for _ in plan.sides
    ]

    def complete(rest: Sequence[float | None]) -> list[RowenPair]:
        left = list(rest)
        sides = [[*one, *(left.pop() for _ in range(planned - len(one)))] for one in known]
        return paired(**dict(zip(plan.sides, sides, strict=True)))

    open_pairs = sum(planned - len(one) for one in known)
    outcomes = {
        conclude(settings, plan, complete(rest), planned).retrieve
        for rest in product([0.0, 1.0, None], repeat=open_pairs)
    }
    now = paired(**dict(zip(plan.sides, known, strict=True)))
    if is_settled(settings, plan, now, planned):
        assert outcomes == {conclude(settings, plan, now, planned).retrieve}
    else:
        # Two outcomes; or one that rests on a pair being decided at all.
        decisive = any(value is not None for one in known for value in one)
        assert len(outcomes) == 2 or not decisive


async def hybrid_run() -> Outcome:
    """1/6 across languages, 2/6 with the verifier: 0.33 by 0.4 * 2/6 and so on."""
    return await rowen(Speaker(cl=(0,), cm=(1, 2)), verifier=Speaker(prefix="w"), threshold=0.6)


@pytest.mark.parametrize(
    ("settings", "z", "text"),
    [
        # As it was run: 0.50 is below 0.60.
        ({"threshold": 0.6}, 0.5, "In Hope."),
        # The code's threshold: 0.50 is not below 0.50.
        ({}, 0.5, "In York."),
        # 1/6 + 2.0 * 2/6
        ({"alpha": 2.0, "threshold": 0.8}, 0.833333333, "In York."),
        ({"alpha": 2.0, "threshold": 0.84}, 0.833333333, "In Hope."),
        # Each comparison by itself, against its own threshold: 1/6 < 0.6, 2/6 < 0.8.
        ({"variant": "cl"}, 0.166666667, "In Hope."),
        ({"variant": "cm"}, 0.333333333, "In Hope."),
        ({"variant": "cm", "threshold": 0.3}, 0.333333333, "In York."),
        # By probabilities: (0.9 + 5 * 0.1) / 6 + (2 * 0.9 + 4 * 0.1) / 6
        ({"soft": True, "threshold": 0.6}, 0.6, "In York."),
        ({"early_stop": True, "threshold": 0.6}, 0.5, "In Hope."),
        # Other searches were not made; where none is needed that does not matter.
        ({"queries": "paraphrases"}, 0.5, "In York."),
        ({"passages": 2, "threshold": 0.6}, 0.5, None),
        ({"k": 5}, 0.5, None),
        ({"answers": "single"}, 0.5, None),
        ({"target": "fr"}, 0.5, None),
    ],
)
async def test_deciding_again_without_a_call(settings, z, text):
    decision = decided(await hybrid_run(), **settings)
    assert decision.z == pytest.approx(z)
    assert (decision.answer and decision.answer.text) == text
    assert (decision.diverges_at, decision.reason) == ((None, "") if text else (0, "settings"))


async def test_evidence_that_was_not_looked_up_needs_a_new_run():
    outcome = await rowen(Speaker(cl=ALL, cm=ALL), verifier=Speaker(prefix="w"))
    decision = decided(outcome, threshold=2.5)
    assert (decision.answer, decision.diverges_at) == (None, 0)
    assert decision.reason == "rowen_retrieval"
    assert (decision.z, decision.flagged) == (2.0, True)


async def test_a_comparison_that_was_not_made_needs_a_new_run():
    outcome = await rowen(Speaker(cm=ALL, capabilities=ENGLISH), k=2)
    assert decided(outcome, k=2).variant == "cm"
    decision = decided(outcome, k=2, variant="hybrid")
    assert (decision.answer, decision.reason) == (None, "rowen_side")
    # What is known is told all the same.
    assert (decision.z, decision.z_cl, decision.z_cm) == (None, None, 1.0)


async def test_remarks_follow_the_variant():
    outcome = await rowen(Speaker(cl=ALL, cm=ALL))
    flags = {
        variant: (decided(outcome, variant=variant).answer or outcome.answer).flags
        for variant in ("hybrid", "cl", "cm")
    }
    stand_in = ("verifier_stand_in",)
    assert flags == {"hybrid": stand_in, "cl": (), "cm": stand_in}


async def test_remarks_on_the_search_belong_to_decisions_that_search():
    outcome = await rowen(Speaker(), verifier=Speaker(prefix="w"), shelf=NOTHING)
    live, other = outcome.answer, decided(outcome, threshold=0.0).answer
    assert live.flags == ("no_evidence", "unverified")
    assert other is not None
    assert (other.text, other.flags) == ("In York.", ())


@pytest.mark.parametrize("seed", range(80))
async def test_every_run_decides_again_as_it_did_live(seed):
    chance = random.Random(seed)

    def some() -> list[int]:
        return [n for n in ALL if chance.random() < 0.5]

    model = Speaker(
        cl=some(),
        cm=some(),
        undecided=[(side, n) for side in ("cl", "cm") for n in some() if chance.random() < 0.3],
        soft={("cl", n): round(chance.random(), 3) for n in some()},
    )
    # `rowen` compares the live answer and verdict with those decided again.
    await rowen(
        model,
        verifier=Speaker(prefix="w") if chance.random() < 0.5 else None,
        shelf=chance.choice([EVIDENCE, NOTHING, BROKEN]),
        variant=chance.choice(["auto", "hybrid", "cl", "cm"]),
        k=chance.randint(1, 6),
        alpha=round(chance.uniform(0, 4), 2),
        threshold=chance.choice([None, round(chance.uniform(0, 3), 2)]),
        soft=chance.random() < 0.5,
        early_stop=chance.random() < 0.5,
    )


def test_rankings_are_fused_by_reciprocal_rank():
    def ranking(*ids: str) -> list[Passage]:
        return [
            Passage(id=one, title=one, text=one, source="x", rank=rank)
            for rank, one in enumerate(ids, start=1)
        ]

    # b: 1/62 + 1/61; a: 1/61; c: 1/62; d: 1/63
    found = fused([ranking("a", "b", "d"), [], ranking("b", "c")], 3)
    assert [one.id for one in found] == ["b", "a", "c"]


def test_the_order_of_the_queries_does_not_matter():
    chance = random.Random(3)
    for _ in range(50):
        rankings = [
            [
                Passage(id=one, title=one, text=one, source="x", rank=rank)
                for rank, one in enumerate(chance.sample("abcdefgh", 5), start=1)
            ]
            for _ in range(6)
        ]
        orders = [chance.sample(rankings, 6) for _ in range(5)]
        found = {tuple(one.id for one in fused(order, 5)) for order in orders}
        assert len(found) == 1
