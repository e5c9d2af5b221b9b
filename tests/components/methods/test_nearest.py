"""The sentence that took the place of a correction: each thing that can be made of it, in words."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.words import Catalogue
from components.methods.panel import MethodPanel, nearest_section
from pipelines.run.events import Score
from pipelines.run.findings import SentenceAlso, SentenceChosen
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.scripted.recorded import Record
from tests.snapshots import Snapshot

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


ALSO = SentenceAlso(passage="p2", title="Lamps", sentence="Carr kept bees.", start=0, end=15)
NEAR = Score(name="nearness", value=0.82, threshold=0.55)
WEAK = Score(name="answer_supported", value=0.31, threshold=0.5, flagged=True)
STATES: dict[str, tuple[SentenceChosen, tuple[Score, ...]]] = {
    "taken": (chosen("shortened", shortened=SHORT), ()),
    "quoted, not shortened": (chosen("quoted", shortened=SHORT), (NEAR, WEAK)),
    "quoted": (chosen("quoted"), ()),
    "without a title": (chosen("quoted", title=""), ()),
    "kept": (chosen("kept"), ()),
    "none": (SentenceChosen(form="none"), ()),
    "denied": (chosen("quoted", asked_yes_no=True, denies=True), ()),
    "claimed": (chosen("quoted", asked_yes_no=True, denies=False), ()),
    "a second sentence": (chosen("quoted", also=(ALSO,)), ()),
}


@both_languages
def test_states(t: Catalogue, snapshot: Snapshot):
    for state, (found, scores) in STATES.items():
        snapshot(shown(t, found, scores=scores), state=state)


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
