"""The DRAD page as HTML: while the run goes on, afterwards, and re-evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.words import Catalogue
from components.methods.drad import drad_figures, drad_view
from pipelines.engine.reevaluate import reevaluate
from pipelines.errors import UnreachableError
from pipelines.methods.drad import Drad
from pipelines.methods.drad import settings as drad_settings
from pipelines.models.base import Capabilities
from pipelines.run.events import TokenWritten
from pipelines.run.view import fold
from tests.components.html_tree import Node, read
from tests.scripted.bench import (
    FixedRecognizer,
    Outcome,
    PieceModel,
    Shelf,
    pieces,
    run_method,
    tokens_of,
)
from tests.scripted.recorded import ORIGINAL, Record
from tests.scripted.runs import (
    CORRECTED,
    DRAFT,
    NAMES,
    QUESTION,
    drad_outcome,
    model,
    speaking,
    until,
    view_of,
)


def page_of(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page, re-evaluated with `changes` where there are any."""
    if not changes:
        return read(drad_view(view_of(outcome.trace), t))
    values = next(spec.settings for spec in outcome.trace.header.spec.methods)
    again = reevaluate(outcome.trace, Drad(), Drad().settings(values | changes))
    return read(drad_view(again.view, t, diverges_at=again.diverges_at))


def panels(page: Node) -> list[Node]:
    return page.all(".vs-draft-panel")


async def test_what_was_decided_comes_with_the_number_that_decided_it(t: Catalogue):
    page = page_of(await drad_outcome(), t)
    decision = page.one(".vs-section-drad-decision")
    assert "Doubtful" in decision.text()
    assert "1 of 3 entities is doubtful: York." in decision.text()
    assert "0.30 < 0.60" in decision.text("vs-sign")
    assert "1 correction was written." in decision.text()


async def test_a_lower_threshold_keeps_the_original(t: Catalogue):
    page = page_of(await drad_outcome(), t, theta_1=0.2)
    assert "No entity is doubtful" in page.text()
    assert "The original answer stays as it is." in page.text()
    assert page.all(".vs-row-doubtful") == page.all(".vs-step") == []
    assert len(panels(page)) == 1
    assert page.all(".vs-section-drad-change") == []


async def test_a_higher_threshold_needs_a_new_run(t: Catalogue):
    page = page_of(await drad_outcome(), t, theta_1=0.95)
    notice = page.one(".vs-notice").text()
    assert "leaves the recorded one at draft 2" in notice
    # What is known is shown all the same.
    assert "3 of 3 entities are doubtful" in page.text()
    assert len(panels(page)[0].all(".vs-row-doubtful")) == 3


async def test_every_draft_has_its_heat_by_both_measures_and_its_entities(t: Catalogue):
    page = page_of(await drad_outcome(), t)
    original, corrected = panels(page)
    for panel, text in ((original, DRAFT), (corrected, CORRECTED)):
        for measure in ("probability", "entropy"):
            (heat,) = panel.all(f".vs-by-{measure}")
            shown = heat.one(".vs-heat-text").text("vs-sr", "vs-entity-label")
            assert shown.split() == text.split()
        # The values stand once, around both.
        assert len([node for node in panel.walk() if "data-tokens" in node.attributes]) == 1
    assert "York" in original.one(".vs-table").text()
    assert "Hope" in corrected.one(".vs-table").text()
    assert "York" not in corrected.one(".vs-table").text()


async def test_draft_and_measure_are_chosen_without_a_script(t: Catalogue):
    page = page_of(await drad_outcome(), t)
    radios = [node for node in page.all("input") if node.attributes["type"] == "radio"]
    groups: dict[str, list[str]] = {}
    for radio in radios:
        groups.setdefault(radio.attributes["name"], []).append(radio.attributes["value"])
    assert groups == {"drad-measure": ["probability", "entropy"], "drad-draft": ["0", "1"]}
    checked = [radio.attributes["value"] for radio in radios if "checked" in radio.attributes]
    assert checked == ["probability", "0"]
    labels = {node.attributes["for"]: node.text() for node in page.all("label")}
    assert {radio.attributes["id"] for radio in radios} == labels.keys()
    assert list(labels.values()) == [
        "Probability",
        "Entropy",
        "Original answer",
        "After correction 1",
    ]
    assert page.one("legend").text() == "Colour by"


async def test_a_single_draft_needs_no_choice_of_drafts(t: Catalogue):
    page = page_of(await drad_outcome(theta_1=0.1), t)
    assert {node.attributes["name"] for node in page.all("input")} == {"drad-measure"}


