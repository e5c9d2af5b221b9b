"""Checks that rest on a judge instead of the main model: who is asked, what, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.base import Language
from pipelines.methods.ever import Ever
from pipelines.models.base import Capabilities, Model
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged
from tests.scripted.bench import FULL, ClaimReader, Outcome, run_method
from tests.scripted.ever import (
    FOUND,
    QUESTION,
    TITLE,
    EverModel,
    Part,
    asked_of,
    detail_of,
    judged_of,
)
from tests.scripted.rowen import Speaker

WEAK = FULL.model_copy(update={"judges": False, "languages": frozenset({"en"})})
SAID = "Ada Brandt, a chemist, was born in 1931."
PART = Part(
    texts={"": SAID},
    concepts={SAID: ["chemist", "1931"]},
    questions={"chemist": "Was Ada Brandt a chemist?", "1931": "When was Ada Brandt born (1931)?"},
)
SURE, AGAINST = ClaimVerdict(0.7, 0.2, 0.1), ClaimVerdict(0.1, 0.6, 0.3)


def reads(*languages: Language) -> ClaimReader:
    """Supports everything but what is about chemists; reads English unless told otherwise."""
    return ClaimReader(
        lambda claim: AGAINST if "chemist" in claim.statement else SURE, languages or ("en",)
    )


async def ever(main: Capabilities, *judges: Model, **settings: Any) -> Outcome:
    models = {f"judge_{number}": judge for number, judge in enumerate(judges, start=1)}
    model = EverModel(PART, main)
    settings = {"max_rounds": 1, **settings}
    return await run_method(Ever(), QUESTION, model, shelf=FOUND, models=models, **settings)


def first_look(outcome: Outcome) -> dict[str, Judged]:
    found = [event for event in judged_of(outcome, "concept") if detail_of(event).round == 0]
    return {event.text: event for event in found}


async def test_a_judge_checks_for_a_main_model_that_judges_by_chance():
    reader = reads()
    outcome = await ever(WEAK, reader)
    look = first_look(outcome)
    assert look["chemist"].verdict == "contradicted"
    assert look["1931"].verdict == "supported"
    assert {detail_of(event).by for event in look.values()} == {"reader"}
    (score,) = look["chemist"].scores
    assert (score.name, score.value) == ("verdict_probability", 0.6)
    assert score.inputs == (0.1, 0.6, 0.3)
    assert asked_of(outcome, "verify") == []
    assert "weak_judge" not in outcome.answer.flags


async def test_it_reads_the_claim_of_each_concept_with_the_evidence():
    reader = reads()
    await ever(WEAK, reader)
    by_statement = {claim.statement: claim for claim in reader.seen}
    # First the whole, and where that is not supported, what is said with the one concept.
    chemist = by_statement[SAID]
    assert chemist.evidence == (f"{TITLE}: Ada Brandt was a botanist born in 1931.",)
    assert by_statement["Ada Brandt was born in 1931."].question == ""
    assert len(by_statement) == 2


@pytest.mark.parametrize(
    ("main", "judges", "settings"),
    [
        (FULL, [reads()], {}),
        (WEAK, [], {}),
        (WEAK, [reads("zh")], {}),
        (WEAK, [reads()], {"checked_by": "main"}),
        # From memory only the main model can answer.
        (WEAK, [reads()], {"variant": "nrg_sq", "checked_by": "judge"}),
    ],
)
async def test_otherwise_the_main_model_checks(
    main: Capabilities, judges: list[Model], settings: dict[str, Any]
):
    outcome = await ever(main, *judges, **settings)
    assert asked_of(outcome, "recall" if "variant" in settings else "verify")
    assert {detail_of(event).by for event in first_look(outcome).values()} == {""}
    assert ("weak_judge" in outcome.answer.flags) == (not main.judges)
    assert ("no_judge" in outcome.answer.flags) == (settings.get("checked_by") == "judge")


async def test_a_judge_that_is_wanted_checks_for_a_good_model_too():
    outcome = await ever(FULL, Speaker(), reads(), checked_by="judge")
    # The first judge writes: it is no model made to judge.
    assert {detail_of(event).by for event in first_look(outcome).values()} == {"reader"}
