"""CRITIC worked through by hand: query, critique, correction, up to three rounds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.models.judges.base import ClaimVerdict
from tests.scripted.bench import ClaimReader
from tests.scripted.script import (
    QUESTION,
    TEXT,
    answer_verdict,
    play,
    turns,
    verdicts,
)

FINDS = {"birthplace": ["Clinton was born in Hope."]}
QUERY = "Clinton birthplace"
RIGHT = "Reasoning: The passages say so.\nVerdict: True"
WRONG = "Reasoning: They say Hope.\nVerdict: False"
UNKNOWN = "Reasoning: They do not tell.\nVerdict: NEI"


async def test_an_answer_that_is_found_right_ends_the_first_round():
    outcome = await play(
        "critic",
        (QUESTION, "In Hope."),
        ("Proposed answer: In Hope.", QUERY),
        ("You check answers", RIGHT),
        finds=FINDS,
    )
    assert outcome.queries == [QUERY]
    assert outcome.answer.text == "In Hope."
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.value) == ("supported", 1.0)


async def test_a_wrong_answer_is_corrected_and_criticised_again():
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer: In York.", QUERY),
        ("Proposed answer: In York.", WRONG),
        ("Critique: They say Hope.", "In Hope."),
        ("Proposed answer: In Hope.", QUERY),
        ("Proposed answer: In Hope.", RIGHT),
        finds=FINDS,
    )
    assert (outcome.answer.original, outcome.answer.text) == ("In York.", "In Hope.")
    assert verdicts(outcome, "question") == [
        ("In York.", "contradicted"),
        ("In Hope.", "supported"),
    ]
    # The verdict on the original is the first round's.
    verdict = answer_verdict(outcome)
    assert (verdict.text, verdict.verdict, verdict.deciding.value) == (
        "In York.",
        "contradicted",
        0.0,
    )
    assert "[1] A title: Clinton was born in Hope." in turns(outcome)[3][-1].content
    assert outcome.answer.flags == ()


async def test_three_rounds_are_the_most():
    towns = ("York", "Rome", "Bath", "Hope")
    rounds = [
        turn
        for before, after in pairwise(towns)
        for turn in (
            (f"answer: In {before}.", QUERY),
            (f"answer: In {before}.", WRONG),
            (f"Wrong answer: In {before}.", f"In {after}."),
        )
    ]
    outcome = await play("critic", (QUESTION, "In York."), *rounds, finds=FINDS)
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("rounds_used_up",)
    assert outcome.drafts == ["In York.", "In Rome.", "In Bath.", "In Hope."]


@pytest.mark.parametrize(
    ("reply", "flags"),
    [
        ("In York.", ("still_contradicted",)),
        ("", ("revision_unusable", "still_contradicted")),
        ("I cannot answer that.", ("revision_unusable", "still_contradicted")),
    ],
)
async def test_an_answer_that_does_not_change_ends_it(reply: str, flags: tuple[str, ...]):
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer", QUERY),
        ("You check answers", WRONG),
        ("Correct answer:", reply),
        finds=FINDS,
    )
    assert outcome.answer.text == "In York."
    assert outcome.answer.flags == flags


async def test_what_the_passages_do_not_tell_stays():
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer", QUERY),
        ("You check answers", UNKNOWN),
        finds=FINDS,
    )
    assert outcome.answer.text == "In York."
    assert answer_verdict(outcome).verdict == "not_enough"


async def test_where_nothing_is_found_nothing_is_criticised():
    outcome = await play("critic", (QUESTION, "In York."), ("Proposed answer", QUERY))
    assert answer_verdict(outcome).verdict == "not_enough"
    assert outcome.answer.flags == ("evidence_not_found",)


async def test_without_a_usable_query_question_and_answer_are_searched_for():
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer", "I'm sorry, but I cannot do that."),
    )
    assert outcome.queries == [f"{QUESTION} In York."]


async def test_a_critique_without_a_verdict_decides_nothing():
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer", QUERY),
        ("You check answers", "Hm."),
        ("Reply with one word only", "Hm."),
        ("Reply with one word only", "Hm."),
        finds=FINDS,
    )
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)


async def test_a_judge_gives_the_verdict_where_the_model_judges_by_chance():
    judge = ClaimReader(lambda _: ClaimVerdict(0.7, 0.2, 0.1))
    outcome = await play(
        "critic",
        (QUESTION, "In Hope."),
        ("Proposed answer", QUERY),
        finds=FINDS,
        models={"judge_1": judge},
        capabilities=TEXT.model_copy(update={"judges": False}),
    )
    assert answer_verdict(outcome).verdict == "supported"
    (claim,) = judge.seen
    assert (claim.statement, claim.question) == ("In Hope.", QUESTION)
    assert claim.evidence == ("A title: Clinton was born in Hope.",)


async def test_fewer_rounds_are_re_evaluated_without_a_new_call():
    outcome = await play(
        "critic",
        (QUESTION, "In York."),
        ("Proposed answer", QUERY),
        ("You check answers", WRONG),
        ("Correct answer:", "In Hope."),
        ("Proposed answer", QUERY),
        ("You check answers", RIGHT),
        finds=FINDS,
    )
    critic = METHODS["critic"]
    again = reevaluate(outcome.trace, critic, critic.settings({"rounds": 1}))
    assert again.diverges_at is None
    assert again.answer is not None
    assert again.answer.flags == ("rounds_used_up",)