async def test_a_correction_is_told_step_by_step(t: Catalogue):
    page = page_of(await drad_outcome(), t)
    (step,) = page.all(".vs-step")
    assert step.one(".vs-step-title").text() == "Correction 1"
    assert step.one(".vs-step-entity").text() == "York"
    assert step.one(".vs-query").text() == "Clinton was born in He won in 1993."
    assert step.one("ins").text("vs-sr").strip() == "Hope"
    assert len(step.all(".vs-passage-card")) == 2
    assert "He was born in Hope." in step.one("mark").text("vs-sr")
    sides = [side.text("vs-sr") for side in page.all(".vs-diff-side")]
    assert len(sides) == 2


async def test_the_calls_behind_numbers_are_those_that_wrote_the_entity(t: Catalogue):
    page = page_of(await drad_outcome(), t)
    behind = page.one(".vs-section-drad-decision").one(".vs-behind")
    assert behind.one(".vs-turn-reply").one("pre").text() == DRAFT
    (step,) = page.all(".vs-step")
    assert [node.one(".vs-turn-reply").text("vs-label") for node in step.all(".vs-behind")] == [
        DRAFT
    ]


async def test_what_a_correction_wrote_rests_on_its_search_and_call(t: Catalogue):
    # The first correction writes everything anew, so the second is about a name it wrote.
    outcome = await drad_outcome(theta_1=0.95)
    first, second = (step.one(".vs-behind") for step in page_of(outcome, t).all(".vs-step"))
    assert first.all("summary")[0].text() == "The one call behind this"
    assert [node.text() for node in second.all("summary")][:2] == [
        "The 2 calls behind this",
        "Search · shelf · 0.00 s",
    ]


async def test_a_text_without_entities_says_so(t: Catalogue):
    outcome = await drad_outcome(recognizer=FixedRecognizer(), answer_part=False)
    page = page_of(outcome, t)
    assert "names no entity" in page.one(".vs-section-drad-decision").text()
    assert "Not checked" in page.one(".vs-section-drad-decision").text()


async def test_a_search_without_result_is_told(t: Catalogue):
    page = page_of(await drad_outcome(shelf=Shelf(lambda _: [])), t)
    assert "The search found nothing" in page.one(".vs-step").one(".vs-flag").text()
    assert "The search found nothing" in page.one(".vs-section-drad-decision").text()
    error = UnreachableError("Gone.", remedy="Wait.")
    page = page_of(await drad_outcome(shelf=error), t)
    assert "The search failed" in page.one(".vs-step").one(".vs-flag").text()


async def test_repetitions_that_are_left_alone_are_counted_apart(t: Catalogue):
    outcome = await drad_outcome(theta_1=0.95, skip_repeats=True)
    words = page_of(outcome, t).one(".vs-section-drad-decision").text()
    assert "2 of 3 entities are doubtful: York, 1993." in words
    assert "1 more only repeats the question and is left alone." in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "No θ₂ was calibrated for pieces"),
        ({"theta_2": 1.25}, "θ₂ = 1.25 nats was set by hand."),
        ({"use_entropy": False, "theta_2": 1.25}, "Entropy is switched off"),
    ],
)
async def test_the_threshold_of_entropies_is_said_with_where_it_comes_from(
    changes: dict[str, Any], words: str, t: Catalogue
):
    page = page_of(await drad_outcome(**changes), t)
    assert words in page.one(".vs-source-notes").text()


async def test_a_calibrated_threshold_names_its_model(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch
):
    table = {"pieces": {"5": {"theta_2": {"en": {"value": 1.5}}}}}
    monkeypatch.setattr(drad_settings, "calibration", lambda method: table)
    notes = page_of(await drad_outcome(), t).one(".vs-source-notes").text()
    assert "θ₂ = 1.50 nats was calibrated on answers of pieces" in notes


async def test_the_source_of_confidence_is_named(t: Catalogue):
    words = page_of(await drad_outcome(), t).one(".vs-source-notes").text()
    assert "the probabilities the model itself gave" in words
    assert "the 5 most probable tokens" in words
    assert "Entities found by fixed" in words


async def test_a_stand_in_is_named_as_one_and_shows_no_heat(t: Catalogue):
    mute = Capabilities(languages=frozenset({"en"}), prefill=True)
    written = model(mute)
    written.draws = [DRAFT, DRAFT]
    outcome = await run_method(
        Drad(), QUESTION, written, shelf=Shelf(lambda _: []), samples=2,
        recognizer=FixedRecognizer(*NAMES),
    )  # fmt: skip
    page = page_of(outcome, t)
    words = page.one(".vs-source-notes").text()
    assert "As a stand-in, confidence is how many of several samples" in words
    assert "There are no token probabilities" in panels(page)[0].text()
    assert "1.00 > 0.60" in panels(page)[0].one(".vs-table").text()


