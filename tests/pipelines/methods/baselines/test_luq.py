"""LUQ: the paper's numbers by hand, over all answers and over the checked one."""

from __future__ import annotations

import pytest

from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict
from tests.scripted.baselines import (
    ANSWER,
    FIRST,
    QUESTION,
    SECOND,
    detect,
    on_answer,
    on_sentences,
    score,
    value_of,
)

# 1 - P(s, r'), by the sentence and what it is compared with.
UNSURE = {
    (FIRST, "In Hope."): 0.0,
    (FIRST, "In York."): 0.8,
    (SECOND, "In Hope."): 0.5,
    (SECOND, "In York."): 0.5,
    ("In Hope.", ANSWER): 0.2,
    ("In Hope.", "In York."): 1.0,
    ("In York.", ANSWER): 0.6,
    ("In York.", "In Hope."): 1.0,
}


def reads(claim: Claim) -> ClaimVerdict:
    """Contradiction and support in the ratio of the table, beside as much that is neutral."""
    share = UNSURE[claim.statement, claim.evidence[0].removeprefix(f"{QUESTION} ")]
    # Of exactly 0, all that is not support would count.
    share = max(share, 1e-9)
    half = 0.4 if share > 1e-9 else 1.0
    return ClaimVerdict(half * (1 - share), half * share, 1 - half)


async def test_every_sentence_of_every_answer_is_compared_with_every_other_answer():
    outcome = await detect("luq", drawn=["In Hope.", "In York."], reads=reads, samples=2)
    first, second = on_sentences(outcome)
    assert value_of(first) == pytest.approx(0.4, abs=1e-6)
    assert value_of(second) == pytest.approx(0.5, abs=1e-6)
    judged = on_answer(outcome)
    # 1 - C of the answers: (0.4 + 0.5) / 2 = 0.45, (0.2 + 1) / 2 = 0.6, (0.6 + 1) / 2 = 0.8.
    assert judged.deciding.inputs == pytest.approx((0.45, 0.6, 0.8), abs=1e-6)
    # Their mean is 1.85 / 3.
    assert value_of(judged) == pytest.approx(1.85 / 3, abs=1e-6)
    assert score(judged, "luq_answer").value == pytest.approx(0.45, abs=1e-6)
    assert judged.verdict == "doubtful"
    # 2 sentences with 2 others, and twice 1 with 2.
    assert len(outcome.calls) == 8
    assert outcome.answer.flags == ()


async def test_the_checked_answer_alone_takes_fewer_calls():
    outcome = await detect(
        "luq", drawn=["In Hope.", "In York."], reads=reads, samples=2, compared="answer"
    )
    judged = on_answer(outcome)
    assert [one.name for one in judged.scores] == ["luq"]
    assert value_of(judged) == pytest.approx(0.45, abs=1e-6)
    assert judged.verdict == "confident"
    assert len(outcome.calls) == 4


async def test_without_a_sample_nothing_is_decided():
    outcome = await detect("luq", drawn=[" "], reads=reads)
    assert [one.verdict for one in on_sentences(outcome)] == ["unchecked", "unchecked"]
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("fewer_samples", "not_checked")


async def test_what_the_model_cannot_say_is_left_out():
    outcome = await detect("luq", FIRST, ["In York."], says=lambda _: "Hm.", samples=1)
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)
