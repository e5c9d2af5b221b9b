"""What a judge answers to a closed question, and what it refuses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from math import inf, isnan, nan

import pytest

from pipelines.base import Message, UnsupportedSpan
from pipelines.errors import CapabilityError, ServerFailedError
from pipelines.methods.replies.verdicts import TRUE_FALSE, TRUE_FALSE_NEI, YES_NO
from pipelines.models.base import ChoiceRequest, Claim, GenerationRequest, Option
from pipelines.models.judges.base import ClaimVerdict, JudgedClaim, JudgeModel, either_way, swapped

MESSAGES = (Message(role="user", content="Is it so?"),)
BORN = Claim(statement="He was born in Hope.", evidence=("Clinton: He was born in Hope.",))


class FixedJudge(JudgeModel):
    """Says what `readings` holds for a statement."""

    name = "fixed"

    def __init__(self, readings: dict[str, ClaimVerdict]) -> None:
        self._readings = readings
        self.read_claims: list[Claim] = []

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        self.read_claims += claims
        return [self._readings[claim.statement] for claim in claims]


def judge() -> FixedJudge:
    return FixedJudge({BORN.statement: ClaimVerdict(0.7, 0.2, 0.1)})


def asks(options: tuple[Option, ...], claim: Claim | None = BORN) -> ChoiceRequest:
    return ChoiceRequest(messages=MESSAGES, options=options, claim=claim)


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        (TRUE_FALSE_NEI["en"], {"true": 0.7, "false": 0.2, "nei": 0.1}),
        # What the evidence does not decide is no yes.
        (YES_NO["en"], {"yes": 0.7, "no": 0.3}),
        (TRUE_FALSE["zh"], {"true": 0.7, "false": 0.3}),
    ],
)
async def test_probabilities_go_to_the_options_by_their_labels(
    options: tuple[Option, ...], shares: dict[str, float]
):
    choice = await judge().choose(asks(options))
    assert choice.probabilities == pytest.approx(shares)
    assert (choice.source, choice.other_mass) == ("judge", 0.0)


async def test_two_answers_are_compared_in_both_directions():
    one = FixedJudge(
        {"Hope": ClaimVerdict(0.9, 0.05, 0.05), "Hope, Arkansas": ClaimVerdict(0.2, 0.1, 0.7)}
    )
    claim = Claim(
        statement="Hope", evidence=("Hope, Arkansas",), question="Where?", relation="same"
    )
    choice = await one.choose(asks(TRUE_FALSE["en"], claim))
    # Hope does not say Arkansas, and is the same answer: odds of 9 and of 1/4 have the mean 1.5.
    assert choice.probabilities == pytest.approx({"true": 0.6, "false": 0.4})
    assert [(c.statement, c.evidence, c.question) for c in one.read_claims] == [
        ("Hope", ("Hope, Arkansas",), "Where?"),
        ("Hope, Arkansas", ("Hope",), "Where?"),
    ]


def test_answers_in_several_pieces_are_compared_each_with_its_own():
    said = {"a": 0.5, "b c": 0.9, "d": 0.8, "e": 0.2}
    one = FixedJudge({name: ClaimVerdict(p, 1 - p, 0.0) for name, p in said.items()})
    claims = [
        Claim(statement="a", evidence=("b", "c"), relation="same"),
        Claim(statement="d", evidence=("e",), relation="same"),
    ]
    # Odds of 1 and 9, and of 4 and 1/4.
    assert [found.supported for found in one.verdicts(claims)] == pytest.approx([0.75, 0.5])
    assert swapped(claims[0]).evidence == ("a",)


@pytest.mark.parametrize("number", [nan, inf, -inf])
async def test_a_verdict_that_is_no_number_is_an_error(number: float):
    broken = FixedJudge({BORN.statement: ClaimVerdict(0.5, number, 0.5)})
    with pytest.raises(ServerFailedError, match="fixed failed while computing"):
        await broken.choose(asks(TRUE_FALSE_NEI["en"]))


async def test_a_prompt_alone_is_nothing_to_judge():
    with pytest.raises(CapabilityError) as caught:
        await judge().choose(asks(YES_NO["en"], None))
    assert caught.value.remedy


async def test_options_it_does_not_know():
    options = (Option(label="left", spellings=("l",)), Option(label="right", spellings=("r",)))
    with pytest.raises(CapabilityError, match="left, right"):
        await judge().choose(asks(options))


async def test_a_judge_does_not_write():
    one = judge()
    assert not one.capabilities.writes
    with pytest.raises(CapabilityError, match="does not write"):
        await one.generate(GenerationRequest(messages=MESSAGES))


def test_both_directions_count_alike():
    one, other = ClaimVerdict(0.9, 0.06, 0.04), ClaimVerdict(0.2, 0.18, 0.62)
    found = either_way(one, other)
    assert found == either_way(other, one)
    # Odds of 9 and of 1/4: the root of 9/4 is 1.5. Of what is left, 0.24 of 0.9 is contradiction.
    assert found == pytest.approx((0.6, 0.4 * 0.24 / 0.9, 0.4 * 0.66 / 0.9))
    assert either_way(one, one) == pytest.approx(one)
    # Two answers that support each other nowhere are as different as the surer one says, or more.
    assert either_way(ClaimVerdict(0.1, 0.9, 0.0), ClaimVerdict(0.3, 0.7, 0.0)).supported < 0.2


@pytest.mark.parametrize(
    ("one", "other", "supported"),
    [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.5), (0.0, 0.9, 0.0)],
)
def test_certainty_is_no_error(one: float, other: float, supported: float):
    found = either_way(ClaimVerdict(one, 0.0, 1 - one), ClaimVerdict(other, 0.0, 1 - other))
    assert found == (supported, 0.0, 1 - supported)
    assert all(map(isnan, either_way(ClaimVerdict(nan, 0.0, 0.0), ClaimVerdict(0.5, 0.0, 0.5))))


async def test_questions_asked_at_the_same_time_are_read_together():
    claims = [Claim(statement=f"Number {number}.", evidence=("It is.",)) for number in range(6)]
    begun, gate = threading.Event(), threading.Event()
    batches: list[int] = []

    class Slow(FixedJudge):
        def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
            batches.append(len(claims))
            begun.set()
            gate.wait()
            return super().read(claims)

    slow = Slow(
        {c.statement: ClaimVerdict(at / 10, 0.0, 1 - at / 10) for at, c in enumerate(claims)}
    )
    first = asyncio.create_task(slow.choose(asks(YES_NO["en"], claims[0])))
    await asyncio.to_thread(begun.wait)
    rest = [asyncio.create_task(slow.choose(asks(YES_NO["en"], claim))) for claim in claims[1:]]
    await asyncio.sleep(0)
    gate.set()
    choices = await asyncio.gather(first, *rest)
    assert [choice.probabilities["yes"] for choice in choices] == pytest.approx(
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    )
    assert batches == [1, 5]


class Words(FixedJudge):
    """Finds the last word of each statement unsupported."""

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        last = UnsupportedSpan(start=15, end=19, doubt=0.8)
        return [JudgedClaim(verdict, (last,)) for verdict in self.read(claims)]


async def test_unsupported_words_are_in_the_answer_of_a_judge_that_looks_at_them():
    assert (await judge().choose(asks(YES_NO["en"]))).unsupported is None
    looks = Words({BORN.statement: ClaimVerdict(0.2, 0.7, 0.1)})
    found = (await looks.choose(asks(YES_NO["en"]))).unsupported
    assert found is not None
    assert [BORN.statement[one.start : one.end] for one in found] == ["Hope"]
    # What only one of two answers says is no error of it.
    same = Claim(statement="Hope", evidence=("Hope",), question="Where?", relation="same")
    both = Words({"Hope": ClaimVerdict(0.9, 0.05, 0.05)})
    assert (await both.choose(asks(TRUE_FALSE["en"], same))).unsupported is None
