"""RARR worked through by hand: questions, evidence, agreement gate, edits, what is preserved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.base import Passage
from pipelines.errors import UnreachableError
from pipelines.methods.baselines.rarr import preservation
from pipelines.methods.registry import METHODS
from pipelines.models.judges.base import ClaimVerdict
from tests.scripted.bench import ClaimReader, run_method
from tests.scripted.script import (
    QUESTION,
    TEXT,
    Finder,
    Script,
    answer_verdict,
    play,
    turns,
    verdicts,
)

DRAFT = "Clinton was born in York in 1946."
EDITED = "Clinton was born in Hope in 1946."
PLAN = "1. In which town was Clinton born?\n2. In which year was Clinton born?"
FINDS = {"town": ["Clinton was born in Hope."], "year": ["Clinton was born in 1946."]}


async def test_only_what_the_evidence_contradicts_is_edited():
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most 6 questions", PLAN),
        (f"Text: {DRAFT}\nQuestion: In which town", "False"),
        ("Change only what the evidence contradicts", EDITED),
        # The gate of the second question reads the text as it is by then.
        (f"Text: {EDITED}\nQuestion: In which year", "True"),
        finds=FINDS,
    )
    assert outcome.queries == [
        "In which town was Clinton born?",
        "In which year was Clinton born?",
    ]
    assert "[1] A title: Clinton was born in Hope." in turns(outcome)[3][-1].content
    assert (outcome.answer.original, outcome.answer.text) == (DRAFT, EDITED)
    assert outcome.answer.flags == ()
    assert verdicts(outcome, "question") == [
        ("In which town was Clinton born?", "contradicted"),
        ("In which year was Clinton born?", "supported"),
    ]
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.text) == ("contradicted", DRAFT)
    contradicted, kept = verdict.scores
    # One of two decided questions.
    assert (contradicted.value, contradicted.inputs) == (0.5, (1.0, 2.0))
    # York and Hope share no letter at its place but "o": Y-H, o-o, r-p, k-e are 3 replacements
    # of 33 characters.
    assert kept.inputs == (3.0, 33.0)
    assert kept.value == pytest.approx(1 - 3 / 33)


async def test_where_the_evidence_agrees_nothing_is_edited():
    outcome = await play(
        "rarr",
        (QUESTION, EDITED),
        ("Write at most", PLAN),
        ("In which town", "True"),
        ("In which year", "True"),
        finds=FINDS,
    )
    assert outcome.answer.text == outcome.answer.original == EDITED
    verdict = answer_verdict(outcome)
    assert verdict.verdict == "supported"
    assert [score.value for score in verdict.scores] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("edit", "flag"),
    [
        ("", "revision_unusable"),
        ("I'm sorry, but I cannot correct that.", "revision_unusable"),
        ("克林顿1946年出生在霍普。", "revision_unusable"),
        # 33 characters: more than half of them would be changed.
        ("Bill Clinton, a president, first saw the light in Hope.", "edit_too_large"),
    ],
)
async def test_an_edit_that_cannot_be_used_leaves_the_text(edit: str, flag: str):
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "False"),
        ("Corrected text:", edit),
        finds=FINDS,
    )
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == (flag,)


async def test_what_nothing_is_found_for_is_not_decided():
    outcome = await play("rarr", (QUESTION, DRAFT), ("Write at most", PLAN))
    assert verdicts(outcome, "question")[0][1] == "not_enough"
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.value) == ("not_enough", None)


async def test_without_a_written_question_the_visitors_own_is_searched_for():
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most", "None"),
        (f"Question: {QUESTION}", "True"),
        finds={"Where": ["Clinton was born in York."]},
    )
    assert outcome.queries == [QUESTION]
    assert outcome.answer.flags == ("no_questions",)


async def test_a_gate_that_says_nothing_readable_decides_nothing():
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "Who knows"),
        ("Reply with one word only", "Perhaps"),
        finds=FINDS,
    )
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)


async def test_an_answer_is_not_supported_by_a_part_of_the_checks():
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most 6 questions", PLAN),
        ("Question: In which town", "Perhaps."),
        ("Reply with one word only", "Perhaps."),
        ("Question: In which year", "True"),
        finds=FINDS,
    )
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.value) == ("unchecked", 0.0)
    assert outcome.answer.flags == ("checks_incomplete",)


async def test_an_answer_is_not_supported_where_a_search_failed():
    script = Script(
        (QUESTION, DRAFT),
        ("Write at most 6 questions", PLAN),
        ("Question: In which year", "True"),
    )

    class Half(Finder):
        async def search(self, query: str, k: int) -> list[Passage]:
            if "town" in query:
                raise UnreachableError("The search is out of order.", remedy="Try again.")
            return await super().search(query, k)

    outcome = await run_method(METHODS["rarr"], QUESTION, script, shelf=Half(FINDS))
    script.check()
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("search_incomplete", "checks_incomplete")


async def test_an_answer_that_claims_nothing_is_not_researched():
    outcome = await play("rarr", (QUESTION, "I don't know."))
    assert outcome.answer.abstained
    assert answer_verdict(outcome).verdict == "unchecked"


async def test_a_judge_is_the_gate_where_the_model_judges_by_chance():
    judge = ClaimReader(lambda _: ClaimVerdict(0.1, 0.8, 0.1))
    outcome = await play(
        "rarr",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("Corrected text:", EDITED),
        finds=FINDS,
        models={"judge_1": judge},
        capabilities=TEXT.model_copy(update={"judges": False}),
    )
    assert [claim.statement for claim in judge.seen] == [DRAFT]
    assert outcome.answer.text == EDITED
    assert "weak_judge" not in outcome.answer.flags


TEXTS = st.text(alphabet="abc 霍", max_size=12)


@given(TEXTS, TEXTS)
def test_preservation_is_a_share(one: str, two: str):
    assert 0 <= preservation(one, two) <= 1
    assert preservation(one, one) == 1


def test_what_is_three_times_as_long_preserves_nothing():
    assert preservation("Hope", "Hope is a town") == 0