async def test_an_early_stop_and_the_rest_are_drafts_of_their_own(t: Catalogue):
    outcome = await drad_outcome(shelf=Shelf(lambda _: []), early_stop=True, m=1)
    assert outcome.drafts[0] != DRAFT
    page = page_of(outcome, t)
    assert [node.text() for node in page.all("label")][2:] == [
        "Original answer",
        "Written to the end",
    ]
    assert [node.text() for node in page.all(".vs-step-title")] == [
        "Correction 1",
        "Continuing the text",
    ]
    assert "not written to its end" in page.one(".vs-section-drad-decision").text()


async def test_a_sum_of_probabilities_is_shown_as_it_is(t: Catalogue):
    def answer(_: object) -> list[tuple[str, float]]:
        return [("Bill", 0.9), (" Clinton", 0.8), (".", 0.9)]

    outcome = await run_method(
        Drad(), QUESTION, PieceModel(answer), shelf=Shelf(lambda _: []), pooling="sum",
        recognizer=FixedRecognizer("Bill Clinton"),
    )  # fmt: skip
    page = page_of(outcome, t)
    assert "1.70 > 0.60" in panels(page)[0].one(".vs-table").text()
    assert "P(E) = p₁ + … + pₙ" in page.one(".vs-formula").text()
    (known,) = [node for node in page.walk() if "data-entities" in node.attributes]
    assert "P(E) 1.7 · H(E) 0.50" in known.attributes["data-entities"]


# --- While the run goes on ------------------------------------------------------------------------


async def test_the_page_grows_with_the_run(t: Catalogue):
    trace = (await drad_outcome()).trace

    def seen(kind: str, nth: int = 0) -> Node:
        return read(drad_view(until(trace, kind, nth), t))

    waiting = seen("run_started")
    assert waiting.one(".vs-answer-panel").attributes["aria-busy"] == "true"
    written = seen("revised")
    assert len(panels(written)) == 1
    assert "Looking for doubtful entities" in written.one(".vs-section-drad-decision").text()
    correcting = seen("retrieved")
    (step,) = correcting.all(".vs-step")
    assert step.one(".vs-step-entity").text() == "York"
    assert "Doubtful" in correcting.one(".vs-section-drad-decision").text()
    assert len(step.all(".vs-passage-card")) == 2
    # Every moment of the run can be drawn, in both languages.
    for end in range(1, len(trace.events) + 1):
        for language in ("en", "zh"):
            drad_view(fold(trace.events[:end]), Catalogue(language, strict=True))


def test_a_draft_is_shown_while_it_is_written(t: Catalogue):
    record = Record("drad").begin("drad")
    record.step("drad", "draft")
    record.emit(
        TokenWritten, "drad.draft", "drad", text="Ada was", tokens=tokens_of(pieces("Ada was"))
    )
    page = read(drad_view(record.view, t))
    heats = page.one(".vs-writing").all(".vs-heat-text")
    assert [heat.text() for heat in heats] == ["Ada was", "Ada was"]
    assert page.all(".vs-table") == []


def test_a_method_that_failed_says_why(t: Catalogue):
    error = UnreachableError("The server is gone.", remedy="Try again.").info()
    record = Record("drad").begin("drad").end("drad", error=error)
    page = read(drad_view(record.finish(), t))
    assert "The server is gone." in page.text()
    assert "nothing to show" in page.text()


async def test_nothing_is_shown_of_a_language_the_model_does_not_speak(t: Catalogue):
    view = speaking(view_of((await drad_outcome()).trace), "zh")
    page = read(drad_view(view, t))
    assert "does not speak the language" in page.text()
    assert panels(page) == page.all(".vs-step") == []
    assert drad_figures(view, t, "light") == []


# --- Figures --------------------------------------------------------------------------------------


async def test_the_figures_show_the_tokens_and_entities_of_the_original(t: Catalogue):
    view = view_of((await drad_outcome()).trace)
    (along, profile), (_, scatter) = drad_figures(view, t, "dark")
    assert along == "Probability and entropy along the text"
    assert len(profile.data[0].x) == len(DRAFT.split())  # pyright: ignore[reportAttributeAccessIssue]
    assert {text for trace in scatter.data for text in trace.text} == {"Clinton", "York", "1993"}  # pyright: ignore[reportAttributeAccessIssue]


def test_without_probabilities_there_is_nothing_to_plot(t: Catalogue):
    view = Record("drad").begin("drad").draft("drad").end("drad", ORIGINAL).finish()
    assert drad_figures(view, t, "light") == []
    assert drad_figures(Record("drad").finish(), t, "light") == []
