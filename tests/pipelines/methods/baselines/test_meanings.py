"""Answers sorted by meaning, the entropies over the classes, and ROUGE-L, by hand."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pipelines.base import Generation, Token
from pipelines.methods.baselines.meanings import (
    discrete_entropy,
    lexical_similarity,
    likelihood_entropy,
    mean_logprob,
    rouge_l,
)

CLASSES = st.lists(st.integers(0, 3), min_size=1, max_size=8)


def test_discrete_entropy_is_that_of_the_shares():
    assert discrete_entropy([0, 0, 0]) == 0.0
    assert discrete_entropy([0, 1]) == pytest.approx(log(2))
    # 3/4 and 1/4: -(0.75 log 0.75 + 0.25 log 0.25) = 0.5623
    assert discrete_entropy([0, 0, 1, 0]) == pytest.approx(0.562335, abs=1e-6)
    assert discrete_entropy([]) is None


def test_likelihood_entropy_weighs_answers_by_their_mean_probability():
    # exp: 0.5 + 0.25 for class 0, 0.25 for class 1: again 3/4 and 1/4.
    logprobs = [log(0.5), log(0.25), log(0.25)]
    assert likelihood_entropy([0, 0, 1], logprobs) == pytest.approx(0.562335, abs=1e-6)
    # 0.5 against 0.5, although class 1 has two of the three answers.
    logprobs = [log(0.5), log(0.25), log(0.25)]
    assert likelihood_entropy([0, 1, 1], logprobs) == pytest.approx(log(2))


@given(CLASSES)
def test_entropies_lie_between_0_and_the_log_of_the_number_of_answers(classes: list[int]):
    discrete = discrete_entropy(classes)
    assert discrete is not None
    assert 0 <= discrete <= log(len(classes)) + 1e-9
    # Equally likely answers weigh alike.
    assert likelihood_entropy(classes, [-1.5] * len(classes)) == pytest.approx(discrete)


def test_the_likelihood_of_an_answer_is_normalised_by_its_length():
    tokens = tuple(Token(text="a", start=n, end=n + 1, logprob=-1.0 - n) for n in range(3))
    assert mean_logprob(Generation(text="aaa", tokens=tokens)) == pytest.approx(-2.0)
    unknown = Token(text="a", start=3, end=4)
    assert mean_logprob(Generation(text="aaaa", tokens=(*tokens, unknown))) is None
    assert mean_logprob(Generation(text="aaa")) is None


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence():
    # The subsequence a c d has 3 of 4 and 3 of 5 words: 2 * 3 / 9.
    assert rouge_l(["a", "b", "c", "d"], ["a", "c", "x", "d", "y"]) == pytest.approx(6 / 9)
    assert rouge_l([], []) == 1.0
    assert rouge_l(["a"], []) == 0.0


@given(*[st.lists(st.sampled_from("abc"), min_size=1, max_size=8)] * 2)
def test_rouge_l_is_that_of_the_reference(one: list[str], other: list[str]):
    reference = RougeScorer(["rougeL"]).score(" ".join(one), " ".join(other))["rougeL"]
    assert rouge_l(one, other) == pytest.approx(reference.fmeasure)


def test_lexical_similarity_is_the_mean_over_pairs():
    # in hope, in hope: 1; in hope, york: 0 twice.
    assert lexical_similarity(["In Hope.", "in hope", "York"]) == pytest.approx(1 / 3)
    assert lexical_similarity(["Hope"]) is None
