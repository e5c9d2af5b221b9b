"""Answers that state no fact are found supported by hardly anything, with the bundled judges."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.engine.checking import BY_JUDGES, checked_text, problem_of
from research.measure.effort import check_all
from research.measure.no_facts import ANSWERS, answers
from tests.drawing import drawn_today, seed_of_the_day

DRAWN, MOST = 16, 2
"""Answers that a day draws, and those that may be found supported by each."""


def test_the_answers_are_always_the_same() -> None:
    assert len(answers()) == ANSWERS
    assert answers() == answers()


@pytest.mark.verify
def test_answers_without_a_fact_are_not_supported() -> None:
    every = [one for one in answers() if problem_of(one) is None]
    given = drawn_today().sample(every, DRAWN)
    views = asyncio.run(check_all(given, BY_JUDGES))
    supported: dict[str, list[str]] = {"together": [], "haarag": []}
    for one, view in zip(given, views, strict=True):
        found = checked_text(view)
        assert found is not None
        verdicts = {each.method: each.verdict for each in found.detectors}
        verdicts["together"] = found.together.verdict if found.together else None
        for name, of in supported.items():
            if verdicts[name] in ("supported", "confident"):
                of.append(f"{one.question} {one.text}")
    told = f"drawn by {seed_of_the_day()}: {supported}"
    assert all(len(of) <= MOST for of in supported.values()), told
