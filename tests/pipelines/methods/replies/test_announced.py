"""The bare answer of a text: what marks it, and where it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.methods.replies.announced import read_answer, unannounced


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("He was born in Hope.\nAnswer: Hope", "Hope"),
        ("He was born there. Answer: Hope.", "Hope"),
        ("Thinking.\n**Final answer:** Hope", "Hope"),
        ("**Answer: Hope**", "Hope"),
        ("Answer:\nHope", "Hope"),
        ("Answer: “Hope”", "Hope"),
        ("So the answer is Hope. It lies in Arkansas.", "Hope"),
        ("The answer is Hope because he was born there.", "Hope"),
        ("The answer is no, since he was older.", "no"),
        ("The answer is: 3.5 million", "3.5 million"),
        ("The final answer is Washington, D.C.", "Washington, D.C."),
        ("The final answer is $\\boxed{42}$.", "$42$"),
        # A line comes before a phrase, and the last of a kind counts.
        ("The answer is York. No.\nAnswer: Hope\nThe answer is Paris.", "Hope"),
        ("The answer is York. But wait, the answer is Hope.", "Hope"),
        ("The answer is Dr. No. He lived on an island.", "Dr. No"),
        ("So the answer is J. R. Smith.", "J. R. Smith"),
        ("The answer is 3.14. It is a number.", "3.14"),
        ("他生于1950年。所以答案是：北京。", "北京"),
        # What a model goes on to ask itself is not this question's answer.
        ("Answer: Hope\nQuestion: Where was Bush born?\nAnswer: New Haven", "Hope"),
        ("推理。\n答案：霍普。", "霍普"),
        ("因此，答案是霍普。霍普在阿肯色州。", "霍普"),
        ("最终答案为“霍普”。", "霍普"),
        # Nothing marks an answer.
        ("He was born in Hope.", ""),
        ("The answer is not York.", ""),
        ("The answer is unknown to me.", ""),
        ("Answer:", ""),
        ("", ""),
    ],
)
def test_an_answer_ends_with_its_line_its_sentence_or_its_reason(text: str, answer: str):
    assert read_answer(text) == answer


def test_an_answer_whose_end_is_missing_is_none():
    assert read_answer("Reasons.\nAnswer: The Battle of", cut_off=True) == ""
    assert read_answer("The answer is Hope. He was bo", cut_off=True) == "Hope"
    assert read_answer("Answer: Hope\nThis is", cut_off=True) == "Hope"


@given(st.text(max_size=80), st.text(max_size=40))
def test_an_answer_is_one_line_that_stands_in_the_text(before: str, after: str):
    answer = read_answer(f"{before}\nAnswer: {after}")
    assert "\n" not in answer
    assert answer in f"{before}\nAnswer: {after}" or "\\boxed" in after + before


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("The answer to this question is: Ada Lovelace.", "Ada Lovelace."),
        ("答案是：曹雪芹。", "曹雪芹。"),
        ("The answer came late.", "The answer came late."),
    ],
)
def test_an_answer_does_not_announce_itself(written: str, answer: str):
    assert unannounced(written) == answer
