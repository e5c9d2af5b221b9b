"""The Ask page as HTML, at every stage of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.ask import ask_view, evidence_items, examples, run_bar
from components.base.words import Catalogue
from pipelines.engine.pool import Loading
from pipelines.errors import UnreachableError
from pipelines.models.base import Capabilities
from pipelines.run.events import TokenWritten
from pipelines.run.view import RunView, fold
from pipelines.text.languages import detect_language
from tests.components.html_tree import read
from tests.scripted.runs import (
    DRAFT,
    QUESTION,
    baseline_view,
    drad_outcome,
    speaking,
    until,
    view_of,
)


async def test_a_finished_run_shows_everything(t: Catalogue):
    page = read(ask_view(view_of((await drad_outcome()).trace), t))
    assert page.one(".vs-question").text() == QUESTION
    assert len(page.all(".vs-entity")) >= 3
    # In the head, and in the method's details.
    assert [node.text("vs-sr").strip() for node in page.all("del")] == ["York. He won in 1993"] * 2
    assert [node.text("vs-sr").strip() for node in page.all("ins")] == ["Hope"] * 2
    assert len(page.all(".vs-passage-card")) == 2
    # No judge said that a sentence supports it.
    assert page.all("mark") == []
    assert len(page.all(".vs-bar")) == 3
    headings = [node.text() for node in page.all(".vs-section-title")]
    assert headings == ["Original answer", "Results by method", "Calls over time", "Evidence"]
    links = {
        node.text(): node.attributes["data-value"]
        for node in page.one(".vs-steps-links").all("button")
    }
    way = page.one(".vs-method-way")
    assert way.attributes["aria-label"] == "Steps of DRAD"
    assert (way.attributes["data-action"], way.attributes["data-value"]) == ("open", "drad")
    assert links == {
        "Compare the answers": "compare",
        "Run the other methods too": "standard",
    }


async def test_space_is_reserved_from_the_beginning(t: Catalogue):
    page = read(ask_view(until((await drad_outcome()).trace, "run_started"), t))
    assert len(page.all(".vs-reserved")) >= 4
    assert page.one(".vs-method-name").text() == "DRAD"
    assert "Passages appear here" in page.text()


async def test_keys_stay_the_same_while_the_run_goes_on(t: Catalogue):
    trace = (await drad_outcome()).trace
    early = read(ask_view(until(trace, "revised"), t))
    late = read(ask_view(view_of(trace), t))
    known = {node.attributes["data-key"] for node in early.walk() if "data-key" in node.attributes}
    lasting = {node.attributes["data-key"] for node in late.walk() if "data-key" in node.attributes}
    assert {"run", "question", "main", "panel", "original", "methods", "methods-drad"} <= known
    assert {"run", "question", "main", "panel", "original", "methods", "methods-drad"} <= lasting


async def test_the_call_under_way_is_in_the_timeline(t: Catalogue):
    outcome = await drad_outcome()
    events = list(outcome.trace.events)
    begun = next(i for i, event in enumerate(events) if event.kind == "model_called")
    span = events[begun].span
    piece = TokenWritten(
        run="run", span=span, parent=None, seq=events[begun].seq, time=1.0, text="Clinton was"
    )
    page = read(ask_view(fold([*events[:begun], piece]), t, now=2.0))
    (bar,) = [node for node in page.all(".vs-bar-open") if node.name == "button"]
    assert "in progress" in bar.attributes["aria-label"]
    assert "vs-writing" in page.one(".vs-answer-panel").classes
    assert "Clinton was" in page.one(".vs-answer-panel").text()


async def test_only_what_this_run_waits_for_is_named(t: Catalogue):
    view = until((await drad_outcome()).trace, "run_started")
    assert view.header is not None
    own = view.header.spec.models["main"].name
    waiting = [Loading(own, "downloading", 0.4), Loading("somebody else's", "load", 0.1)]
    page = read(ask_view(view, t, loading=waiting))
    assert own in page.one(".vs-loading").text()
    assert "downloading" in page.one(".vs-loading").text()
    assert page.one("progress").attributes["value"] == "0.400"
    assert "somebody" not in page.text()


async def test_what_was_written_is_shown_bare_for_a_language_without_support(t: Catalogue):
    view = speaking(view_of((await drad_outcome()).trace), "zh")
    page = read(ask_view(view, t))
    assert "does not speak the language" in page.one(".vs-notice").text()
    assert page.all(".vs-heat") == []
    assert page.all(".vs-gauge") == []
    assert DRAFT in page.text()


async def test_a_model_without_probabilities_says_so(t: Catalogue):
    bare = Capabilities(languages=frozenset({"en"}), logprobs=False)
    page = read(ask_view(await baseline_view("direct", bare), t))
    assert "There are no token probabilities" in page.one(".vs-answer-panel").text()


async def test_a_stopped_run_can_be_run_again(t: Catalogue):
    view = until((await drad_outcome()).trace, "revised")
    page = read(ask_view(replace(view, status="cancelled", reason="unwatched"), t))
    assert "nobody was watching" in page.one(".vs-notice").text()
    assert page.one(".vs-notice").one("button").attributes["data-action"] == "retry"
    assert DRAFT in page.one(".vs-answer-panel").text()


def test_a_run_that_never_began_tells_why(t: Catalogue):
    error = UnreachableError("No connection.", remedy="Check it.", provider="somewhere").info()
    page = read(ask_view(RunView(status="failed", error=error), t))
    assert "The provider cannot be reached" in page.one(".vs-error").text()
    assert page.one(".vs-error").one("button").attributes["data-value"] == "run"
    assert "No answer was written." in page.text()


async def test_a_search_that_failed_leaves_the_answer_and_its_flag(t: Catalogue):
    error = UnreachableError("Gone.", remedy="Wait.")
    page = read(ask_view(view_of((await drad_outcome(shelf=error)).trace), t))
    assert "The search failed" in page.one(".vs-flags").text()
    failed = [node for node in page.all(".vs-bar-failed") if node.name == "button"]
    assert len(failed) == 1
    assert page.all(".vs-error") == []


async def test_hostile_text_stays_text(t: Catalogue):
    page = read(ask_view(view_of((await drad_outcome(question="<img src=x>?")).trace), t))
    assert page.all("img") == []
    assert page.one(".vs-question").text() == "<img src=x>?"


async def test_a_passage_carries_the_methods_that_used_it():
    view = view_of((await drad_outcome()).trace)
    rag = (await baseline_view("rag")).methods["rag"]
    both = replace(view, methods={**view.methods, "rag": rag})
    assert [item.methods for item in evidence_items(both)] == [("drad", "rag"), ("drad", "rag")]


async def test_the_bar_ticks_and_ends(t: Catalogue):
    trace = (await drad_outcome()).trace
    view = until(trace, "revised")
    assert view.header is not None
    now = view.header.created + 7.0
    running = read(run_bar(view, t, now=now))
    assert running.one(".vs-counter-seconds").text() == "7.0 s"
    assert "Running" in running.text()
    assert "Done" in read(run_bar(view_of(trace), t, now=now)).text()


def test_the_first_example_is_the_one_everybody_knows():
    assert examples("en")[0] == "Where was Bill Clinton born and raised?"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_are_different_and_in_the_pages_language(language):
    assert len(set(examples(language))) == len(examples(language)) >= 5
    assert {detect_language(question) for question in examples(language)} == {language}
