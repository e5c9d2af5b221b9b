"""Three questions drawn by the day, every method, the bundled model: alone, and killed three times.

Its results are held against two evaluations that nobody disturbed: one of all questions, which gets
the recorded replies and may ask for nothing else; and one of the questions in which it was killed,
for which the model writes everything anew.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.drawing import drawn_today
from tests.kills.replayed import undisturbed
from tests.kills.unattended import ABLE, Evaluation, as_numbers, same, write_questions

QUESTIONS = 20
DRAWN = 3
KILLED_IN = (0, 1, 2)
"""The places among those drawn at which the process is killed, which are answered once more."""


@pytest.mark.verify
@pytest.mark.alone
def test_what_is_killed_three_times_comes_to_the_same_results(tmp_path: Path):
    drawn = sorted(drawn_today().sample(range(QUESTIONS), DRAWN))
    killed = Evaluation(tmp_path / "killed", write_questions(tmp_path / "all.json", drawn))
    half = len(ABLE) // 2
    for place in KILLED_IN:
        assert killed.work(until=place * len(ABLE) + half) == ""
    table = killed.work()
    assert all(name in table for name in ABLE)
    found = killed.stored()
    assert (len(found.outcomes), found.open, found.uncounted) == (DRAWN, 0, 0)
    assert {len(outcomes) for outcomes in found.outcomes.values()} == {len(ABLE)}
    # Nothing was asked again whose reply was stored.
    assert {times for calls in found.calls.values() for times in calls.values()} == {1}

    again, recording = asyncio.run(undisturbed(killed, tmp_path / "again"))
    assert (recording.missing, recording.unread) == ([], set())
    assert again.stored() == found
    assert again.scores() == killed.scores()
    assert again.table() == killed.table()

    fresh = write_questions(tmp_path / "some.json", [drawn[place] for place in KILLED_IN])
    alone = Evaluation(tmp_path / "alone", fresh)
    alone.work()
    expected = alone.stored()
    for question, outcomes in expected.outcomes.items():
        assert same(found.outcomes[question], outcomes)
        assert found.calls[question] == expected.calls[question]
    scores = killed.scores()
    for key, values in alone.scores().items():
        assert scores[key].keys() == values.keys()
        assert same(as_numbers(scores[key].values()), as_numbers(values.values()))
