"""A recorded run of HAARAG decided again: its own settings, other thresholds, other filters."""

import random
from typing import Any

import pytest

from pipelines.methods.haarag import HAARAG_DECIDABLE, HaaragSettings
from pipelines.methods.haarag.path import walk
from pipelines.methods.haarag.record import Record
from pipelines.run.view import fold
from tests.pipelines.methods.bench import Outcome
from tests.pipelines.methods.haarag.bench import QUESTION, Chunks, agrees, decided, haarag, judged

LAW, HOPE, TOWN = "B: Clinton studied law.", "A: Clinton was born in Hope.", "D: Hope is a town."
YORK, ANSWER = "Clinton was born in York.", "He was born in Hope."
REWORDED = "His birthplace?"
FOUND = {QUESTION: [LAW, TOWN], REWORDED: [TOWN], YORK: [HOPE]}

# Round 1: C_r = 0.4 (k = 1). Round 2, reworded: TOWN 0.7. Draft 0 on TOWN: C_a = 0.3.
# Looking for YORK: HOPE 0.9. Draft 1 on HOPE: C_a = 0.8.
TABLE = {
    (QUESTION, LAW): 0.4,
    (QUESTION, TOWN): 0.2,
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
    agrees(outcome, **SETTINGS)
    return outcome


async def test_a_lower_tau_a_ends_with_the_first_answer():
    decision = decided(await two_iterations(), **SETTINGS | {"tau_a": 0.3})
    assert decision.answer is not None
    assert (decision.answer.text, decision.answer.flags) == (YORK, ())
    assert (decision.flagged, decision.path, decision.stopped) == (False, (0,), "holds")
    assert [draft.used for draft in decision.drafts] == [True, False]
    assert decision.score is not None
    assert (decision.score.value, decision.score.threshold) == (0.3, 0.3)


async def test_a_higher_tau_a_would_have_gone_on():
    decision = decided(await two_iterations(), **SETTINGS | {"tau_a": 0.85})
    assert (decision.answer, decision.diverges_at, decision.reason) == (None, 1, "haarag_refining")
    assert decision.path == (0, 1)
    assert [draft.status for draft in decision.drafts] == ["doubtful", "doubtful"]


async def test_a_lower_tau_r_would_have_written_from_another_context():
    decision = decided(await two_iterations(), **SETTINGS | {"tau_r": 0.4})
    assert (decision.answer, decision.diverges_at, decision.reason) == (None, 0, "haarag_context")
    assert [each.used for each in decision.rounds] == [True, False, False]


async def test_a_higher_tau_r_that_could_not_widen_further_changes_nothing():
    outcome = await two_iterations()
    decision = decided(outcome, **SETTINGS | {"tau_r": 0.99})
    assert decision.answer == outcome.answer


async def test_a_higher_tau_r_would_have_searched_more():
    outcome = await haarag([YORK], FOUND, TABLE, **SETTINGS | {"tau_r": 0.3, "max_iterations": 1})
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    decision = decided(outcome, **settings)
    assert (decision.diverges_at, decision.reason, decision.path) == (0, "haarag_widening", ())


async def test_a_search_that_was_widened_for_nothing_need_not_have_been():
    table = TABLE | {(REWORDED, TOWN): 0.1}
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    outcome = await haarag([REWORDED, YORK], FOUND, table, **settings)
    # LAW stays the best chunk: with a lower tau_r the same text comes of one round.
    decision = decided(outcome, **settings | {"tau_r": 0.4})
    assert decision.answer == outcome.answer
    assert [each.used for each in decision.rounds] == [True, False]
    refining = SETTINGS | {"tau_r": 0.4}
    outcome = await haarag([REWORDED, YORK, ANSWER], FOUND, table, **SETTINGS)
    # What it then refines by was found by more queries than there would have been.
    assert decided(outcome, **refining).reason == "haarag_widening"


async def test_a_filter_that_keeps_the_same_chunks_keeps_the_answer():
    outcome = await haarag([ANSWER], {QUESTION: [HOPE, LAW, TOWN]}, {
        (QUESTION, HOPE): 0.8, (QUESTION, LAW): 0.5, (QUESTION, TOWN): 0.2, (ANSWER, HOPE): 0.9,
        (ANSWER, LAW): 0.9, (HOPE, LAW): 0.9,
    }, tau_r=0.5, tau_a=0.5)  # fmt: skip
    taus = {"tau_r": 0.5, "tau_a": 0.5}
    same = decided(outcome, **taus, min_similarity=0.3, duplicate_similarity=0.91)
    assert same.answer == outcome.answer
    # LAW is below 0.7 times 0.8, or too much like HOPE.
    for filters in ({"min_similarity": 0.7}, {"duplicate_similarity": 0.9}):
        other = decided(outcome, **taus, **filters)
        assert (other.diverges_at, other.reason) == (0, "haarag_context")
    assert decided(outcome, **taus, min_similarity=0.7).rounds[0].retrieval.confidence == 0.8
    # C_r falls to (0.8 + 0.5 + 0.2) / 3 when nothing is dropped.
    wide = decided(outcome, **taus, min_similarity=0.0)
    assert wide.rounds[0].retrieval.confidence == pytest.approx(0.5)


@pytest.mark.parametrize("field", ["k", "k_limit", "forms", "max_tokens", "max_iterations"])
async def test_what_changes_the_calls_needs_a_new_run(field: str):
    outcome = await two_iterations()
    other = getattr(HaaragSettings.model_validate(SETTINGS), field) + 1
    decision = decided(outcome, **SETTINGS | {field: other})
    assert (decision.diverges_at, decision.reason) == (0, "settings")
    assert field not in HAARAG_DECIDABLE


TEXTS = [f"{letter}: text {number}." for number, letter in enumerate("ABCDEFGH")]
DRAFTS = ["One.", "Two. Three.", "The context does not answer this question.", "", "Four. One."]


async def random_run(seed: int, **changes: Any) -> tuple[Outcome, dict[str, Any]]:
    """What the model writes depends on the iteration alone, so that runs can be compared."""
    chance = random.Random(seed)
    drafts = [chance.choice(DRAFTS) for _ in range(3)]
    parts = ["One.", "Two.", "Three.", "Four.", *DRAFTS]
    everything = [QUESTION, REWORDED, *TEXTS, *parts]
    table = {(one, two): round(chance.uniform(-0.2, 1.0), 2) for one in everything for two in TEXTS}
    found = {
        query: chance.sample(TEXTS, chance.randint(0, 6)) for query in (QUESTION, REWORDED, *parts)
    }
    settings = {
        "tau_r": round(chance.uniform(0, 1), 2),
        "tau_a": round(chance.uniform(0, 1), 2),
        "k": chance.randint(1, 3),
        "k_limit": chance.choice([1, 4, 8]),
        "max_iterations": chance.randint(1, 3),
        "rephrase": chance.choice(["off", "widen", "always"]),
        "key_terms": chance.random() < 0.3,
        "min_similarity": chance.choice([0.0, 0.5, 0.9]),
        "duplicate_similarity": chance.choice([0.6, 0.95]),
    } | changes
    replies = [
        {"text": REWORDED, "contains": "Somebody searches"},
        *({"text": text, "contains": "Context:", "times": 1} for text in drafts),
    ]
    return await haarag(replies, Chunks(found), table, **settings), settings


@pytest.mark.parametrize("seed", range(120))
async def test_a_run_is_decided_as_it_was_live(seed: int):
    outcome, settings = await random_run(seed)
    decision = agrees(outcome, **settings)
    live = [event.scores[0].value for event in judged(outcome, "alignment")]
    assert [draft.alignment.value for draft in decision.drafts] == live


@pytest.mark.parametrize("seed", range(120))
async def test_other_settings_give_what_a_run_with_them_gives_or_say_they_leave_it(seed: int):
    outcome, settings = await random_run(seed)
    chance = random.Random(-seed)
    changes: dict[str, Any] = {
        "tau_r": round(chance.uniform(0, 1), 2),
        "tau_a": round(chance.uniform(0, 1), 2),
        "min_similarity": chance.choice([0.0, 0.5, 0.9]),
        "duplicate_similarity": chance.choice([0.6, 0.95]),
    }
    decision = decided(outcome, **settings | changes)
    assert bool(decision.reason) == (decision.diverges_at is not None) == (decision.answer is None)
    if decision.answer is not None:
        anew, _ = await random_run(seed, **changes)
        flags = tuple(flag for flag in anew.answer.flags if flag != "empty")
        assert decision.answer == anew.answer.model_copy(update={"flags": flags})
        assert decision.score == judged(anew, "answer")[0].scores[0]


@pytest.mark.parametrize("seed", range(10))
async def test_a_run_under_way_is_decided_as_far_as_it_has_come(seed: int):
    outcome, values = await random_run(seed)
    settings = HaaragSettings.model_validate(values)
    events = outcome.trace.events
    partial = walk(Record(), settings, settings, "en")
    for count in range(len(events) + 1):
        view = fold(events[:count])
        record = Record.of_view(view.methods["haarag"]) if "haarag" in view.methods else Record()
        partial = walk(record, settings, settings, "en")
        assert partial.diverges_at is None
        if count < len(events) - 2:
            assert partial.answer is None or partial.answer.text in outcome.drafts
    assert partial.answer is not None
