"""People who label while the process is killed (-9): no label is lost, doubled or misattributed."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.kills.annotating import Annotating
from tests.kills.killing import Killer
from tests.postgresql import new_database, private_server

PEOPLE, ITEMS, OVERLAP, KILLS = 50, 200, 3, 5


@pytest.fixture
def killer(tmp_path: Path) -> Killer:
    folder = tmp_path / "printed"
    folder.mkdir()
    return Killer(folder, Random(19))


def label_and_kill(killer: Killer, url: str, measured: str) -> None:
    whole = Annotating(killer, measured, PEOPLE, ITEMS, OVERLAP)
    began = time.monotonic()
    assert whole.work(None)
    longest = time.monotonic() - began
    whole.check_finished()
    annotating = Annotating(killer, url, PEOPLE, ITEMS, OVERLAP)
    kills = 0
    while kills < KILLS:
        ended = annotating.work(longest / KILLS)
        kills += 1
        assert not ended, "It ended before it was killed often enough."
    while not annotating.work(None):
        pass
    annotating.check_finished()
    print(
        f"{PEOPLE} people, {ITEMS} items with {OVERLAP} labels each, {kills} kills: "
        f"{len(annotating.stored)} labels acknowledged, {annotating.resent} requests sent again; "
        f"{longest:.0f} s without a kill"
    )
    assert len(annotating.stored) >= ITEMS * OVERLAP


@pytest.mark.verify
def test_annotation_survives_kills_on_sqlite(killer: Killer, tmp_path: Path):
    label_and_kill(killer, f"sqlite:///{tmp_path}/runs.db", f"sqlite:///{tmp_path}/whole.db")


@pytest.mark.verify
def test_annotation_survives_kills_on_postgresql(killer: Killer):
    with private_server() as server:
        label_and_kill(killer, new_database(server.url), new_database(server.url))
