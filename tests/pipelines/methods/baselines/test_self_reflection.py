"""Self-reflection worked through by hand: knowledge, answer, and the loops around them."""

from __future__ import annotations

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from tests.scripted.script import (
    QUESTION,
    TEXT,
    answer_verdict,
    play,
    turns,
    verdicts,
    written,
)

KNOWLEDGE = "Clinton comes from Arkansas. He was born in Hope."
WRONG = "Clinton comes from Arkansas. He was born in York."


async def test_what_is_factual_consistent_and_relevant_at_once_takes_five_calls():
    outcome = await play(
        "self_reflection",
        ("Write down the background knowledge", KNOWLEDGE),
        ("Is everything in this text factually right?", "YES"),
        (f"Background knowledge: {KNOWLEDGE}", "In Hope."),
        ("Does the answer agree with the background knowledge?", "YES"),
        ("Does this answer give what the question asks for?", "YES"),
    )
    assert outcome.answer.text == outcome.answer.original == "In Hope."
    assert outcome.answer.flags == ()
    assert verdicts(outcome, "knowledge") == [(KNOWLEDGE, "confident")]
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.deciding.name) == ("confident", "knowledge_agreement")
    assert (verdict.deciding.value, verdict.deciding.threshold) == (1.0, 0.5)


async def test_knowledge_that_does_not_score_as_factual_is_refined():
    outcome = await play(
        "self_reflection",
        ("Write down the background knowledge", WRONG),
        (f"factually right?\n\n{WRONG}", "NO"),
        (f"Background knowledge: {WRONG}", KNOWLEDGE),
        (f"factually right?\n\n{KNOWLEDGE}", "YES"),
        (f"Background knowledge: {KNOWLEDGE}", "In Hope."),
        ("Does the answer agree", "YES"),
        ("Does this answer give", "YES"),
    )
    assert verdicts(outcome, "knowledge") == [(WRONG, "doubtful"), (KNOWLEDGE, "confident")]
    assert outcome.answer.text == "In Hope."


async def test_an_answer_at_odds_with_the_knowledge_is_refined_and_checked_again():
    outcome = await play(
        "self_reflection",
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on the background knowledge", "In York."),
        ("Answer: In York.\n\nDoes the answer agree", "NO"),
        ("Write it again so that it agrees", "In Hope."),
        ("Answer: In Hope.\n\nDoes the answer agree", "YES"),
        ("Does this answer give", "YES"),
    )
    assert (outcome.answer.original, outcome.answer.text) == ("In York.", "In Hope.")
    # The verdict is that on the original.
    assert (answer_verdict(outcome).text, answer_verdict(outcome).verdict) == (
        "In York.",
        "doubtful",
    )
    assert outcome.answer.flags == ()


async def test_a_check_that_says_neither_is_remarked_on():
    outcome = await play(
        "self_reflection",
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on the background knowledge", "In York."),
        ("Does the answer agree", "Who knows."),
        ("YES or NO", "Who knows."),
        ("Does this answer give", "YES"),
    )
    assert outcome.answer.flags == ("checks_incomplete",)
    assert answer_verdict(outcome).verdict == "unchecked"


async def test_the_loops_are_bounded():
    outcome = await play(
        "self_reflection",
        ("Write down", WRONG),
        ("factually right", "NO"),
        ("Rely on the background knowledge", "In York."),
        ("Does the answer agree", "NO"),
        ("Does this answer give", "NO"),
        knowledge_rounds=0,
        answer_rounds=0,
        restarts=0,
    )
    assert outcome.answer.flags == ("still_inconsistent", "not_answered")


async def test_an_answer_beside_the_question_begins_all_again_at_random():
    outcome = await play(
        "self_reflection",
        ("Write down", WRONG),
        ("factually right", "YES"),
        ("Rely on", "He is a politician."),
        ("Does the answer agree", "YES"),
        ("Does this answer give", "NO"),
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on", "In Hope."),
        ("Does the answer agree", "YES"),
        ("Does this answer give", "YES"),
    )
    assert outcome.answer.text == "In Hope."
    temperatures = [request.temperature for request in written(outcome)]
    # Verdicts are choices; of the texts the first two are greedy, those of the second attempt not.
    assert [t for t in temperatures if t] == [1.0, 1.0]


async def test_without_usable_knowledge_nothing_is_compared():
    outcome = await play(
        "self_reflection",
        ("Write down", "I'm sorry, but I cannot help with that."),
        ("in one or two short, factual sentences", "In Hope."),
        ("Does this answer give", "YES"),
    )
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("no_knowledge",)


async def test_a_refinement_that_cannot_be_used_leaves_the_answer():
    outcome = await play(
        "self_reflection",
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on", "In York."),
        ("Does the answer agree", "NO"),
        ("Write it again", ""),
        ("Does this answer give", "YES"),
    )
    assert outcome.answer.text == "In York."
    assert outcome.answer.flags == ("revision_unusable", "still_inconsistent")


async def test_what_a_weak_model_rewrites_does_not_take_the_answers_place():
    outcome = await play(
        "self_reflection",
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on", "In York."),
        ("Does the answer agree", "NO"),
        ("Write it again", "In Hope."),
        ("Does this answer give", "YES"),
        capabilities=TEXT.model_copy(update={"weak": True, "judges": False}),
    )
    assert outcome.answer.text == outcome.answer.original == "In York."
    assert outcome.answer.flags == ("weak_judge", "revision_not_taken", "still_inconsistent")


async def test_a_lower_threshold_is_re_evaluated_without_a_new_call():
    outcome = await play(
        "self_reflection",
        ("Write down", KNOWLEDGE),
        ("factually right", "YES"),
        ("Rely on", "In York."),
        ("Does the answer agree", "NO"),
        ("Write it again", "In Hope."),
        ("Does the answer agree", "YES"),
        ("Does this answer give", "YES"),
    )
    again = reevaluate(
        outcome.trace,
        METHODS["self_reflection"],
        METHODS["self_reflection"].settings({"threshold": 1.0}),
    )
    assert again.diverges_at is None
    assert again.answer == outcome.answer
    assert QUESTION in turns(outcome)[0][-1].content
