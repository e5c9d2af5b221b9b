"""EVER worked through by hand: what is checked, rectified, checked again, flagged."""

from __future__ import annotations

import pytest

from pipelines.methods.ever import Ever
from pipelines.run.events import RunFailed
from tests.scripted.bench import run_method
from tests.scripted.ever import (
    FIRST,
    FOUND,
    QUESTION,
    SECOND,
    TITLE,
    UNHANDED,
    WHOLE,
    EverModel,
    Part,
    asked_of,
    detail_of,
    draft_texts_hold,
    ever_run,
    judged_of,
    kinds,
    reasons,
    verdicts_of,
)

BOTH = {FIRST: ["chemist", "1931"], SECOND: ["Salt Works", "Bergen"]}
ONE = {"": FIRST}


async def test_a_clean_answer_is_written_sentence_by_sentence_and_stays():
    part = Part(texts={"": WHOLE, FIRST: f" {SECOND}"}, concepts=BOTH)
    outcome = await ever_run(part)
    assert outcome.answer.text == outcome.answer.original == WHOLE
    assert outcome.answer.flags == ()
    assert verdicts_of(outcome, 0) == [("chemist", "supported"), ("1931", "supported")]
    assert verdicts_of(outcome, 1) == [("Salt Works", "supported"), ("Bergen", "supported")]
    # The text once; each sentence: concepts once, a question and a verdict a concept: 1 + 2E calls
    # and E searches, with E = 2 twice.
    assert len(outcome.calls) == 1 + 2 * (1 + 2 * 2)
    assert len(outcome.queries) == 2 * 2
    # What nobody changed stays as it was written.
    assert outcome.drafts == [WHOLE]
    assert reasons(outcome) == ["original"]
    assert draft_texts_hold(outcome)


