"""A recorded run of HAARAG with other settings is what a live run with them gives, or leaves it."""

import random
from hashlib import sha256
from typing import Any

import pytest

from pipelines.base import Generation
from pipelines.models.base import Claim, GenerationRequest, Watcher
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.scripted import ScriptedModel
from pipelines.run.calls import request_key
from tests.scripted.bench import ClaimReader, Outcome
from tests.scripted.haarag import (
    QUESTION,
    WRITES,
    Chunks,
    again,
    haarag,
    judged,
    stopped,
    told,
)
from tests.worlds import worlds

LAW, HOPE, TOWN = "B: Clinton studied law.", "A: Clinton was born in Hope.", "D: Hope is a town."
YORK, ANSWER = "Clinton was born in York.", "He was born in Hope."
REWORDED = "Where is his birthplace?"
FOUND = {QUESTION: [LAW, TOWN], REWORDED: [TOWN], YORK: [HOPE]}

# Round 1: C_r = 0.4 (k = 1). Round 2, wider: TOWN 0.6. Draft 0 on TOWN: C_a = 0.3.
# Looking for YORK: HOPE 0.9. Draft 1 on HOPE: C_a = 0.8.
TABLE = {
    (QUESTION, LAW): 0.4,
    (QUESTION, TOWN): 0.6,
    (REWORDED, TOWN): 0.7,
    (YORK, TOWN): 0.3,
    (YORK, HOPE): 0.9,
    (ANSWER, HOPE): 0.8,
}
SETTINGS: dict[str, Any] = {"k": 1, "k_limit": 2, "tau_r": 0.5, "tau_a": 0.6}


async def two_iterations() -> Outcome:
    outcome = await haarag([REWORDED, YORK, ANSWER], FOUND, TABLE, **SETTINGS)
    assert outcome.steps.count("retrieve") == 2
    assert outcome.drafts == [YORK, ANSWER]
    assert stopped(outcome) == ("aligned", 1)
    return outcome


async def test_a_lower_tau_a_ends_with_the_first_answer():
    found = again(await two_iterations(), **SETTINGS | {"tau_a": 0.3})
    assert found.diverges_at is None
    assert found.answer is not None
    assert (found.answer.text, found.answer.flags) == (YORK, ())
    assert [draft.after for draft in found.method.drafts] == [YORK]
    (answer,) = [event for event in found.method.judged if event.what == "answer"]
    assert (answer.verdict, answer.scores[0].value, answer.scores[0].threshold) == (
        "aligned",
        0.3,
        0.3,
    )


async def test_a_higher_tau_a_would_have_written_a_third_answer():
    found = again(await two_iterations(), **SETTINGS | {"tau_a": 0.85})
    assert (found.answer, found.diverges_at) == (None, 2)
    verdicts = [event.verdict for event in found.method.judged if event.what == "alignment"]
    assert verdicts == ["not_aligned", "not_aligned"]


async def test_another_tau_r_would_have_written_from_another_context():
    found = again(await two_iterations(), **SETTINGS | {"tau_r": 0.4})
    assert (found.answer, found.diverges_at) == (None, 0)
    assert len([event for event in found.method.judged if event.what == "retrieval"]) == 1


async def test_a_higher_tau_r_that_could_not_widen_further_changes_the_remarks_alone():
    outcome = await two_iterations()
    found = again(outcome, **SETTINGS | {"tau_r": 0.99})
    assert found.answer == outcome.answer.model_copy(update={"flags": ("low_retrieval",)})


async def test_a_filter_that_keeps_the_same_chunks_keeps_the_answer():
    table = {
        (QUESTION, HOPE): 0.8, (QUESTION, LAW): 0.5, (QUESTION, TOWN): 0.2, (ANSWER, HOPE): 0.9,
        (ANSWER, LAW): 0.9, (HOPE, LAW): 0.9,
    }  # fmt: skip
    taus: dict[str, Any] = {"tau_r": 0.5, "tau_a": 0.5}
    outcome = await haarag([ANSWER], {QUESTION: [HOPE, LAW, TOWN]}, table, **taus)
    same = again(outcome, **taus, min_similarity=0.3, duplicate_similarity=0.91)
    assert same.answer == outcome.answer
    # LAW is below 0.7 times 0.8, or too much like HOPE.
    filters: dict[str, Any]
    for filters in ({"min_similarity": 0.7}, {"duplicate_similarity": 0.9}):
        other = again(outcome, **taus, **filters)
        assert other.diverges_at == 0
        # C_r is taken before the filter: (0.8 + 0.5 + 0.2) / 3 whatever it drops.
        retrieval = other.method.judged[0]
        assert retrieval.scores[0].value == pytest.approx(0.5)


