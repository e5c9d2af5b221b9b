"""Detect-and-Mitigate worked through by hand: what is validated, repaired, and read again."""

from __future__ import annotations

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.run.events import Judged
from tests.scripted.bench import Outcome, Piece, pieces
from tests.scripted.script import (
    PROBABLE,
    QUESTION,
    Turn,
    answer_verdict,
    play,
    turns,
    verdicts,
)

NAME = "detect_and_mitigate"
YORK = pieces("Clinton was born in York.", York=0.3)
WON = pieces(" He won in 1993.")
DRAFT: list[Piece] = [*YORK, *WON]
HOPE = "Clinton was born in Hope."
EVIDENCE = {"born in York": ["Clinton was born in Hope."]}

LISTS: Turn = ("Sentence: Clinton was born in York.", "1. York")
ASKS: Turn = ('right about "York"', "Was Clinton born in York?")
REFUTES: Turn = ("Was Clinton born in York?", "False")
REPAIRS: Turn = ("Repaired sentence:", HOPE)


async def run(*played: Turn, **options: object) -> Outcome:
    return await play(NAME, *played, finds=EVIDENCE, capabilities=PROBABLE, **options)


async def test_a_contradicted_concept_is_repaired_and_the_model_goes_on_from_there():
    outcome = await run(
        (QUESTION, DRAFT),
        LISTS,
        ASKS,
        REFUTES,
        REPAIRS,
        (HOPE, pieces(" He won in 1992.")),
        ("Sentence: He won in 1992.", "1. 1992"),
    )
    assert outcome.queries == ["Was Clinton born in York?"]
    assert outcome.answer.original == "Clinton was born in York. He won in 1993."
    assert outcome.answer.text == "Clinton was born in Hope. He won in 1992."
    assert outcome.drafts == [outcome.answer.original, outcome.answer.text]
    # What follows the repair is read in its turn: 1992 has 0.9, which is not below 0.5.
    assert verdicts(outcome, "entity") == [("York", "doubtful"), ("1992", "confident")]
    assert verdicts(outcome, "question") == [("Was Clinton born in York?", "contradicted")]
    # Of the original one concept was read, and the evidence contradicts it.
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.inputs) == ("contradicted", (1.0, 1.0))
    # The rest was written without the passages.
    continued = turns(outcome)[5]
    assert [one.content for one in continued[1:]] == [QUESTION, HOPE]


async def test_the_score_of_a_concept_is_that_of_its_least_probable_token():
    words: list[Piece] = [("Clinton was born in", 0.9), (" New", 0.8), (" York", 0.6), (".", 0.1)]
    outcome = await run((QUESTION, words), ("Sentence: Clinton", "1. New York"))
    (only,) = [e for e in outcome.events if isinstance(e, Judged) and e.what == "entity"]
    # min(0.8, 0.6): the stop behind the name is none of its tokens.
    assert only.deciding.value == pytest.approx(0.6)
    assert only.deciding.inputs == pytest.approx((0.8, 0.6))
    assert outcome.answer.text[only.start : only.end] == "New York"


async def test_probable_concepts_are_not_searched_for():
    outcome = await run((QUESTION, pieces(HOPE)), ("Sentence: Clinton", "1. Hope"))
    assert outcome.queries == []
    assert (answer_verdict(outcome).verdict, answer_verdict(outcome).deciding.value) == (
        "confident",
        0.0,
    )


@pytest.mark.parametrize(
    ("says", "verdict"), [("True", "supported"), ("NEI", "not_enough"), ("Perhaps", "unchecked")]
)
async def test_what_evidence_does_not_contradict_stays(says: str, verdict: str):
    again = [("True, False or NEI", says)] if verdict == "unchecked" else []
    outcome = await run((QUESTION, YORK), LISTS, ASKS, ("Was Clinton", says), *again)
    assert outcome.answer.text == outcome.answer.original
    assert answer_verdict(outcome).verdict == verdict


async def test_a_concept_for_which_nothing_is_found_stays():
    outcome = await play(NAME, (QUESTION, YORK), LISTS, ASKS, capabilities=PROBABLE)
    assert outcome.answer.flags == ("no_evidence",)
    assert answer_verdict(outcome).verdict == "not_enough"


@pytest.mark.parametrize("reply", ["", "He was born. In Hope.", "他出生在霍普。"])
async def test_a_repair_that_is_not_one_sentence_changes_nothing(reply: str):
    outcome = await run((QUESTION, YORK), LISTS, ASKS, REFUTES, ("Repaired sentence:", reply))
    assert outcome.answer.text == "Clinton was born in York."
    assert outcome.answer.flags == ("revision_unusable",)


async def test_without_a_usable_question_the_sentence_is_searched_for():
    outcome = await run((QUESTION, YORK), LISTS, (ASKS[0], "None."), ("Question about it", "True"))
    assert outcome.queries == ["Clinton was born in York."]


async def test_a_lower_threshold_validates_fewer_concepts_without_a_new_call():
    recorded = await run((QUESTION, YORK), LISTS, ASKS, ("Was Clinton", "True"))
    method = METHODS[NAME]
    again = reevaluate(recorded.trace, method, method.settings({"threshold": 0.2}))
    assert again.diverges_at is None
    judged = [e for e in again.trace.of_method(NAME) if isinstance(e, Judged)]
    assert [(e.what, e.verdict) for e in judged] == [
        ("entity", "confident"),
        ("answer", "confident"),
    ]


async def test_a_question_given_back_is_no_answer():
    outcome = await run((QUESTION, pieces(QUESTION)))
    assert outcome.answer.flags == ("question_repeated",)
    assert answer_verdict(outcome).verdict == "unchecked"
