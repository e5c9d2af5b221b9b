"""P(yes), P(True) and verbalised confidence: what is asked, and how the reply is read."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from pipelines.base import Alternative, Generation, Token
from pipelines.errors import failure
from pipelines.methods.baselines.verbalised_confidence import stated_confidence
from pipelines.methods.registry import METHODS
from pipelines.models.base import Claim, GenerationRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import GivenAnswer
from tests.scripted import script
from tests.scripted.baselines import (
    ANSWER,
    BY_CHANCE,
    FIRST,
    QUESTION,
    detect,
    on_answer,
    value_of,
)
from tests.scripted.bench import (
    FULL,
    Answerer,
    ClaimReader,
    Outcome,
    PieceModel,
    Shelf,
    run_method,
)


def first_token(**shares: float) -> Generation:
    """A reply whose first token is one of `shares`, by their probabilities."""
    best = max(shares, key=lambda one: shares[one])
    found = tuple(Alternative(text=one, logprob=log(p)) for one, p in shares.items())
    token = Token(text=best, start=0, end=len(best), logprob=log(shares[best]), alternatives=found)
    return Generation(text=best, tokens=(token,))


# --- P(True) --------------------------------------------------------------------------------------


async def test_p_true_is_the_share_of_true_among_both():
    outcome = await detect(
        "p_true",
        FIRST,
        says=lambda _: first_token(True_=0.1, **{"True": 0.3, "False": 0.1}),
        ideas=0,
    )
    judged = on_answer(outcome)
    # 0.3 / (0.3 + 0.1); another word counts for neither.
    assert value_of(judged) == pytest.approx(0.75)
    assert judged.deciding.inputs == pytest.approx((0.3, 0.1))
    assert judged.verdict == "confident"
    assert outcome.answer.flags == ()


async def test_p_true_shows_the_samples_beside_the_answer():
    asked: list[str] = []

    def says(request: GenerationRequest) -> str:
        asked.append(request.messages[-1].content)
        return "False"

    outcome = await detect("p_true", FIRST, ["In\nYork.", "In Hope."], says=says, ideas=2)
    assert "- In York.\n- In Hope.\n" in asked[0]
    assert asked[0].index("In Hope.") < asked[0].index(FIRST)
    assert on_answer(outcome).verdict == "doubtful"


async def test_p_true_shows_the_passages_in_place_of_samples():
    outcome = await script.play(
        "p_true",
        (script.QUESTION, "In York."),
        ("By these passages", "False"),
        finds={"": ["He was born in Hope."]},
        context="retrieved",
    )
    asked = script.turns(outcome)[-1][-1].content
    assert "He was born in Hope." in asked
    assert "Proposed answer: In York." in asked
    (score, *_) = script.answer_verdict(outcome).scores
    assert (score.name, score.value, score.flagged) == ("p_true", 0.0, True)


async def test_p_true_without_samples_shows_none():
    outcome = await detect("p_true", FIRST, ["In York."], says=lambda _: "True", ideas=0)
    (call,) = outcome.calls
    assert "York" not in str(call.request)


async def test_p_true_of_a_reply_that_says_neither_is_none():
    outcome = await detect("p_true", FIRST, says=lambda _: "Perhaps.", ideas=0)
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)


async def test_p_true_of_a_text_is_0_or_1_and_says_so():
    textual = FULL.overridden(top_logprobs=0, judges=False)
    outcome = await detect("p_true", FIRST, says=lambda _: "True.", ideas=0, capabilities=textual)
    assert value_of(on_answer(outcome)) == 1.0
    assert outcome.answer.flags == ("judge_by_text", "weak_judge")


# --- P(yes) ---------------------------------------------------------------------------------------


async def p_yes(
    says: Answerer, *, shelf: Shelf | None = None, judged: float | None = None, **settings: Any
) -> tuple[Outcome, ClaimReader]:
    def reads(claim: Claim) -> ClaimVerdict:
        assert judged is not None
        return ClaimVerdict(judged, 0.0, 1 - judged)

    judge = ClaimReader(reads)
    outcome = await run_method(
        METHODS["p_yes"],
        QUESTION,
        PieceModel(says, FULL if judged is None else BY_CHANCE),
        shelf=shelf or Shelf(lambda _: ["Clinton was born in Hope."]),
        models={"judge_1": judge} if judged is not None else {},
        given=GivenAnswer(text=ANSWER),
        **settings,
    )
    return outcome, judge


async def test_p_yes_is_asked_once_about_the_whole_answer():
    outcome, _ = await p_yes(lambda _: first_token(YES=0.5, Yes=0.1, NO=0.3))
    judged = on_answer(outcome)
    # Both spellings of yes.
    assert value_of(judged) == pytest.approx(0.6)
    assert judged.verdict == "confident"
    (call,) = outcome.calls
    asked = str(call.request)
    assert ANSWER in asked
    assert "Clinton was born in Hope." in asked
    assert outcome.queries == [QUESTION]


async def test_p_yes_asks_a_judge_where_the_main_model_judges_by_chance():
    outcome, judge = await p_yes(lambda _: "", judged=0.25)
    assert value_of(on_answer(outcome)) == pytest.approx(0.25)
    assert on_answer(outcome).verdict == "doubtful"
    (claim,) = judge.seen
    assert (claim.statement, claim.evidence) == (ANSWER, ("A title: Clinton was born in Hope.",))
    assert outcome.answer.flags == ()


@pytest.mark.parametrize(
    ("shelf", "flag"),
    [
        (Shelf(lambda _: []), "judges_no_evidence"),
        (Shelf(failure("search.no_evidence")), "judges_search_failed"),
    ],
)
async def test_p_yes_without_a_passage_asks_the_main_model(shelf: Shelf, flag: str):
    outcome, judge = await p_yes(lambda _: "YES", shelf=shelf, judged=0.25)
    assert judge.seen == []
    assert value_of(on_answer(outcome)) == pytest.approx(0.9)
    assert outcome.answer.flags == (flag, "weak_judge")


async def test_p_yes_without_context_searches_for_nothing():
    outcome, _ = await p_yes(lambda _: "NO", context="none")
    assert outcome.queries == []
    assert on_answer(outcome).verdict == "doubtful"


# --- Verbalised confidence ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("85 %.", 0.85),
        ("８５％", 0.85),
        ("**85**", 0.85),
        ("85/100", 0.85),
        ("85 out of 100", 0.85),
        ("On a scale of 0 to 100, I would say 85.", 0.85),
        ("From 0 to 100: 85", 0.85),
        ("85 (eighty-five), so 85.", 0.85),
        ("0.85", 0.85),
        # Decimals tell the scale to 1.
        ("1.0", 1.0),
        ("Confidence: 1.00.", 1.0),
        ("1.0%", 0.01),
        ("0.5%", 0.005),
        ("1", 0.01),
        ("0", 0.0),
        ("100", 1.0),
        ("100%", 1.0),
        ("可能性为85。", 0.85),
        ("满分100，我给85", 0.85),
        ("<think>10 or 20?</think> 85", 0.85),
        ("Between 80 and 90.", None),
        ("120", None),
        ("-5", None),
        ("Very likely.", None),
        ("", None),
    ],
)
def test_a_stated_confidence_is_read(reply: str, value: float | None):
    assert stated_confidence(reply) == (None if value is None else pytest.approx(value))


async def test_the_confidence_is_asked_for_once_more():
    replies = iter(["Quite sure.", "40"])
    outcome = await detect("verbalised_confidence", FIRST, says=lambda _: next(replies))
    assert value_of(on_answer(outcome)) == pytest.approx(0.4)
    assert on_answer(outcome).verdict == "doubtful"
    assert len(outcome.calls) == 2
    assert outcome.answer.flags == ()


@pytest.mark.parametrize(
    ("cut", "read"), [("I am sure: 8", 0.4), ("I am sure: 85 of 1", 0.85), ("85, as it is", 0.85)]
)
async def test_a_number_at_which_the_reply_was_cut_may_go_on(cut: str, read: float):
    replies = iter([Generation(text=cut, finish_reason="length"), Generation(text="40")])
    outcome = await detect("verbalised_confidence", FIRST, says=lambda _: next(replies))
    assert value_of(on_answer(outcome)) == pytest.approx(read)


async def test_without_a_number_nothing_is_decided():
    outcome = await detect(
        "verbalised_confidence", FIRST, says=lambda _: "Sure.", capabilities=BY_CHANCE
    )
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("weak_judge", "not_checked")
