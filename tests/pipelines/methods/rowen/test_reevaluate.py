"""A recorded run of Rowen re-evaluated: what it comes to is what a live run would come to."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pipelines.errors import UnreachableError
from pipelines.run.findings import RowenVerdict
from tests.scripted.bench import Outcome, Shelf
from tests.scripted.rowen import (
    ENGLISH,
    EVIDENCE,
    NOTHING,
    Cosines,
    Speaker,
    answer_verdict,
    numbers,
    pairs,
    reevaluated,
    rowen,
    z_of,
)
from tests.worlds import worlds

BROKEN = Shelf(UnreachableError("The index is gone.", remedy="Build it."))
ALL = range(6)


async def hybrid_run() -> Outcome:
    """1/6 across languages, 2/6 with the verifier: Z = 0.50, below 0.6."""
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
        # The first three alone: 1/3 + 2/3; the first alone: 1/1 + 0/1.
        ({"compared": 3}, 1.0, "In York."),
        ({"compared": 1, "threshold": 2.0}, 1.0, "In Hope."),
        # By probabilities: (0.9 + 5 * 0.1) / 6 + (2 * 0.9 + 4 * 0.1) / 6
        ({"soft": True, "threshold": 0.6}, 0.6, "In York."),
        # After 3 of 6, no more than 3/6 + 1/6 ... can be reached: the prefix decides as all do.
        ({"early_stop": True, "threshold": 2.0}, 1.0, "In Hope."),
        # Other searches were not made; where none is needed that does not matter.
        ({"queries": "paraphrases"}, 0.5, "In York."),
        ({"passages": 2}, 0.5, "In York."),
    ],
)
async def test_reevaluating_without_a_call(settings, z, text):
    again = reevaluated(await hybrid_run(), **settings)
    assert z_of(again) == pytest.approx(z)
    assert again.diverges_at is None
    assert again.answer is not None
    assert again.answer.text == text


@pytest.mark.parametrize(
    "settings",
    [
        {"passages": 2, "threshold": 0.6},
        {"queries": "paraphrases", "threshold": 0.6},
        {"k": 5},
        {"answers": "single"},
        {"target": "fr"},
    ],
)
async def test_what_was_not_recorded_needs_a_new_run(settings):
    again = reevaluated(await hybrid_run(), **settings)
    # The first answer is known all the same.
    assert (again.answer, again.diverges_at) == (None, 1)


async def test_evidence_that_was_not_retrieved_needs_a_new_run():
    outcome = await rowen(Speaker(cl=ALL, cm=ALL), verifier=Speaker(prefix="w"))
    again = reevaluated(outcome, threshold=2.5)
    assert (again.answer, again.diverges_at) == (None, 1)
    # What is known is shown all the same.
    assert answer_verdict(again).detail == RowenVerdict(variant="hybrid", retrieve=True)
    assert numbers(again)[0] == ("rowen_hybrid", 2.0, 2.5)


async def test_a_comparison_that_was_not_made_needs_a_new_run():
    outcome = await rowen(Speaker(cm=ALL, capabilities=ENGLISH), k=2)
    assert numbers(reevaluated(outcome, k=2))[0][0] == "rowen_again"
    # The model lacks the other language, so that this is refused as it would be in a live run.
    refused = reevaluated(outcome, k=2, variant="hybrid")
    assert (refused.answer, refused.diverges_at) == (None, None)
    verified = await rowen(Speaker(cl=ALL, cm=ALL), verifier=Speaker(prefix="w"), variant="cm")
    assert reevaluated(verified, variant="hybrid").diverges_at == 1


async def test_remarks_follow_the_variant():
    outcome = await rowen(Speaker(cl=ALL, cm=ALL))
    flags = {}
    for variant in ("hybrid", "cl", "cm"):
        answer = reevaluated(outcome, variant=variant).answer
        assert answer is not None
        flags[variant] = answer.flags
    stand_in = ("verifier_stand_in",)
    assert flags == {"hybrid": stand_in, "cl": (), "cm": stand_in}


async def test_remarks_on_the_search_belong_to_runs_that_search():
    outcome = await rowen(Speaker(), verifier=Speaker(prefix="w"), shelf=NOTHING)
    other = reevaluated(outcome, threshold=0.0).answer
    assert outcome.answer.flags == ("no_evidence", "unverified")
    assert other is not None
    assert (other.text, other.flags) == ("In York.", ())


class World:
    """Random models, the same whenever they are asked."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cl, self.cm = self.some(), self.some()
        self.undecided = [
            (side, n) for side in ("cl", "cm") for n in self.some() if self.chance.random() < 0.3
        ]
        if self.chance.random() < 0.2:
            side = self.chance.choice(["cl", "cm"])
            self.undecided += [(side, n) for n in ALL]
        self.soft = {("cl", n): round(self.chance.random(), 3) for n in self.some()}
        self.verifier = self.chance.random() < 0.5
        self.shelf = self.chance.choice([EVIDENCE, NOTHING, BROKEN])
        self.cosines = (
            Cosines({n: self.chance.uniform(0.3, 1) for n in ALL})
            if self.chance.random() < 0.5
            else None
        )

    def some(self) -> list[int]:
        return [n for n in ALL if self.chance.random() < 0.5]

    def settings(self, *, replayable: bool) -> dict[str, Any]:
        values = {
            "variant": self.chance.choice(["auto", "hybrid", "cl", "cm"]),
            "alpha": round(self.chance.uniform(0, 4), 2),
            "threshold": self.chance.choice([None, round(self.chance.uniform(0, 3), 2)]),
            "soft": self.chance.random() < 0.5,
            "compared": self.chance.randint(1, 20),
        }
        if not replayable:
            values |= {
                "k": self.chance.randint(3, 6),
                "early_stop": self.chance.random() < 0.5,
                "answers": self.chance.choice(["reasoned", "single"]),
                "queries": self.chance.choice(["rewritten", "paraphrases"]),
                "min_similarity": self.chance.choice([0.0, 0.5, 0.9]),
            }
        return {name: one for name, one in values.items() if self.chance.random() < 0.6}

    async def run(self, settings: dict[str, Any]) -> Outcome:
        # `rowen` compares every run with what its own settings lead to again.
        return await rowen(
            Speaker(cl=self.cl, cm=self.cm, undecided=self.undecided, soft=self.soft),
            verifier=Speaker(prefix="w") if self.verifier else None,
            shelf=self.shelf,
            similarity=self.cosines,
            **settings,
        )


@pytest.mark.parametrize("seed", worlds(100))
async def test_other_settings_lead_where_a_live_run_leads_or_leave_the_record(seed):
    world = World(seed)
    # What `rowen` sets where there is no verifier.
    usual = {} if world.verifier else {"variant": "hybrid"}
    first = usual | world.settings(replayable=False)
    second = first | world.settings(replayable=seed % 2 == 0)
    recorded = await world.run(first)
    again, live = reevaluated(recorded, **second), await world.run(second)
    if again.diverges_at is not None:
        assert again.answer is None
        return
    assert again.answer == live.answer
    assert numbers(again) == numbers(live)
    assert answer_verdict(again).detail == answer_verdict(live).detail
    assert pairs(again) == pairs(live)
