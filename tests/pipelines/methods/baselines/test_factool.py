"""FacTool worked through by hand: claims, queries, evidence, verdicts."""

from __future__ import annotations

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Judged
from tests.scripted.bench import ClaimReader, Outcome
from tests.scripted.script import (
    QUESTION,
    TEXT,
    Turn,
    answer_verdict,
    play,
    verdicts,
)

DRAFT = "Clinton was born in York in 1946."
CLAIMS = "1. Clinton was born in York.\n2. Clinton was born in 1946."
FINDS = {"place": ["Clinton was born in Hope."], "year": ["Clinton was born in 1946."]}
BEGINNING: tuple[Turn, ...] = (
    (QUESTION, DRAFT),
    ("List the claims", CLAIMS),
    # The claims are looked up side by side, each by its queries.
    ("Claim: Clinton was born in York.", "1. place of birth\n2. Clinton's place"),
    ("Claim: Clinton was born in 1946.", "1. year of birth\n2. Clinton's year"),
)


async def looked_up() -> Outcome:
    return await play(
        "factool",
        *BEGINNING,
        ("Clinton was born in Hope.\n\nClaim: Clinton was born in York.", "False"),
        ("Clinton was born in 1946.\n\nClaim: Clinton was born in 1946.", "True"),
        finds=FINDS,
    )


async def test_each_claim_is_verified_by_what_its_queries_find():
    outcome = await looked_up()
    assert sorted(outcome.queries) == [
        "Clinton's place",
        "Clinton's year",
        "place of birth",
        "year of birth",
    ]
    assert verdicts(outcome, "question") == [
        ("Clinton was born in York.", "contradicted"),
        ("Clinton was born in 1946.", "supported"),
    ]
    verdict = answer_verdict(outcome)
    # One of two decided claims; the paper asks for all of them.
    assert (verdict.verdict, verdict.deciding.value) == ("contradicted", 0.5)
    assert (verdict.deciding.threshold, verdict.deciding.inputs) == (1.0, (1.0, 2.0))
    assert outcome.answer.text == outcome.answer.original == DRAFT


async def test_a_lower_threshold_is_re_evaluated_without_a_new_call():
    outcome = await looked_up()
    method = METHODS["factool"]
    again = reevaluate(outcome.trace, method, method.settings({"threshold": 0.5}))
    assert again.diverges_at is None
    judged = [event for event in again.trace.events if isinstance(event, Judged)]
    assert judged[-1].verdict == "supported"


async def test_what_nothing_is_found_for_decides_nothing():
    outcome = await play("factool", *BEGINNING)
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.value) == ("not_enough", None)


async def test_an_answer_is_not_supported_by_a_part_of_the_checks():
    outcome = await play(
        "factool",
        *BEGINNING,
        ("Clinton was born in Hope.\n\nClaim: Clinton was born in York.", "Perhaps."),
        ("Clinton was born in 1946.\n\nClaim: Clinton was born in 1946.", "True"),
        ("Reply with one word only", "Perhaps."),
        finds=FINDS,
    )
    assert set(verdicts(outcome, "question")) == {
        ("Clinton was born in York.", "unchecked"),
        ("Clinton was born in 1946.", "supported"),
    }
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.value) == ("unchecked", 1.0)
    assert outcome.answer.flags == ("checks_incomplete",)


# The last two say nothing of the answer: the form of another reply, and a text about nothing of it.
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "None",
        "I'm sorry, but I cannot help with that.",
        "Reasoning: ...\nVerdict: True, False or NEI",
        "1. This text is about something else.",
    ],
)
async def test_without_claims_the_sentences_are_looked_up(reply: str):
    outcome = await play(
        "factool", (QUESTION, DRAFT), ("List the claims", reply), (f"Claim: {DRAFT}", "1. place"),
        (f"Claim: {DRAFT}", "False"), finds=FINDS,
    )  # fmt: skip
    assert outcome.answer.flags == ("claims_are_sentences",)
    assert verdicts(outcome, "question") == [(DRAFT, "contradicted")]


async def test_a_weak_models_claims_are_searched_for_themselves_and_judged_by_a_judge():
    judge = ClaimReader(lambda _: ClaimVerdict(0.1, 0.8, 0.1))
    outcome = await play(
        "factool",
        (QUESTION, DRAFT),
        ("List the claims", "1. Clinton was born in York."),
        finds={"York": ["Clinton was born in Hope."]},
        models={"judge_1": judge},
        capabilities=TEXT.model_copy(update={"judges": False, "weak": True}),
    )
    assert outcome.queries == ["Clinton was born in York."]
    assert [claim.statement for claim in judge.seen] == ["Clinton was born in York."]
    assert answer_verdict(outcome).verdict == "contradicted"
    assert outcome.answer.flags == ()


async def test_an_answer_that_claims_nothing_is_not_checked():
    outcome = await play("factool", (QUESTION, "I don't know."))
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.abstained
