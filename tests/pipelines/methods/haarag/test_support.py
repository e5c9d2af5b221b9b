"""Alignment is not support: what C_a, the question alone and the judges each say of an answer."""

from typing import Any

import pytest

from pipelines.methods.haarag.alignment import AlignmentRules, MeanSupport
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import Verdict
from tests.scripted.bench import ClaimReader
from tests.scripted.haarag import QUESTION, haarag, judged, score

HOPE = "A: Clinton was born in Hope."
FOUND = {QUESTION: [HOPE]}
RIGHT, WRONG = "He was born in the town of Hope.", "He was born in the town of Dallas."
TABLE = {(QUESTION, HOPE): 0.7, (RIGHT, HOPE): 0.8, (WRONG, HOPE): 0.8}
TAUS = {"tau_r": 0.5, "tau_a": 0.6, "max_iterations": 1, "entailment_decides": True}


def reader(**says: float) -> ClaimReader:
    """Supports a statement by what is said of the first word of these that it holds."""

    def read(statement: str) -> ClaimVerdict:
        value = next((says[word] for word in says if word in statement), 0.5)
        return ClaimVerdict(value, 0.0, 1 - value)

    return ClaimReader(lambda claim: read(claim.statement))


RULES = AlignmentRules(tau_a=0.6, judges_decide=True, floored=True)


@pytest.mark.parametrize(
    ("value", "opinions", "verdict"),
    [
        (0.8, [MeanSupport(0.9)], "supported"),
        (0.8, [MeanSupport(0.9), MeanSupport(0.4)], "doubtful"),
        (0.8, [MeanSupport(0.4, bare=True)], "aligned"),
        (0.8, [MeanSupport(0.9), MeanSupport(0.55)], "aligned"),
        (0.8, [MeanSupport(0.9), MeanSupport(None)], "unchecked"),
        (0.5, [MeanSupport(0.9)], "not_aligned"),
        # Entailed, it need not add to the alignment of its question.
        (0.65, [MeanSupport(0.9, bare=True)], "supported"),
        (0.65, [MeanSupport(0.4, bare=True)], "unchecked"),
        (None, [MeanSupport(0.4, bare=True)], "unchecked"),
    ],
)
def test_verdict_of_alignment_and_judges(
    value: float | None, opinions: list[MeanSupport], verdict: Verdict
) -> None:
    assert RULES.verdict(value, opinions, 0.7) == verdict


def test_the_papers_rule_knows_neither_judges_nor_the_question_alone() -> None:
    paper = AlignmentRules(tau_a=0.6)
    assert paper.verdict(0.65, [MeanSupport(0.1)], 0.7) == "aligned"
    assert paper.verdict(0.55, [MeanSupport(0.9)], 0.7) == "not_aligned"


async def test_only_the_judge_tells_a_wrong_answer_that_aligns_from_the_right_one():
    judge = {"judge_1": reader(Hope=0.9, Dallas=0.1)}
    for answer, verdict in ((RIGHT, "supported"), (WRONG, "doubtful")):
        outcome = await haarag([answer], FOUND, TABLE, models=judge, **TAUS)
        (said,) = judged(outcome, "answer")
        assert said.verdict == verdict
        (alignment,) = judged(outcome, "alignment")
        assert score(alignment, "evidence_alignment").value == pytest.approx(0.8)
        assert score(alignment, "question_alignment").value == pytest.approx(0.7)


async def test_without_a_judge_an_answer_is_aligned_and_no_more():
    outcome = await haarag([RIGHT], FOUND, TABLE, **TAUS)
    (said,) = judged(outcome, "answer")
    assert said.verdict == "aligned"


async def test_an_answer_that_adds_nothing_to_its_question_is_not_called_aligned():
    table = TABLE | {(f"{QUESTION} In the town.", HOPE): 0.69, ("In the town.", HOPE): 0.2}
    outcome = await haarag(["In the town."], FOUND, table, **TAUS)
    (said,) = judged(outcome, "answer")
    assert said.verdict == "unchecked"
    assert outcome.answer.flags == ("nothing_added",)
    by_cosine: dict[str, Any] = {**TAUS, "entailment_decides": False}
    outcome = await haarag(["In the town."], FOUND, table, **by_cosine)
    assert judged(outcome, "answer")[0].verdict == "aligned"
    # By itself it is near enough, and owes nothing to the question.
    outcome = await haarag(["In the town."], FOUND, table | {("In the town.", HOPE): 0.6}, **TAUS)
    assert judged(outcome, "answer")[0].verdict == "aligned"
