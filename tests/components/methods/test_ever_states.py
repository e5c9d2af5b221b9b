"""The EVER page while a run goes on, when it fails or is stopped, and under hostile text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.base.words import Catalogue
from components.methods.ever import ever_view
from pipelines.errors import UnreachableError
from pipelines.methods.ever import Ever
from pipelines.models.base import GenerationRequest
from pipelines.run.events import ModelCalled, SpanStarted, TokenWritten
from pipelines.run.view import RunView, fold
from tests.components.html_tree import Node, read
from tests.components.methods.test_ever import CORRECTED, RECTIFIED, cards_of, page_of
from tests.scripted.bench import Outcome, run_method
from tests.scripted.ever import (
    FIRST,
    QUESTION,
    SECOND,
    WHOLE,
    Archive,
    EverModel,
    Part,
    ever_run,
    kind_of,
)
from tests.scripted.runs import view_of


def live_of(view: RunView, t: Catalogue) -> Node:
    return read(ever_view(view, t))


async def test_every_moment_of_a_run_can_be_shown(t: Catalogue):
    cases: list[dict[str, Any]] = [{"speculative": True}, {"task": "chain"}]
    for settings in cases:
        outcome = await ever_run(CORRECTED, **settings)
        events = outcome.trace.events
        for place in range(len(events) + 1):
            page = live_of(fold(events[:place]), t)
            keys = [
                node.attributes["data-key"] for node in page.walk() if "data-key" in node.attributes
            ]
            lists = [key for key in keys if key.startswith(("sentence-", "look-", "concept-"))]
            assert len(lists) == len(set(lists))


def writing(outcome: Outcome, step: str, text: str) -> RunView:
    """The view when `step` began, with `text` written in it."""
    events = outcome.trace.events
    began = next(e for e in events if isinstance(e, SpanStarted) and e.name == step)
    view = fold(events[: events.index(began) + 1])
    ids = {"run": began.run, "seq": began.seq, "time": began.time}
    return fold([TokenWritten(**ids, span=began.span, parent=began.parent, text=text)], view)


@pytest.mark.parametrize("step", ["next_sentence", "speculate"])
async def test_only_the_sentence_that_is_being_written_shows(step: str, t: Catalogue):
    ahead = step == "speculate"
    last = "She sold the salt." if ahead else SECOND
    before = f"{RECTIFIED} {SECOND}" if ahead else RECTIFIED
    texts = {"": WHOLE, RECTIFIED: f" {SECOND} More.", f"{RECTIFIED} {SECOND}": f" {last}"}
    outcome = await ever_run(replace(CORRECTED, texts=texts), speculative=ahead)
    part = last.rpartition(" ")[0]
    # To see that a sentence is complete, the writer reads on until the next one begins, and one
    # that is told to go on may repeat what it was given.
    for written, shown in (
        (f" {part}", part),
        (f" {last}", last),
        (f" {last} The", last),
        (f"{before} {part}", part),
    ):
        view = writing(outcome, step, written)
        number = "Sentence 3" if ahead else "Sentence 2"
        card = next(c for c in cards_of(live_of(view, t)) if number in c.text())
        assert card.one(".vs-answer").text() == shown


async def test_the_original_shows_as_many_sentences_as_are_wanted(t: Catalogue):
    outcome = await ever_run(Part(texts={"": WHOLE}), max_sentences=2)
    for written, shown in ((f"{FIRST} She", f"{FIRST} She"), (f"{WHOLE} The", WHOLE)):
        page = live_of(writing(outcome, "draft", written), t)
        assert page.one(".vs-ever-original").one(".vs-answer").text() == shown


async def test_a_short_answer_shows_whole_while_it_is_written(t: Catalogue):
    outcome = await ever_run(Part(texts={"": WHOLE}), max_sentences=1, task="short")
    page = live_of(writing(outcome, "draft", f"{WHOLE} The"), t)
    assert page.one(".vs-ever-original").one(".vs-answer").text() == f"{WHOLE} The"


async def test_a_verdict_taken_over_says_so_and_shows_what_it_rests_on(t: Catalogue):
    page = page_of(await ever_run(CORRECTED), t)
    _, corrected = cards_of(page)[0].all(".vs-ever-look")
    fresh, taken = corrected.all(".vs-ever-chip")
    words = "The same question was asked before in this run."
    assert words not in fresh.text()
    assert words in taken.text()
    # The question's own call, and the earlier question, verdict and search.
    assert len(taken.all(".vs-call")) == 4
    assert len(taken.all(".vs-passage-card")) == 1


async def test_what_is_being_checked_pulses_and_stops_when_the_run_does(t: Catalogue):
    outcome = await ever_run(CORRECTED)
    events = outcome.trace.events
    place = next(
        number
        for number, event in enumerate(events)
        if isinstance(event, ModelCalled)
        and isinstance(event.request, GenerationRequest)
        and kind_of(event.request) == "verify"
    )
    view = fold(events[: place + 1])
    page = live_of(view, t)
    waiting = [node for node in page.all(".vs-ever-chip") if "aria-busy" in node.attributes]
    assert [node.text() for node in waiting] == ["chemistbeing checked", "1931being checked"]
    assert "Checking the facts" in cards_of(page)[0].text()
    assert "appears here at the end" in page.one(".vs-section-final").text()
    stopped = live_of(replace(view, status="cancelled", reason="stopped"), t)
    assert all("aria-busy" not in node.attributes for node in stopped.walk())
    assert "chemistnot reached" in stopped.text()
    assert "The run was stopped." in stopped.one(".vs-notices").text()
    assert "ended before the whole text was verified" in stopped.text()


async def test_a_failed_run_says_what_failed_and_keeps_what_it_had(t: Catalogue):
    async def hold(request: GenerationRequest) -> None:
        if kind_of(request) == "verify":
            raise UnreachableError("No route to the model.", remedy="Wait.")

    model = EverModel(CORRECTED, hold=hold)
    outcome = await run_method(Ever(), QUESTION, model, shelf=Archive(lambda _: ["It is so."]))
    page = live_of(view_of(outcome.trace), t)
    assert "No route to the model." in page.one(".vs-error").text()
    assert page.one(".vs-ever-text").text() == FIRST
    assert "not reached" in page.text()
    assert "ended before the whole text was verified" in page.text()


async def test_before_anything_was_written_space_is_reserved(t: Catalogue):
    outcome = await ever_run(CORRECTED)
    assert read(ever_view(RunView(), t)).all(".vs-section") == []
    page = live_of(fold(outcome.trace.events[:3]), t)
    assert page.one(".vs-section-original").all(".vs-reserved")
    assert "appear here as they are checked" in page.one(".vs-section-sentences").text()
