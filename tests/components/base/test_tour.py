"""What the tour points at: pages that there are, and parts that its walkthrough has."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.ask import ask_view
from components.base.tour import METHOD, STOPS, tour_data, tour_sample
from components.base.words import LANGUAGES, Catalogue
from components.run.compare import CompareColumn, compare_view
from components.run.report import PAGES, panel_of
from pipelines.base import Language
from pipelines.engine.library import Libraries
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import play
from tests.components.html_tree import read


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tour_plays_a_walkthrough_in_the_language_of_the_page(language: Language):
    sample = tour_sample(Catalogue(language))
    assert sample is not None
    assert sample.language == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_script_is_told_every_stop_in_words(language: Language):
    data = tour_data(Catalogue(language, strict=True), at=2, turn=5, page="ask")
    assert [stop["id"] for stop in data["stops"]] == [stop.id for stop in STOPS]
    assert all(stop["title"] and stop["text"] and stop["targets"] for stop in data["stops"])
    assert (data["at"], data["turn"], data["page"]) == (2, 5, "ask")
    assert {stop["page"] for stop in data["stops"]} <= PAGES.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_pointed_at_is_on_the_page_when_the_walkthrough_has_played(
    language: Language, tmp_path: Path
):
    t = Catalogue(language, strict=True)
    sample = tour_sample(t)
    assert sample is not None
    view = fold(play(sample, Libraries(tmp_path, find_embedder=lambda: None)))
    columns = [CompareColumn(view, name) for name in view.methods]
    pages = {
        "ask": read(ask_view(view, t)),
        "compare": read(compare_view(columns, t)),
        METHOD: read(panel_of(METHOD)(view, t)),
    }
    for stop in STOPS:
        if stop.id == "question":
            continue
        nodes = [pages[stop.page]]
        for part in stop.targets[0].split():
            name = part[1:]
            nodes = [
                found
                for node in nodes
                for found in node.walk()
                if name in found.classes or (part[0] == "#" and found.attributes.get("id") == name)
            ]
        assert nodes, stop
    verdict = view.methods[METHOD].judged
    assert any(one.what == "answer" and one.verdict == "doubtful" for one in verdict)
    assert len(view.methods[METHOD].drafts) > 1
