"""Whatever a run looked like, deciding it again with its own settings gives what it gave live."""

import random
from typing import Any

import pytest

from pipelines.methods import METHODS
from pipelines.methods.drad import Drad
from pipelines.methods.drad.path import DradDecision
from pipelines.models.base import GenerationRequest
from tests.pipelines.methods.bench import (
    FixedRecognizer,
    Outcome,
    PieceModel,
    Reply,
    Shelf,
    run_method,
)

WORDS = ("born", "in", "won", "the", "near", "and")
NAMES = ("York", "Hope", "Texas", "Florida")


def random_reply(chance: random.Random, sentences: int) -> Reply:
    reply: list[tuple[str, float, float]] = []
    for _ in range(sentences):
        for _ in range(chance.randint(1, 5)):
            word = chance.choice(WORDS + NAMES)
            reply.append((f" {word}", chance.uniform(0.05, 1.0), chance.uniform(0.0, 4.0)))
        reply.append((".", 0.9, 0.1))
    return reply


async def random_run(seed: int) -> tuple[Outcome, dict[str, Any]]:
    chance = random.Random(seed)

    def answer(request: GenerationRequest) -> Reply:
        return random_reply(chance, chance.randint(1, 3))

    settings = {
        "theta_1": round(chance.uniform(0, 1), 2),
        "theta_2": chance.choice([None, round(chance.uniform(0, 4), 2)]),
        "pooling": chance.choice(["mean", "geometric", "min", "first", "product"]),
        "entropy_pooling": chance.choice(["max", "mean", "first"]),
        "skip_repeats": chance.random() < 0.3,
        "early_stop": chance.random() < 0.4,
        "m": chance.randint(1, 6),
    }
    shelf = Shelf(lambda query: ["A passage."] if len(query) % 3 else [])
    outcome = await run_method(
        Drad(FixedRecognizer(*NAMES)),  # pyright: ignore[reportArgumentType]
        "Is Texas near?",
        PieceModel(answer),
        shelf=shelf,
        **settings,
    )
    return outcome, settings


@pytest.mark.parametrize("seed", range(150))
async def test_drad_decides_as_it_did_live(seed):
    outcome, settings = await random_run(seed)
    decision = outcome.method.decide(outcome.trace, outcome.method.settings(settings))
    assert isinstance(decision, DradDecision)
    assert decision.diverges_at is None
    assert decision.answer == outcome.answer
    assert list(decision.path) == list(range(len(outcome.drafts)))
    live_flags = [verdict == "doubtful" for _, verdict in outcome.judged(0)]
    assert [verdict.doubtful for verdict in decision.verdicts[0]] == live_flags
    assert decision.flagged == any(live_flags)


@pytest.mark.parametrize("seed", range(60))
async def test_other_thresholds_either_follow_the_recorded_path_or_say_they_leave_it(seed):
    outcome, settings = await random_run(seed)
    chance = random.Random(-seed)
    settings |= {"theta_1": chance.uniform(0, 1), "theta_2": None}
    decision = outcome.method.decide(outcome.trace, outcome.method.settings(settings))
    assert isinstance(decision, DradDecision)
    assert (decision.answer is None) == (decision.diverges_at is not None)
    assert list(decision.path) == list(range(len(decision.path)))
    if decision.answer is not None:
        assert decision.answer.text == outcome.drafts[decision.path[-1]]


@pytest.mark.parametrize("name", ["direct", "rag"])
async def test_baselines_decide_as_they_did_live(name):
    outcome = await run_method(
        METHODS[name],
        "Is Texas near?",
        PieceModel(lambda _: "Texas is near."),
        shelf=Shelf(lambda _: ["It is near."]),
    )
    decision = METHODS[name].decide(outcome.trace, METHODS[name].settings())
    assert decision.answer == outcome.answer
    assert not decision.flagged