async def test_the_next_sentence_is_written_only_when_the_current_one_is_verified():
    rectified = "Ada Brandt was a botanist born in 1931."
    part = Part(
        texts={"": WHOLE, rectified: f" {SECOND}"},
        concepts={**BOTH, rectified: ["botanist"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part)
    order = kinds(outcome)
    assert order[:2] == ["write", "extract"]
    second = order.index("write", 1)
    # The questions and verdicts of the first sentence, also as it was rectified, came before.
    asked = ["extract", "revise", *3 * ["validate"], *3 * ["verify"]]
    assert sorted(order[2:second]) == asked
    assert order[second + 1] == "extract"
    verified = next(e for e in judged_of(outcome, "sentence") if e.sentence == 0)
    written = outcome.calls[second]
    assert verified.seq < written.seq
    assert asked_of(outcome)[second].messages[-1].content == rectified


async def test_what_is_contradicted_is_revised_from_the_evidence_and_checked_again():
    rectified = "Ada Brandt was a botanist born in 1931."
    part = Part(
        texts={"": WHOLE, rectified: f" {SECOND}"},
        concepts={**BOTH, rectified: ["botanist", "1931"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == f"{rectified} {SECOND}"
    assert outcome.answer.original == WHOLE
    assert outcome.answer.flags == ()
    # What follows the revised sentence is written anew, on the revised text.
    assert outcome.drafts == [WHOLE, rectified, f"{rectified} {SECOND}"]
    assert reasons(outcome) == ["original", "revise", "written"]
    assert verdicts_of(outcome, 0, 0) == [("chemist", "contradicted"), ("1931", "supported")]
    assert verdicts_of(outcome, 0, 1) == [("botanist", "supported"), ("1931", "supported")]
    asked = asked_of(outcome, "revise")[0]
    said = asked.messages[-1].content
    assert "“chemist” is contradicted. About chemist, as told." in said
    assert "“1931”" not in said
    assert f"[1] {TITLE}: Ada Brandt was a botanist born in 1931." in said
    assert draft_texts_hold(outcome)


async def test_the_headline_is_the_share_supported_as_first_written():
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": "False"}, rectified={})
    outcome = await ever_run(part)
    (ended,) = judged_of(outcome, "answer")
    score = ended.scores[0]
    # One of two concepts supported: 1 / 2.
    assert (score.value, score.inputs) == (0.5, (1.0, 2.0))
    assert (score.threshold, score.flagged) == (1.0, True)
    assert ended.verdict == "contradicted"
    assert (ended.draft, ended.text, ended.end) == (0, FIRST, len(FIRST))


async def test_what_is_undecided_is_rewritten_once_and_kept_when_verified():
    rectified = "Ada Brandt was born in 1931."
    part = Part(
        texts=ONE,
        concepts={**BOTH, rectified: ["1931"]},
        verdicts={"chemist": "NEI"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == rectified
    assert outcome.answer.flags == ()
    assert reasons(outcome) == ["original", "rewrite"]
    assert judged_of(outcome, "answer")[0].verdict == "not_enough"


@pytest.mark.parametrize("task", ["long", "chain"])
async def test_what_stays_undecided_is_kept_and_flagged_after_one_rewriting(task):
    rectified = "Ada Brandt was perhaps a chemist."
    part = Part(
        texts=ONE,
        concepts={**BOTH, rectified: ["chemist"]},
        verdicts={"chemist": "NEI"},
        rectified={FIRST: rectified, rectified: "Nobody asks for this."},
    )
    outcome = await ever_run(part, task=task, max_rounds=4)
    assert outcome.answer.text == rectified
    assert outcome.answer.flags == ("not_sure",)
    assert kinds(outcome).count("rewrite") == 1
    (verified,) = judged_of(outcome, "sentence")
    assert (verified.verdict, detail_of(verified).stopped) == ("not_enough", "finished")


async def test_contradicted_and_undecided_facts_are_corrected_in_one_pass():
    rectified = "Ada Brandt was a botanist."
    part = Part(
        texts=ONE,
        concepts={**BOTH, rectified: ["botanist"]},
        verdicts={"chemist": "False", "1931": "NEI"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == rectified
    assert reasons(outcome) == ["original", "revise_and_rewrite"]
    asked = asked_of(outcome, "revise_and_rewrite")[0]
    said = asked.messages[-1].content
    assert "“chemist” is contradicted." in said
    assert "“1931” is not supported." in said
    # Contradicted counts for more than undecided.
    assert judged_of(outcome, "answer")[0].verdict == "contradicted"


@pytest.mark.parametrize(("rounds", "texts"), [(1, ["B"]), (2, ["B", "C"]), (4, list("BCDE"))])
async def test_a_false_that_survives_the_last_round_is_flagged(rounds, texts):
    said = {name: f"Ada Brandt was a chemist called {name}." for name in "ABCDEF"}
    part = Part(
        texts={"": said["A"]},
        concepts={text: ["chemist"] for text in said.values()},
        verdicts={"chemist": "False"},
        rectified={said[a]: said[b] for a, b in zip("ABCDE", "BCDEF", strict=True)},
    )
    outcome = await ever_run(part, max_rounds=rounds)
    assert outcome.drafts == [said[name] for name in ["A", *texts]]
    assert outcome.answer.flags == ("contradicted",)
    (verified,) = judged_of(outcome, "sentence")
    assert detail_of(verified).stopped == "limit"
    # A look at the draft and one after each rectification.
    assert len(judged_of(outcome, "concept")) == rounds + 1


async def test_after_the_first_round_only_a_contradiction_is_worth_another():
    second, third = "Ada Brandt was a potter in 1933.", "Ada Brandt was a potter in 1932."
    part = Part(
        texts=ONE,
        concepts={**BOTH, second: ["potter", "1933"], third: ["potter", "1932"]},
        verdicts={"chemist": "False", "potter": "NEI", "1933": "False"},
        rectified={FIRST: second, second: third, third: "Nobody asks for this."},
    )
    outcome = await ever_run(part, max_rounds=4)
    assert outcome.answer.text == third
    assert reasons(outcome) == ["original", "revise", "revise_and_rewrite"]
    assert outcome.answer.flags == ("not_sure",)


@pytest.mark.parametrize(
    ("written", "stopped"),
    [
        ("", "unusable"),
        # A lead that nothing follows is nothing written.
        ("The sentence is:", "unusable"),
        (f"**The sentence is:**\n\n{FIRST}", "same"),
        (FIRST, "same"),
    ],
)
async def test_a_rectification_that_changes_nothing_ends_the_rounds(written, stopped):
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": "False"}, rectified={FIRST: written})
    outcome = await ever_run(part, max_rounds=4)
    assert outcome.answer.text == FIRST
    unusable = ("rectification_unusable",) if stopped == "unusable" else ()
    assert outcome.answer.flags == ("contradicted", *unusable)
    assert detail_of(judged_of(outcome, "sentence")[0]).stopped == stopped
    assert kinds(outcome).count("revise") == 1


async def test_a_sentence_without_a_concept_passes():
    opinion = "Ada Brandt was truly admirable."
    outcome = await ever_run(Part(texts={"": opinion}))
    assert outcome.answer.text == opinion
    assert outcome.answer.flags == ()
    assert outcome.queries == []
    (ended,) = judged_of(outcome, "answer")
    assert (ended.verdict, ended.scores[0].value) == ("unchecked", None)
    assert not ended.scores[0].flagged


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I cannot help with that.",
        "- pianist\n- Vienna",
        "{}[",
        "null",
        "{}",
        "[]",
        "N/A",
    ],
)
async def test_a_list_that_cannot_be_read_never_passes_for_clean(reply):
    outcome = await ever_run(Part(texts=ONE, concepts={FIRST: reply}))
    assert outcome.answer.text == FIRST
    assert outcome.answer.flags == ("parts_dropped",)
    # It was asked for once more before what can be seen was taken instead.
    assert kinds(outcome)[:3] == ["write", "extract", "extract"]
    assert verdicts_of(outcome, 0) == [("1931", "supported")]
    (verified,) = judged_of(outcome, "sentence")
    assert verified.verdict == "unchecked"
    detail = detail_of(judged_of(outcome, "concepts")[0])
    assert (detail.listed, detail.dropped) == ("entities", 1)
    (ended,) = judged_of(outcome, "answer")
    assert (ended.verdict, ended.scores[0].inputs) == ("unchecked", (1.0, 2.0))


@pytest.mark.parametrize("reply", ["It is untrue or true.", "", "Verdict: maybe", "True, False"])
async def test_a_verdict_that_cannot_be_read_is_neither_true_nor_undecided(reply):
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": reply})
    outcome = await ever_run(part)
    assert verdicts_of(outcome, 0) == [("chemist", "unchecked"), ("1931", "supported")]
    assert outcome.answer.text == FIRST
    assert outcome.answer.flags == ("concept_unchecked",)
    assert reasons(outcome) == ["original"]
    # One of two is supported.
    score = judged_of(outcome, "answer")[0].scores[0]
    assert (score.value, score.inputs) == (0.5, (1.0, 2.0))
    assert judged_of(outcome, "answer")[0].verdict == "unchecked"


async def test_a_verdict_missing_from_the_reasoning_is_asked_for_alone():
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": "Brandt knew plants."}, again="NEI")
    outcome = await ever_run(part)
    (first,) = [e for e in judged_of(outcome, "concept") if e.text == "chemist"]
    assert first.verdict == "not_enough"
    # The only token of the reply has probability 0.9.
    assert first.scores[0].name == "verdict_probability"
    assert first.scores[0].value == pytest.approx(0.9)


@pytest.mark.parametrize("task", ["long", "chain", "short"])
async def test_an_answer_that_stays_empty_is_an_error(task):
    model = EverModel(Part(texts={"": ""}))
    outcome = await run_method(Ever(), QUESTION, model, shelf=FOUND, task=task)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "invalid_reply"
    assert kinds(outcome) == ["write"] * 2


async def test_a_model_whose_verdicts_are_chance_is_marked():
    weak = UNHANDED.model_copy(update={"judges": False})
    outcome = await ever_run(Part(texts=ONE), capabilities=weak)
    assert outcome.answer.flags == ("weak_judge",)


def test_what_is_needed_depends_on_the_variant():
    ever = Ever()
    assert [n.reason for n in ever.needs(ever.settings())] == ["model", "evidence"]
    assert [n.reason for n in ever.needs(ever.settings({"variant": "nrg_sq"}))] == ["model"]


COMMENTS = [
    "The evidence does not support the claim that Ada Brandt was a chemist.",
    "Based on the evidence, Ada Brandt was a botanist.",
    "The sentence should be: Ada Brandt was a botanist.",
    "Ada Brandt was a botanist. The passages do not say when she was born.",
    "Was Ada Brandt a botanist?",
    "I don't know.",
    "她是植物学家。",
]


@pytest.mark.parametrize("written", COMMENTS)
@pytest.mark.parametrize("verdict", ["False", "NEI"])
async def test_what_is_no_sentence_of_the_answer_replaces_no_sentence(written, verdict):
    part = Part(texts=ONE, concepts=BOTH, verdicts={"chemist": verdict}, rectified={FIRST: written})
    outcome = await ever_run(part)
    assert outcome.answer.text == FIRST
    doubt = "contradicted" if verdict == "False" else "not_sure"
    assert outcome.answer.flags == (doubt, "rectification_unusable")
    assert detail_of(judged_of(outcome, "sentence")[0]).stopped == "unusable"
    assert reasons(outcome) == ["original"]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("Here is the corrected sentence: {}", "Ada Brandt was a botanist."),
        ("Here is the corrected sentence:\n\n{}\n\nThe evidence says so.", "Ada was a botanist."),
        ("{}\nNote that the evidence says nothing about 1931.", "Ada was a botanist."),
        # Words that the sentence or the question has are no comment.
        ("{}", "Ada Brandt crossed the Northwest Passage in 1931."),
    ],
)
async def test_words_around_a_rectified_sentence_are_left_out(written, sentence):
    part = Part(
        texts=ONE,
        concepts=BOTH,
        verdicts={"chemist": "False"},
        rectified={FIRST: written.format(sentence)},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == sentence
    assert outcome.answer.flags == ()


async def test_a_rectified_sentence_keeps_its_full_stop():
    part = Part(
        texts={"": WHOLE, "Ada Brandt was a botanist.": f" {SECOND}"},
        concepts=BOTH,
        verdicts={"chemist": "False"},
        rectified={FIRST: "Ada Brandt was a botanist"},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == f"Ada Brandt was a botanist. {SECOND}"


async def test_facts_over_the_limit_leave_a_sentence_unchecked_in_part():
    outcome = await ever_run(Part(texts=ONE, concepts=BOTH), max_concepts=1)
    assert verdicts_of(outcome, 0) == [("chemist", "supported")]
    assert judged_of(outcome, "sentence")[0].verdict == "unchecked"
    assert judged_of(outcome, "answer")[0].verdict == "unchecked"
    assert outcome.answer.flags == ("concepts_left_out",)
    # With all of them checked there is nothing to remark.
    assert (await ever_run(Part(texts=ONE, concepts=BOTH))).answer.flags == ()


async def test_the_facts_of_an_answer_are_divided_among_its_sentences():
    # Of an answer of at most three sentences, each may have one of three facts; nothing is less.
    for most in (3, 5, 1):
        outcome = await ever_run(Part(texts=ONE, concepts=BOTH), max_answer_concepts=most)
        assert verdicts_of(outcome, 0) == [("chemist", "supported")]
        assert outcome.answer.flags == ("concepts_left_out",)
    outcome = await ever_run(Part(texts=ONE, concepts=BOTH), max_answer_concepts=6)
    assert outcome.answer.flags == ()


async def test_what_the_question_is_about_is_no_fact_to_check():
    part = Part(texts=ONE, concepts={FIRST: ["Ada Brandt", "chemist", "Brandt", "1931"]})
    outcome = await ever_run(part)
    assert verdicts_of(outcome, 0) == [("chemist", "supported"), ("1931", "supported")]


async def test_a_list_of_nothing_but_the_subject_is_asked_for_again():
    outcome = await ever_run(Part(texts=ONE, concepts={FIRST: ["Ada Brandt"]}))
    assert kinds(outcome)[:3] == ["write", "extract", "extract"]
    assert outcome.answer.flags == ("parts_dropped",)


async def test_a_chain_without_an_answer_is_an_abstention():
    part = Part(texts=ONE, concepts=BOTH, short="I don't know.")
    outcome = await ever_run(part, task="chain")
    assert outcome.answer.abstained
    assert (outcome.answer.text, outcome.answer.short) == ("", None)
    assert outcome.drafts == [FIRST, ""]


async def test_to_know_nothing_more_ends_the_text():
    rectified = "Ada Brandt was a botanist."
    part = Part(
        texts={"": WHOLE, rectified: " I don't know any more about her."},
        concepts={**BOTH, rectified: ["botanist"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: rectified},
    )
    outcome = await ever_run(part)
    assert outcome.answer.text == rectified