TEXTS = [f"{letter}: text {number}." for number, letter in enumerate("ABCDEFGH")]
DRAFTS = [
    "One.",
    "Two. Three.",
    "The context does not answer this question.",
    "The context does not answer this question. Two.",
    "",
    "Four. One.",
]
PARTS = ["One.", "Two.", "Three.", "Four.", *DRAFTS]


def drawn(*what: Any) -> random.Random:
    return random.Random(sha256(repr(what).encode()).digest())


class Writer(ScriptedModel):
    """Writes at random, the same request always alike."""

    def __init__(self, seed: int) -> None:
        super().__init__((), capabilities=WRITES)
        self.seed = seed

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        asked = request.messages[-1].content
        reply = drawn(self.seed, request_key(request)).choice(DRAFTS)
        return (Generation(text=REWORDED if "Somebody searches" in asked else reply),)


def reading(claim: Claim) -> ClaimVerdict:
    supported = drawn(claim.model_dump_json()).uniform(0, 1)
    return ClaimVerdict(supported, 0.0, 1 - supported)


def settings_of(chance: random.Random) -> dict[str, Any]:
    """What a page offers to change on a recorded run."""
    return {
        "tau_r": round(chance.uniform(0, 0.8), 2),
        "tau_a": round(chance.uniform(0, 1), 2),
        "min_similarity": chance.choice([0.0, 0.5, 0.9]),
        "duplicate_similarity": chance.choice([0.6, 0.95]),
        "entailment_decides": chance.random() < 0.5,
    }


async def random_run(seed: int, **changes: Any) -> tuple[Outcome, dict[str, Any]]:
    chance = random.Random(seed)
    everything = [QUESTION, REWORDED, *TEXTS, *PARTS]
    table = {(one, two): round(chance.uniform(-0.2, 1.0), 2) for one in everything for two in TEXTS}
    found = {
        query: chance.sample(TEXTS, chance.randint(0, 6)) for query in (QUESTION, REWORDED, *PARTS)
    }
    settings = {
        **settings_of(chance),
        "k": chance.randint(1, 3),
        "k_limit": chance.choice([1, 4, 8]),
        "max_iterations": chance.randint(1, 4),
        "rephrase": chance.choice(["off", "widen", "always"]),
        "key_terms": chance.random() < 0.3,
    } | changes
    models = {"judge_1": ClaimReader(reading)}
    outcome = await haarag(Writer(seed), Chunks(found), table, models=models, **settings)
    return outcome, settings


@pytest.mark.parametrize("seed", worlds(60))
async def test_a_record_holds_all_that_its_run_rests_on(seed: int):
    outcome, settings = await random_run(seed)
    found = again(outcome, **settings)
    assert found.diverges_at is None
    assert found.answer == outcome.final
    assert sorted(map(repr, told(found))) == sorted(map(repr, told(outcome)))


@pytest.mark.parametrize("seed", worlds(120))
async def test_other_settings_give_what_a_live_run_with_them_gives_or_leave_the_record(seed: int):
    outcome, settings = await random_run(seed)
    changes = settings_of(random.Random(-seed))
    if seed % 3 == 0:
        changes["max_iterations"] = seed % 4 + 1
    found = again(outcome, **settings | changes)
    live, _ = await random_run(seed, **changes)
    if found.diverges_at is None:
        assert found.answer == live.final
        assert sorted(map(repr, told(found))) == sorted(map(repr, told(live)))
    else:
        drafts = [draft.after for draft in found.method.drafts]
        assert drafts == live.drafts[: found.diverges_at]
        assert len(drafts) == found.diverges_at


async def test_random_runs_go_every_way():
    ends = [stopped((await random_run(seed))[0])[0] for seed in range(60)]
    assert set(ends) == {"aligned", "iterations", "nothing_new", "nothing_found"}
    refined = [(await random_run(seed))[0] for seed in range(20)]
    assert any(len(judged(one, "alignment")) > 2 for one in refined)
