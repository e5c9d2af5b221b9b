"""Checks that rest on a judge instead of the main model: who is asked, what, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.methods.base import Method
from pipelines.methods.ever import Ever
from pipelines.methods.replies.claims import claim_of_question
from pipelines.methods.rowen import Rowen
from pipelines.methods.rowen.settings import RowenPlan
from pipelines.models.base import Capabilities, Model
from pipelines.models.judges.base import Reading
from pipelines.run.events import Judged, SpanStarted
from pipelines.types import Language, Passage
from tests.pipelines.methods.bench import FULL, ClaimReader, Outcome, run_method
from tests.pipelines.methods.ever.bench import (
    FIRST,
    FOUND,
    QUESTION,
    EverModel,
    Part,
    asked_of,
    decided,
    judged_of,
)
from tests.pipelines.methods.rowen.bench import ENGLISH, EVIDENCE, Speaker
from tests.pipelines.methods.rowen.bench import QUESTION as WHERE

WEAK = FULL.model_copy(update={"judges": False, "languages": frozenset({"en"})})
PART = Part(
    texts={"": FIRST},
    concepts={FIRST: ["chemist", "1931"]},
    questions={"chemist": "Was Ada Brandt a chemist?", "1931": "When was Ada Brandt born (1931)?"},
)
SURE, AGAINST = Reading(0.7, 0.2, 0.1), Reading(0.1, 0.6, 0.3)


def reads(*languages: Language) -> ClaimReader:
    """Bears everything out but what is about chemists; reads English unless told otherwise."""
    return ClaimReader(
        lambda claim: AGAINST if "chemist?" in claim.statement else SURE, languages or ("en",)
    )


async def ever(main: Capabilities, *judges: Model, **settings: Any) -> Outcome:
    models = {f"judge_{number}": judge for number, judge in enumerate(judges, start=1)}
    model = EverModel(PART, main)
    settings = {"max_rounds": 1, **settings}
    return await run_method(Ever(), QUESTION, model, shelf=FOUND, models=models, **settings)


def first_look(outcome: Outcome) -> dict[str, Judged]:
    found = [event for event in judged_of(outcome, "concept") if event.detail["round"] == 0]
    return {event.text: event for event in found}


async def test_a_judge_checks_for_a_main_model_that_judges_by_chance():
    reader = reads()
    outcome = await ever(WEAK, reader)
    look = first_look(outcome)
    assert look["chemist"].verdict == "contradicted"
    assert look["1931"].verdict == "supported"
    assert {event.detail["by"] for event in look.values()} == {"reader"}
    (score,) = look["chemist"].scores
    assert (score.name, score.value) == ("verdict_probability", 0.6)
    assert score.inputs == (0.1, 0.6, 0.3)
    assert asked_of(outcome, "verify") == []
    assert "weak_judge" not in outcome.answer.flags
    # What it leads to is read back from the record alone.
    checked = decided(outcome).sentences[0].checks[0].concepts
    assert {concept.by for concept in checked} == {"reader"}


async def test_it_reads_the_claim_that_the_question_makes_with_the_evidence():
    reader = reads()
    await ever(WEAK, reader)
    by_statement = {claim.statement: claim for claim in reader.seen}
    chemist = by_statement["Was Ada Brandt a chemist?"]
    assert chemist.evidence == ("Archive: Ada Brandt was a botanist born in 1931.",)
    # An open question claims nothing: the sentence does.
    assert by_statement[FIRST].question == ""


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
    assert {event.detail["by"] for event in first_look(outcome).values()} == {""}
    assert ("weak_judge" in outcome.answer.flags) == (not main.judges)
    assert ("no_judge" in outcome.answer.flags) == (settings.get("checked_by") == "judge")


async def test_a_judge_that_is_wanted_checks_for_a_good_model_too():
    outcome = await ever(FULL, Speaker(), reads(), checked_by="judge")
    # The first judge writes: it is no model made to judge.
    assert {event.detail["by"] for event in first_look(outcome).values()} == {"reader"}


@pytest.mark.parametrize(
    ("asked", "statement"),
    [
        ("Was she born in 1931?", "Was she born in 1931?"),
        ("When was she born?", "She was born in 1931."),
        ("Isolation was what?", "She was born in 1931."),
        ("她是1931年出生的吗？", "她是1931年出生的吗？"),
    ],
)
def test_only_a_question_for_yes_or_no_is_a_claim(asked: str, statement: str):
    passage = Passage(id="1", title="", text="E.", source="s")
    claim = claim_of_question(asked, "She was born in 1931.", [passage])
    assert (claim.statement, claim.question, claim.evidence) == (statement, "", ("E.",))


async def rowen(main: Capabilities, *judges: Model, **settings: Any) -> Outcome:
    models = {f"judge_{number}": judge for number, judge in enumerate(judges, start=1)}
    model = Speaker(capabilities=main)
    method: Method[Any] = Rowen()
    return await run_method(method, WHERE, model, shelf=EVIDENCE, models=models, k=2, **settings)


def plan_of(outcome: Outcome) -> RowenPlan:
    steps = [e for e in outcome.events if isinstance(e, SpanStarted) and e.step == "check"]
    return RowenPlan.model_validate(steps[0].detail)


async def test_answers_are_compared_by_the_judge_in_both_directions():
    reader = reads()
    outcome = await rowen(ENGLISH.model_copy(update={"judges": False}), reader)
    plan = plan_of(outcome)
    assert (plan.by, plan.judge, plan.weak) == ("judge_1", "reader", False)
    pairs = [
        event for event in outcome.events if isinstance(event, Judged) and event.what == "pair"
    ]
    assert {event.detail["source"] for event in pairs} == {"judge"}
    assert {event.verdict for event in pairs} == {"supported"}
    said = {(claim.statement, *claim.evidence) for claim in reader.seen}
    assert {("a0", "v0"), ("v0", "a0"), ("a1", "v1"), ("v1", "a1")} == said
    assert {claim.relation for claim in reader.seen} == {"same"}
    assert "weak_judge" not in outcome.answer.flags


async def test_a_judge_of_one_language_does_not_compare_across_two():
    both = Capabilities(languages=frozenset({"en", "zh"}), judges=False)
    outcome = await rowen(both, reads(), checked_by="judge")
    assert plan_of(outcome).by == "main"
    assert {"weak_judge", "no_judge"} <= set(outcome.answer.flags)
    across = await rowen(both, reads("en", "zh"))
    assert plan_of(across).judge == "reader"


async def test_a_good_main_model_compares_itself():
    outcome = await rowen(ENGLISH, reads())
    assert (plan_of(outcome).by, plan_of(outcome).judge) == ("main", "")
