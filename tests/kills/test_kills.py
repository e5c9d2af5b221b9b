"""Processes that are killed (-9) while they store something: nothing acknowledged is lost."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.kills.counting import counting
from tests.kills.killing import Killer
from tests.kills.scenarios import (
    Asking,
    Downloading,
    Evaluating,
    Importing,
    Indexing,
    Migrating,
    Serving,
)
from tests.kills.work import AT_ONCE
from tests.pipelines.models.hub import serve_hub

SEED = 17


@pytest.fixture
def killer(tmp_path: Path) -> Killer:
    folder = tmp_path / "printed"
    folder.mkdir()
    return Killer(folder, Random(SEED))


def test_a_few_kills_lose_nothing(killer: Killer, tmp_path: Path):
    asking = Asking(killer, tmp_path / "asked")
    indexing = Indexing(killer, tmp_path / "index")
    for _ in range(3):
        asking.kill()
        indexing.kill()
    assert killer.kills == 6


@pytest.mark.verify
def test_kills_of_questions_lose_nothing(killer: Killer, tmp_path: Path):
    asking = Asking(killer, tmp_path / "asked")
    for _ in range(35):
        asking.kill()
    # The moments were spread over all of a run: before it, in it, after it.
    assert asking.interrupted
    assert "run_finished" in asking.ends
    assert None in asking.ends


@pytest.mark.verify
def test_kills_of_evaluations_ask_for_nothing_twice(killer: Killer, tmp_path: Path):
    with counting() as (address, counts):
        evaluating = Evaluating(killer, tmp_path / "evaluated", address, counts)
        while killer.kills < 30:
            evaluating.kill()
    # They fell on the work, not only before and after it.
    assert evaluating.further >= 5
    # A kill falls on at most so many calls: each answer makes a few at the same time.
    print(
        f"{killer.kills} kills: {evaluating.asked_again} requests were made again, which were in"
        f" flight or not yet stored; {evaluating.answered_again} of them had been answered"
    )
    assert evaluating.asked_again <= killer.kills * 3 * AT_ONCE


@pytest.mark.verify
def test_kills_of_imports_lose_nothing(killer: Killer, tmp_path: Path):
    importing = Importing(killer, tmp_path / "imported")
    for _ in range(20):
        importing.kill()
    assert 0 < len(importing.acknowledged) < 20


@pytest.mark.verify
def test_kills_of_indexing_leave_an_index_or_another(killer: Killer, tmp_path: Path):
    indexing = Indexing(killer, tmp_path / "index")
    for _ in range(18):
        indexing.kill()


@pytest.mark.verify
def test_kills_of_migrations_leave_the_old_schema_or_the_new(killer: Killer, tmp_path: Path):
    migrating = Migrating(killer, tmp_path / "migrated")
    for _ in range(15):
        migrating.kill()
    assert set(migrating.outcomes) == {True, False}


@pytest.mark.verify
def test_kills_of_downloads_leave_whole_files(killer: Killer, tmp_path: Path):
    with serve_hub() as hub:
        downloading = Downloading(killer, tmp_path / "data", hub, os.urandom(30_000_000))
        for _ in range(10):
            downloading.kill()


@pytest.mark.verify
def test_kills_of_the_space_lose_nothing(killer: Killer, tmp_path: Path):
    serving = Serving(killer, tmp_path / "data")
    for _ in range(12):
        serving.kill()
    assert serving.finished
    assert serving.interrupted
