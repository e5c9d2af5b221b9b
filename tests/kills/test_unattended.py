"""Twenty questions, every method, the bundled model: left alone, and killed three times."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.methods.registry import METHODS
from tests.kills.unattended import Evaluation, as_numbers, same, write_questions

QUESTIONS = 20
KILLED_IN = (4, 10, 16)
"""The questions in which the process is killed."""

ALONE = KILLED_IN
"""The questions that are answered once more, undisturbed, which takes time."""


@pytest.mark.verify
def test_what_is_killed_three_times_comes_to_the_same_results(tmp_path: Path):
    killed = Evaluation(
        tmp_path / "killed", write_questions(tmp_path / "all.json", range(QUESTIONS))
    )
    half = len(METHODS) // 2
    for question in KILLED_IN:
        assert killed.work(until=question * len(METHODS) + half) == ""
    table = killed.work()
    assert all(name in table for name in METHODS)
    found = killed.stored()
    assert (len(found.outcomes), found.open, found.uncounted) == (QUESTIONS, 0, 0)
    assert {len(outcomes) for outcomes in found.outcomes.values()} == {len(METHODS)}
    # Nothing was asked again whose reply was stored.
    assert {times for calls in found.calls.values() for times in calls.values()} == {1}

    alone = Evaluation(tmp_path / "alone", write_questions(tmp_path / "some.json", ALONE))
    alone.work()
    expected = alone.stored()
    for question, outcomes in expected.outcomes.items():
        assert same(found.outcomes[question], outcomes)
        assert found.calls[question] == expected.calls[question]
    scores, undisturbed = killed.scores(), alone.scores()
    for key, values in undisturbed.items():
        assert scores[key].keys() == values.keys()
        assert same(as_numbers(scores[key].values()), as_numbers(values.values()))
