"""Semantic entropy: which answers are one meaning under each rule, and what is reported."""

from __future__ import annotations

from math import log

import pytest

from pipelines.methods.registry import METHODS
from pipelines.models.base import Claim, GenerationRequest
from pipelines.models.judges.base import ClaimVerdict
from tests.scripted.baselines import (
    BY_CHANCE,
    QUESTION,
    detect,
    on_answer,
    on_sentences,
    score,
    value_of,
)
from tests.scripted.bench import ClaimReader, PieceModel, run_method

SUPPORTS, CONTRADICTS, NEITHER = (
    ClaimVerdict(0.8, 0.1, 0.1),
    ClaimVerdict(0.1, 0.8, 0.1),
    ClaimVerdict(0.1, 0.1, 0.8),
)


def reads(claim: Claim) -> ClaimVerdict:
    """Hope and the town of Hope are one; Arkansas is entailed by Hope but does not entail it."""
    text = claim.evidence[0].removeprefix(f"{QUESTION} ")
    there, here = (("York" in one, "Arkansas" in one) for one in (text, claim.statement))
    if there[0] != here[0]:
        return CONTRADICTS
    return NEITHER if there[1] and not here[1] else SUPPORTS


DRAWN = ["In Hope.", "The town of Hope.", "In Arkansas.", "In York."]


async def test_answers_that_entail_each_other_are_one_meaning():
    outcome = await detect("semantic_entropy", "In Hope.", DRAWN, reads=reads, samples=4)
    judged = on_answer(outcome)
    # Classes 0 0 1 2: -(1/2 log 1/2 + 2 * 1/4 log 1/4) = 1.5 log 2
    assert score(judged, "meanings").inputs == (0, 0, 1, 2)
    assert score(judged, "meanings").value == 3
    assert value_of(judged) == pytest.approx(1.5 * log(2))
    assert judged.deciding.inputs == (2, 1, 1)
    assert judged.deciding.high == pytest.approx(log(4))
    assert judged.verdict == "doubtful"
    assert on_sentences(outcome) == []
    assert outcome.answer.flags == ()


async def test_without_contradiction_is_the_looser_rule():
    outcome = await detect(
        "semantic_entropy",
        "In Hope.",
        DRAWN,
        reads=reads,
        samples=4,
        clustering="no_contradiction",
    )
    judged = on_answer(outcome)
    # 3/4 and 1/4.
    assert score(judged, "meanings").inputs == (0, 0, 0, 1)
    assert value_of(judged) == pytest.approx(0.562335, abs=1e-6)
    assert judged.verdict == "confident"


async def test_the_same_words_and_refusals_need_no_call():
    drawn = ["In Hope.", "in hope", "I don't know.", "I'm not sure about that."]
    outcome = await detect("semantic_entropy", "In Hope.", drawn, reads=reads, samples=4)
    assert outcome.calls == []
    assert score(on_answer(outcome), "meanings").inputs == (0, 0, 1, 1)
    assert value_of(on_answer(outcome)) == pytest.approx(log(2))


async def test_each_pair_of_answers_is_read_in_both_directions():
    outcome = await detect("semantic_entropy", "Hope.", ["Hope.", "York."], reads=reads, samples=2)
    assert len(outcome.calls) == 2


async def test_likelihood_needs_probabilities_and_weighs_by_them():
    def says(request: GenerationRequest) -> list[tuple[str, float]]:
        if request.temperature == 0:
            return [("In Hope.", 0.9)]
        # Two tokens of 0.25 and 1.0 have the geometric mean 0.5.
        return {
            0: [("In", 0.25), (" Hope.", 1.0)],
            1: [("In York.", 0.25)],
            2: [("In York.", 0.25)],
        }[request.sample or 0]

    outcome = await run_method(
        METHODS["semantic_entropy"],
        QUESTION,
        PieceModel(says, BY_CHANCE),
        models={"judge_1": ClaimReader(reads)},
        samples=3,
        entropy="likelihood",
    )
    judged = on_answer(outcome)
    assert judged.deciding.name == "semantic_entropy_likelihood"
    # 0.5 against 0.25 + 0.25.
    assert value_of(judged) == pytest.approx(log(2))
    # 1 of 3 and 2 of 3: -(1/3 log 1/3 + 2/3 log 2/3)
    assert score(judged, "semantic_entropy_discrete").value == pytest.approx(0.636514, abs=1e-6)


async def test_given_samples_have_no_likelihood():
    outcome = await detect(
        "semantic_entropy", "In Hope.", DRAWN, reads=reads, samples=4, entropy="likelihood"
    )
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)
    assert score(on_answer(outcome), "semantic_entropy_discrete").value == pytest.approx(
        1.5 * log(2)
    )


async def test_one_answer_alone_shows_no_uncertainty():
    outcome = await detect("semantic_entropy", "In Hope.", ["In Hope."], reads=reads)
    assert on_answer(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("fewer_samples", "not_checked")


async def test_what_cannot_be_read_is_a_meaning_of_its_own():
    outcome = await detect(
        "semantic_entropy", "In Hope.", ["One.", "Two."], says=lambda _: "Hm.", samples=2
    )
    assert score(on_answer(outcome), "meanings").inputs == (0, 1)
