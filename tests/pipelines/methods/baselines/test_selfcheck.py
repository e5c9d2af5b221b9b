"""SelfCheckGPT: each variant's score by hand, from a given answer and its samples."""

from __future__ import annotations

import json
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.methods.baselines.meanings import NgramModel, words_of
from pipelines.methods.baselines.selfcheck import question_score
from pipelines.models.base import Claim, GenerationRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.text import split_sentences
from tests.scripted.baselines import (
    ANSWER,
    FIRST,
    QUESTION,
    SECOND,
    Cosines,
    detect,
    on_answer,
    on_sentences,
    score,
    value_of,
)

SAMPLES = ("He was born in Hope.", "He was born in York.")


def reads(claim: Claim) -> ClaimVerdict:
    """Contradiction for Hope against York, half and half for the cat, else support."""
    (text,) = claim.evidence
    if "cat" in claim.statement:
        return ClaimVerdict(0.1, 0.1, 0.8)
    return ClaimVerdict(0.1, 0.7, 0.2) if "York" in text else ClaimVerdict(0.6, 0.2, 0.2)


async def test_nli_is_the_mean_probability_of_contradiction_without_neutral():
    outcome = await detect("selfcheck", drawn=SAMPLES, reads=reads)
    first, second = on_sentences(outcome)
    # 0.2 / (0.2 + 0.6) = 0.25 and 0.7 / (0.7 + 0.1) = 0.875: the mean is 0.5625.
    assert value_of(first) == pytest.approx(0.5625)
    assert first.deciding.inputs == pytest.approx((0.25, 0.875))
    # 0.1 / 0.2 twice.
    assert value_of(second) == pytest.approx(0.5)
    # (0.5625 + 0.5) / 2
    assert value_of(on_answer(outcome)) == pytest.approx(0.53125)
    assert [first.verdict, second.verdict] == ["doubtful", "confident"]
    assert on_answer(outcome).verdict == "doubtful"
    assert outcome.answer.text == ANSWER
    assert outcome.answer.flags == ("fewer_samples",)


async def test_a_judge_reads_sentence_and_sample_as_answers_to_the_question():
    seen: list[Claim] = []

    def keeps(claim: Claim) -> ClaimVerdict:
        seen.append(claim)
        return ClaimVerdict(1.0, 0.0, 0.0)

    await detect("selfcheck", "Hope", ["York"], reads=keeps)
    assert seen == [Claim(statement="Hope", evidence=(f"{QUESTION} York",), question=QUESTION)]


@pytest.mark.parametrize(
    ("verdict", "value"),
    [
        # Without contradiction at all, what is not support counts.
        (ClaimVerdict(0.3, 0.0, 0.7), 0.7),
        # Neutral alone says neither.
        (ClaimVerdict(0.0, 0.0, 1.0), 0.5),
        (ClaimVerdict(0.0, 0.4, 0.6), 1.0),
    ],
)
async def test_what_a_judge_without_contradiction_counts(verdict: ClaimVerdict, value: float):
    outcome = await detect("selfcheck", FIRST, ["York."], reads=lambda _: verdict)
    assert value_of(on_answer(outcome)) == pytest.approx(value)


async def test_a_main_model_that_judges_well_reads_itself():
    def says(request: GenerationRequest) -> str:
        asked = request.messages[-1].content
        return "False" if "York" in asked and "Hope" in asked else "True"

    outcome = await detect("selfcheck", FIRST, SAMPLES, says=says)
    # False once and True once.
    assert value_of(on_answer(outcome)) == pytest.approx(0.5, abs=0.01)


async def test_embedding_is_one_minus_the_mean_of_the_largest_cosines():
    near = {
        (FIRST, "One here."): 0.2,
        (FIRST, "Two there."): 0.8,
        (FIRST, "Three."): 0.4,
        (SECOND, "One here."): -0.5,
        (SECOND, "Two there."): -0.3,
        (SECOND, "Three."): 1.0,
    }
    outcome = await detect(
        "selfcheck",
        drawn=["One here. Two there.", "Three."],
        similarity=Cosines(near),
        variant="embedding",
    )
    first, second = on_sentences(outcome)
    # 1 - (max(0.2, 0.8) + 0.4) / 2 = 0.4; a negative cosine counts 0: 1 - (0 + 1) / 2 = 0.5.
    assert value_of(first) == pytest.approx(0.4)
    assert value_of(second) == pytest.approx(0.5)
    assert value_of(on_answer(outcome)) == pytest.approx(0.45)
    assert [one.verdict for one in (first, second)] == ["confident", "confident"]


async def test_prompt_counts_yes_0_no_1_and_anything_else_one_half():
    def says(request: GenerationRequest) -> str:
        asked = request.messages[0].content
        if "Sentence: He has" in asked:
            return "Perhaps."
        return "No" if "York" in asked else "Yes"

    outcome = await detect("selfcheck", drawn=[*SAMPLES, "In Rome."], says=says, variant="prompt")
    first, second = on_sentences(outcome)
    # (0 + 1 + 0) / 3
    assert value_of(first) == pytest.approx(1 / 3)
    # No reply was one: nothing follows.
    assert value_of(second) is None
    assert second.verdict == "unchecked"
    assert value_of(on_answer(outcome)) == pytest.approx(1 / 3)
    assert "comparisons_failed" in outcome.answer.flags

    def unsure(request: GenerationRequest) -> str:
        return "Perhaps." if "York" in request.messages[0].content else "Yes"

    outcome = await detect("selfcheck", FIRST, SAMPLES, says=unsure, variant="prompt")
    # (0 + 0.5) / 2
    assert value_of(on_answer(outcome)) == pytest.approx(0.25)


