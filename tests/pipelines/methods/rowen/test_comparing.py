"""Answers in two languages that only an embedder reads: figures and names go before meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from pipelines.methods.rowen.check import EMBEDDER, compared
from pipelines.run.scope import Scope

QUESTION = "In which year did the town hall of 1900 burn down?"


class Near:
    """A step whose embedder finds any two texts alike."""

    async def similarities(self, *_: Sequence[str]) -> tuple[tuple[float]]:
        return ((0.9,),)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("In 1901.", "1901年。", ("figures", 1.0)),
        ("In 1901.", "1907年。", ("figures", 0.0)),
        # The question's own figure is nobody's answer.
        ("After 1900, in 1901.", "1900年之后。", ("similarity", 1.0)),
        ("In Paris.", "巴黎。", ("names", 1.0)),
        ("In Washington.", "纽约。", ("names", 0.0)),
        ("In spring.", "春天。", ("similarity", 1.0)),
    ],
)
async def test_how_two_answers_are_compared(first, second, expected):
    step = cast(Scope, Near())
    how, hard, _ = await compared(
        step, "en", "same_cl", QUESTION, first, second, yes_no=False, role=EMBEDDER
    )
    assert (how, hard) == expected
