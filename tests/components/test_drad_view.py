"""The DRAD page as HTML: decisions under other thresholds, corrections, sources."""

from __future__ import annotations

from typing import Any

from components.drad_view import confidence_note, decision_view, steps_view
from components.messages import Catalogue
from components.run_view import settings_of
from pipelines.errors import UnreachableError
from pipelines.methods.drad.path import DradDecision
from tests.components.html_tree import Node, read
from tests.components.runs import DRAFT, drad, drad_outcome, model, view_of
from tests.pipelines.methods.bench import Outcome, Shelf, run_method


def decided(outcome: Outcome, t: Catalogue, draft: int = 0, **changes: Any) -> Node:
    view = view_of(outcome.trace)
    settings = settings_of(view).model_copy(update=changes)
    decision = drad().decide(outcome.trace, settings)
    assert isinstance(decision, DradDecision)
    return read(decision_view(view, decision, settings, t, draft=draft))


async def test_the_recorded_settings_hold(t: Catalogue):
    page = decided(await drad_outcome(), t)
    assert "1 of 3 entities is doubtful: York." in page.text()
    assert "The recorded run holds for these settings, with 1 correction." in page.text()
    assert len(page.all(".vs-row-doubtful")) == 1
    assert "0.30 < 0.60" in page.one(".vs-section-decision").text("vs-sign")


async def test_a_lower_threshold_keeps_the_original(t: Catalogue):
    page = decided(await drad_outcome(), t, theta_1=0.2)
    assert "No entity is doubtful" in page.text()
    assert "the original answer stays as it is" in page.text()
    assert page.all(".vs-row-doubtful") == []


async def test_a_higher_threshold_needs_a_new_run(t: Catalogue):
    page = decided(await drad_outcome(), t, theta_1=0.95)
    assert "would have gone another way from draft 0 on" in page.text()
    assert len(page.all(".vs-row-doubtful")) == 3


async def test_a_later_draft_has_its_own_entities(t: Catalogue):
    page = decided(await drad_outcome(), t, draft=1)
    names = [node.text() for node in page.all(".vs-strong") if node.text() in ("Hope", "York")]
    assert "Hope" in names
    assert "York" not in names


async def test_a_correction_is_told_step_by_step(t: Catalogue):
    page = read(steps_view(view_of((await drad_outcome()).trace), t))
    (step,) = page.all(".vs-step")
    assert step.one(".vs-step-title").text() == "Correction 1"
    assert step.one(".vs-step-entity").text() == "York"
    assert step.one(".vs-query").text() == "Clinton was born in He won in 1993."
    assert step.one("ins").text("vs-sr").strip() == "Hope"
    assert len(step.all(".vs-passage-card")) == 2
    assert [node.text("vs-sr") for node in step.all("mark")] == ["He was born in Hope."]
    assert len(page.all(".vs-diff-side")) == 2


async def test_a_number_leads_to_the_call_that_wrote_what_it_is_about(t: Catalogue):
    outcome = await drad_outcome()
    behind = decided(outcome, t).one(".vs-section-decision").one(".vs-behind")
    assert behind.one(".vs-turn-reply").one("pre").text() == DRAFT
    (step,) = read(steps_view(view_of(outcome.trace), t)).all(".vs-step")
    assert [node.one(".vs-turn-reply").text("vs-label") for node in step.all(".vs-behind")] == [
        DRAFT
    ]


async def test_what_a_correction_wrote_rests_on_its_search_and_call(t: Catalogue):
    # The first correction writes everything anew, so the second is about a name it wrote.
    outcome = await drad_outcome(theta_1=0.95)
    first, second = (
        step.one(".vs-behind")
        for step in read(steps_view(view_of(outcome.trace), t)).all(".vs-step")
    )
    assert first.all("summary")[0].text() == "The one call behind this"
    assert [node.text() for node in second.all("summary")][:2] == [
        "The 2 calls behind this",
        "Search · shelf",
    ]


async def test_without_a_doubt_there_is_no_step(t: Catalogue):
    page = read(steps_view(view_of((await drad_outcome(theta_1=0.1)).trace), t))
    assert page.all(".vs-step") == []
    assert "No entity is doubtful" in page.one(".vs-empty").text()


async def test_a_text_without_entities_says_so(t: Catalogue):
    nobody = type(drad())(type("Nobody", (), {"recognize": lambda *_: []})())  # pyright: ignore[reportArgumentType]
    outcome = await run_method(nobody, "Why?", model(), shelf=Shelf(lambda _: []))
    assert "names no entity" in read(steps_view(view_of(outcome.trace), t)).text()


async def test_a_search_without_result_is_told(t: Catalogue):
    page = read(steps_view(view_of((await drad_outcome(shelf=Shelf(lambda _: []))).trace), t))
    assert "The search found nothing" in page.one(".vs-flag").text()
    error = UnreachableError("Gone.", remedy="Wait.")
    page = read(steps_view(view_of((await drad_outcome(shelf=error)).trace), t))
    assert "The search failed" in page.one(".vs-flag").text()


async def test_the_source_of_confidence_is_named(t: Catalogue):
    view = view_of((await drad_outcome()).trace)
    words = read(confidence_note(view, t, recognizer="rules")).text()
    assert "the probabilities the model itself gave" in words
    assert "the 5 most probable tokens" in words
    assert "rules (no trained spaCy pipeline is installed)" in words


async def test_a_stand_in_is_named_as_one(t: Catalogue):
    written = model()
    written.draws = [DRAFT, DRAFT]
    outcome = await run_method(
        drad(),
        "Where?",
        written,
        shelf=Shelf(lambda _: []),
        confidence="samples",
        samples=2,
    )
    words = read(confidence_note(view_of(outcome.trace), t)).text()
    assert "As a stand-in, confidence is how many of several samples" in words
