"""The glossary: whole in both languages, found by its words, and drawn with its anchors."""

from __future__ import annotations

import pytest

from components.base.words import (
    KINDS,
    LANGUAGES,
    Catalogue,
    entries,
    entry_of,
    glossary_view,
    load_messages,
    matches,
    meaning,
    means_link,
    means_list,
    what_it_means,
)
from components.run.report import PAGES
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.results.papers import has_paper
from pipelines.evaluation.results.scores import COSTS
from tests.components.html_rules import faults
from tests.components.html_tree import read

NUMBERS = [entry for entry in entries().values() if entry.kind != "term"]


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry.id)
def test_every_number_has_its_range_in_both_languages(entry):
    assert entry.en.range
    assert entry.zh.range


def test_both_languages_say_something_of_their_own():
    for entry in entries().values():
        assert entry.en.means != entry.zh.means, entry.id
        assert any("\u4e00" <= character <= "\u9fff" for character in entry.zh.means), entry.id
        assert not any("\u4e00" <= character <= "\u9fff" for character in entry.en.means), entry.id
        assert (entry.en.range == "") == (entry.zh.range == ""), entry.id


def test_a_name_is_explained_once():
    names = [name for entry in entries().values() for name in entry.names]
    assert len(names) == len(set(names))


def test_entries_are_met_on_pages_that_there_are_and_come_from_papers_that_are_kept():
    for entry in entries().values():
        pages = {*PAGES, "evaluate", "annotate", "library", "models", "profiles"}
        assert set(entry.used) <= pages, entry.id
        assert not entry.method or has_paper(entry.method), entry.id


def test_every_score_metric_and_cost_has_an_entry():
    kinds = ("formula", "inputs", "follows")
    scores = {key.split(".")[1] for key in load_messages("en") if key.startswith("score.")}
    wanted = {*scores.difference(kinds), *METRICS, *COSTS}
    assert not [name for name in sorted(wanted) if entry_of(name) is None]


def test_what_comes_from_elsewhere_is_not_explained(t: Catalogue):
    assert what_it_means("unheard_of", t) is None
    assert means_link("unheard_of", t) is None
    assert means_list(["unheard_of"], t) is None
    assert meaning("unheard_of", t) == ""


def test_the_column_of_any_judge_is_explained_as_one():
    assert entry_of("judged by Qwen") is entry_of("judged")


@pytest.mark.parametrize("brief", [True, False])
def test_what_a_number_means_unfolds_with_range_and_weakness(t: Catalogue, brief: bool):
    html = what_it_means("entity_probability", t, brief=brief)
    assert html is not None
    page = read(html)
    words = entries()["entity_probability"].en
    for text in (words.means, words.range, words.weakness):
        assert text in page.text()
    # A question mark alone is not enough for who hears it.
    assert "What does this mean" in page.one("summary").text()
    assert page.one("button").attributes["data-value"] == "entity_probability"


def test_the_head_of_a_table_leads_to_its_entry(t: Catalogue):
    link, listed = means_link("f1", t), means_list(["f1", "f1", "bleu"], t, anchors=True)
    assert link is not None
    assert listed is not None
    goal = read(link).one("button").attributes["data-goto"]
    assert [item.attributes["id"] for item in read(listed).all("li")] == [goal, "means-bleu"]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("krippendorff alpha", True),
        ("KAPPA", False),
        ("一致性", True),
        ("nothing like this", False),
    ],
)
def test_a_search_finds_what_has_all_its_words_in_either_language(search: str, found: bool):
    assert matches(entries()["alpha"], search) is found


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_every_entry_under_its_anchor(language):
    html = glossary_view(Catalogue(language, strict=True))
    page = read(html)
    assert list(faults(html)) == []
    assert [one.attributes["id"] for one in page.all("article")] == [
        entry.id for kind in KINDS for entry in entries().values() if entry.kind == kind
    ]
    anchors = [one.attributes["href"] for one in page.all(".vs-glossary-anchor")]
    assert anchors == [f"#{one.attributes['id']}" for one in page.all("article")]


def test_the_page_shows_what_is_searched_for_and_what_is_asked_for(t: Catalogue):
    page = read(glossary_view(t, search="krippendorff", term="alpha"))
    shown = [one.attributes["id"] for one in page.all("article")]
    assert "alpha" in shown
    assert "bleu" not in shown
    arriving = [n.attributes["id"] for n in page.all("article") if "data-arrive" in n.attributes]
    assert arriving == ["alpha"]
