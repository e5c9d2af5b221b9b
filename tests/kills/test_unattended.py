"""Twenty questions, every method, the bundled model: left alone, and killed three times."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.methods.registry import METHODS
from tests.kills.unattended import Evaluation, write_questions

QUESTIONS = 20


@pytest.mark.verify
def test_what_is_killed_three_times_comes_to_the_same_table(tmp_path: Path):
    questions = write_questions(tmp_path / "triviaqa.json", QUESTIONS)
    answers = QUESTIONS * len(METHODS)
    alone = Evaluation(tmp_path / "alone", questions)
    tables = [alone.work()]
    killed = Evaluation(tmp_path / "killed", questions)
    for share in (0.2, 0.5, 0.8):
        assert killed.work(until=int(share * answers)) == ""
    tables.append(killed.work())
    assert all(name in table for name in METHODS for table in tables)

    expected, found = alone.stored(), killed.stored()
    for one in (expected, found):
        assert (len(one["outcomes"]), one["open"], one["uncounted"]) == (answers, 0, 0)
    # Nothing was asked again whose reply was stored, and nothing else was asked.
    assert set(found["calls"].values()) == {1}
    assert found["calls"] == expected["calls"]
    assert found["outcomes"] == expected["outcomes"]
    assert killed.scores() == alone.scores()