async def test_a_weak_judge_is_said():
    weak = await detect(
        "selfcheck", FIRST, SAMPLES, says=lambda _: "Yes", variant="prompt", reads=reads
    )
    assert "weak_judge" in weak.answer.flags
    judged = await detect("selfcheck", FIRST, SAMPLES, reads=reads)
    assert "weak_judge" not in judged.answer.flags


async def test_without_a_sample_nothing_is_decided():
    for variant in ("nli", "embedding", "prompt", "ngram"):
        outcome = await detect(
            "selfcheck", FIRST, [" "], variant=variant, similarity=Cosines({}), reads=reads
        )
        assert on_answer(outcome).verdict == "unchecked"
        assert outcome.answer.flags == ("fewer_samples", "not_checked")


# --- N-grams --------------------------------------------------------------------------------------


async def test_the_four_numbers_of_n_grams():
    outcome = await detect("selfcheck", "A b.", ["A a.", "A b b."], variant="ngram")
    whole = on_answer(outcome)
    # Words of all texts: a b, a a, a b b: 4 a and 3 b of 7.
    assert score(whole, "selfcheck_unigram_max").value == pytest.approx(log(7 / 3))
    assert score(whole, "selfcheck_unigram_avg").value == pytest.approx(
        (log(7 / 4) + log(7 / 3)) / 2
    )
    # Every sentence begins with a: p = 1. After a: b, a, b, so that p(b | a) = 2/3.
    assert score(whole, "selfcheck_bigram_max").value == pytest.approx(log(3 / 2))
    assert score(whole, "selfcheck_bigram_avg").value == pytest.approx(log(3 / 2) / 2)
    assert whole.deciding.name == "selfcheck_unigram_max"
    assert (whole.verdict, whole.deciding.high) == ("unchecked", None)
    outcome = await detect(
        "selfcheck",
        "A b.",
        ["A a.", "A b b."],
        variant="ngram",
        ngram="bigram_avg",
        threshold=0.2,
    )
    # log(1.5) / 2 = 0.203
    assert on_answer(outcome).verdict == "doubtful"


def test_words_are_in_lower_case_without_punctuation():
    assert words_of("Dr. Who's 1st-born!") == ["dr", "who", "s", "1st", "born"]
    assert words_of("克林顿出生在霍普。") == ["克林顿", "出生", "在", "霍普"]


@given(st.lists(st.text("ab .", min_size=1, max_size=20), max_size=4), st.integers(1, 3))
def test_every_sentence_of_the_texts_has_finite_surprisals(texts: list[str], order: int):
    model = NgramModel(order, texts)
    for text in texts:
        for sentence in split_sentences(text):
            values = model.surprisals(sentence.text)
            assert len(values) == len(words_of(sentence.text))
            assert all(value >= 0 for value in values)


def questions_of(request: GenerationRequest) -> str:
    """Two questions about Hope; the cat has one, and what surrounds the JSON does not matter."""
    asked = request.messages[-1].content
    if "Sentence of this text: He has" in asked:
        return '```json\n[{"question": "Which pet?", "right": "Cat", "wrong": ["Dog"]}]\n```'
    town = {"question": "Which town?", "right": "Hope", "wrong": ["York", "Rome", "York "]}
    person = {"question": "Who was born?", "right": "Clinton", "wrong": ["Bush"]}
    return json.dumps({"questions": [town, person, {"question": "No options?"}]})


def answers_of(request: GenerationRequest) -> str:
    """Letters by what stands in the text; the options are in the order of their words."""
    text, _, asked = request.messages[0].content.partition("Question:")
    if "Which town" in asked:
        # A. Hope  B. Rome  C. York  D. not said
        return "A" if "Hope" in text else "C" if "York" in text else "D"
    if "Which pet" in asked:
        # A. Cat  B. Dog  C. not said
        return "A" if "cat" in text else "C"
    # A. Bush  B. Clinton  C. not said
    return "B"


async def test_question_answering_counts_samples_that_answer_otherwise():
    def says(request: GenerationRequest) -> str:
        asked = request.messages[-1].content
        return questions_of(request) if "multiple-choice" in asked else answers_of(request)

    drawn = [*SAMPLES, "He was born in York, in winter.", "It rained."]
    outcome = await detect("selfcheck", drawn=drawn, says=says, variant="qa", samples=4)
    first, second = on_sentences(outcome)
    # The town: one sample agrees, two differ and one does not say: 4^2 / (4^1 + 4^2) = 0.8. The
    # person: all four agree: 1 / (4^4 + 1) = 1/257.
    assert first.deciding.inputs == pytest.approx((0.8, 1 / 257))
    assert value_of(first) == pytest.approx((0.8 + 1 / 257) / 2)
    # No sample says anything of a pet, so nothing is known.
    assert value_of(second) is None
    assert second.verdict == "unchecked"
    assert "comparisons_failed" in outcome.answer.flags


async def test_question_answering_without_any_question_checks_nothing():
    outcome = await detect("selfcheck", drawn=SAMPLES, says=lambda _: "Hm.", variant="qa")
    assert on_answer(outcome).verdict == "unchecked"
    assert {"not_checked", "comparisons_failed"} <= set(outcome.answer.flags)


@given(st.floats(0, 20), st.floats(0, 20))
def test_a_question_scores_by_what_prevails(agreeing: float, differing: float):
    found = question_score(agreeing, differing)
    assert 0 <= found <= 1
    assert (found > 0.5) == (differing > agreeing) or found == pytest.approx(0.5)
    assert found + question_score(differing, agreeing) == pytest.approx(1)
    # As the paper writes it.
    assert found == pytest.approx(4**differing / (4**agreeing + 4**differing))
