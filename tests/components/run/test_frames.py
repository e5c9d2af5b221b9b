"""The pictures of a run that was played ahead, and that they are put together again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.base.words import Catalogue
from components.run.frames import PERIOD, Picture, packed, pictures
from components.run.report import PAGES, page_html
from pipelines.engine.library import Libraries
from pipelines.run.events import Event
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import play, walkthrough


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Event, ...]:
    folder = tmp_path_factory.mktemp("index")
    libraries = Libraries(folder, find_embedder=lambda: None)
    return play(walkthrough("3-en-lightning"), libraries)


@pytest.fixture(scope="module")
def found(events: tuple[Event, ...]) -> list[Picture]:
    return list(pictures(events, Catalogue("en")))


def put_together(file: dict[str, Any]) -> list[Picture]:
    """What `assets/player.js` does."""
    made: dict[str, list[int]] = {}
    shown: list[Picture] = []
    for at, changes in file["frames"]:
        views: dict[str, str] = {}
        for name, (first, last, between) in changes.items():
            before = made.get(name, [])
            made[name] = [*before[:first], *between, *before[len(before) - last :]]
            views[name] = "".join(file["pieces"][number] for number in made[name])
        shown.append(Picture(at, views))
    return shown


def test_they_begin_with_every_view_and_end_with_the_whole_run(
    events: tuple[Event, ...], found: list[Picture]
):
    assert set(found[0].views) == {"bar", *PAGES}
    shown: dict[str, str] = {}
    for picture in found:
        shown |= picture.views
    whole, t = fold(events), Catalogue("en")
    assert {name: shown[name] for name in PAGES} == {
        name: page_html(name, whole, t) for name in PAGES
    }


def test_they_follow_each_other_for_as_long_as_the_run_takes(
    events: tuple[Event, ...], found: list[Picture]
):
    assert [picture.at for picture in found] == [
        pytest.approx(step * PERIOD) for step in range(len(found))
    ]
    assert found[-2].at < events[-1].time <= found[-1].at
    # The line ticks, and of the rest only what changed is there again.
    assert all("bar" in picture.views for picture in found)
    assert any("drad" not in picture.views for picture in found)


def test_they_are_sent_as_differences_and_come_out_as_they_were(found: list[Picture]):
    text = json.dumps(packed(found, Catalogue("en")), ensure_ascii=False)
    assert put_together(json.loads(text)) == found
    assert len(text) < sum(len(html) for one in found for html in one.views.values()) / 2.5
