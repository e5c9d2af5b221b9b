"""The sentence that took the place of a correction: each thing that can be made of it, in words."""

from __future__ import annotations

from typing import Any

import pytest

from components.messages import Catalogue
from components.method_panel import MethodPanel
from components.nearest_view import nearest_section
from pipelines.run.events import Score
from pipelines.run.findings import SentenceAlso, SentenceChosen
from tests.components.html_tree import Node, read
from tests.components.recorded import Record
from tests.components.test_hostile import HOSTILE

SENTENCE = "The lamp was invented in 1904."
SHORT = "The Carr lamp was invented in 1904."
BOTH = [Catalogue("en"), Catalogue("zh")]
both_languages = pytest.mark.parametrize("t", BOTH, ids=["en", "zh"])


def recorded(*found: SentenceChosen, scores: tuple[Score, ...] = ()) -> Record:
    """A run of one method with a correction for each of `found`."""
    record = Record("drad").begin("drad").draft("drad")
    for one in found:
        record.judge("drad", "supported", "", "correction", scores=scores, detail=one)
    return record


def panel_of(record: Record, t: Catalogue) -> MethodPanel:
    return MethodPanel.of("drad", record.view, t, None)


def chosen(form: Any, **fields: Any) -> SentenceChosen:
    told = {"passage": "p1", "title": "Carr lamp", "sentence": SENTENCE, "end": len(SENTENCE)}
    return SentenceChosen(form=form, **(told | fields))


def shown(t: Catalogue, *found: SentenceChosen, scores: tuple[Score, ...] = ()) -> Node:
    section = nearest_section(panel_of(recorded(*found, scores=scores), t))
    assert section is not None
    return read(section)


@pytest.mark.parametrize(
    ("found", "conclusion"),
    [
        (chosen("shortened", shortened=SHORT), "taken"),
        (chosen("quoted", shortened=SHORT), "quoted.not"),
        (chosen("quoted"), "quoted"),
        (chosen("kept"), "kept"),
        (SentenceChosen(form="none"), "none"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@both_languages
def test_what_was_made_of_the_sentence(t: Catalogue, found: SentenceChosen, conclusion: str):
    page = shown(t, found)
    assert page.one(".vs-section-title").text() == t("nearest.title")
    assert page.one(".vs-strong").text() == t(f"nearest.{conclusion}")
    assert page.all(".vs-source-notes") == []
    written = [node.text() for node in page.all(".vs-part")]
    assert written == ([t("nearest.shortened") + SHORT] if found.shortened else [])


def test_the_words_in_english(t: Catalogue):
    taken = shown(t, chosen("shortened", shortened=SHORT)).text()
    assert f"What the model wrote{SHORT}" in taken
    assert "supports what the model wrote, which becomes the answer" in taken
    assert "so the sentence itself is quoted" in shown(t, chosen("quoted", shortened=SHORT)).text()
    assert "The sentence supports the draft, which stays." in shown(t, chosen("kept")).text()
    assert "No sentence of what was found" in shown(t, SentenceChosen(form="none")).text()


@both_languages
def test_the_sentence_stands_with_its_source(t: Catalogue):
    quote = shown(t, chosen("quoted")).one("figure")
    assert quote.one("blockquote").text() == SENTENCE
    assert quote.one(".vs-answer").attributes["dir"] == "auto"
    assert quote.one("cite").text() == t("nearest.from", title="Carr lamp")
    assert shown(t, chosen("quoted", title="")).all("cite") == []
    assert shown(t, SentenceChosen(form="none")).all("figure") == []


@pytest.mark.parametrize(("denies", "key"), [(True, "nearest.denies"), (False, "nearest.claim")])
@both_languages
def test_a_question_of_yes_or_no_says_how_it_was_read(t: Catalogue, denies: bool, key: str):
    page = shown(t, chosen("quoted", asked_yes_no=True, denies=denies))
    assert [note.text() for note in page.one(".vs-source-notes").all("li")] == [t(key)]


def test_the_numbers_say_what_follows_from_them(t: Catalogue):
    near = Score(name="nearness", value=0.82, threshold=0.55)
    weak = Score(name="answer_supported", value=0.31, threshold=0.5, flagged=True)
    page = shown(t, chosen("quoted", shortened=SHORT), scores=(near, weak))
    first, second = page.all(".vs-score")
    assert "the sentence is about the question" in first.text()
    assert "0.31 < 0.50" in second.text()
    assert "the judge does not find the new answer supported" in second.text()


def test_every_correction_has_a_card_of_its_own(t: Catalogue):
    page = shown(t, chosen("quoted"), chosen("kept"))
    cards = page.all(".vs-card")
    assert len(cards) == len({card.attributes["data-key"] for card in cards}) == 2


def _elements(page: Node) -> list[str]:
    """The names of all elements, but for the spans that name characters that cannot be seen."""
    return [node.name for node in page.walk() if node.name not in ("", "span")]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_wrote_stays_text(t: Catalogue, text: str):
    plain, page = (
        shown(t, chosen("quoted", sentence=one, title=one, shortened=one)) for one in ("x", text)
    )
    names, expected = (_elements(node) for node in (page, plain))
    assert names == expected
    assert not any(name.startswith("on") for node in page.walk() for name in node.attributes)
    if text.isprintable():
        assert page.one("blockquote").text() == text
        assert page.one("cite").text() == f"From “{text}”"


@both_languages
def test_without_a_correction_there_is_nothing(t: Catalogue):
    record = recorded()
    record.judge("drad", "doubtful")
    # An older correction, in the method's own way, is not worded from a sentence.
    record.judge("drad", "supported", "x", "correction")
    assert nearest_section(panel_of(record, t)) is None


@both_languages
def test_a_second_sentence_stands_beside_the_first(t: Catalogue):
    also = SentenceAlso(passage="p2", title="Lamps", sentence="Carr kept bees.", start=0, end=15)
    page = shown(t, chosen("quoted", also=(also,)))
    quotes = [quote.text() for quote in page.all("blockquote")]
    assert quotes == [SENTENCE, "Carr kept bees."]
    assert t("nearest.also") in page.text()
