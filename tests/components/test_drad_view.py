"""The DRAD page as HTML: while the run goes on, afterwards, and re-evaluated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from components.drad_view import drad_figures, drad_view
from components.messages import LANGUAGES, Catalogue
from pipelines.engine.reevaluate import reevaluate
from pipelines.errors import UnreachableError
from pipelines.methods.drad import Drad
from pipelines.methods.drad import settings as drad_settings
from pipelines.models.base import Capabilities
from pipelines.run.events import TokenWritten
from pipelines.run.view import fold
from pipelines.types import Language
from tests.components.html_tree import Node, read
from tests.components.recorded import ORIGINAL, Record
from tests.components.runs import (
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
from tests.pipelines.methods.bench import (
    FixedRecognizer,
    Outcome,
    PieceModel,
    Shelf,
    pieces,
    run_method,
    tokens_of,
)
from tests.snapshots import Snapshot


def page_of(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page, re-evaluated with `changes` where there are any."""
    if not changes:
        return read(drad_view(view_of(outcome.trace), t))
    values = next(spec.settings for spec in outcome.trace.header.spec.methods)
    again = reevaluate(outcome.trace, Drad(), Drad().settings(values | changes))
    return read(drad_view(again.view, t, diverges_at=again.diverges_at))


def panels(page: Node) -> list[Node]:
    return page.all(".vs-draft-panel")


GONE = UnreachableError("Gone.", remedy="Wait.")
NOTHING = Shelf(lambda _: [])
DECISION, CHANGE, NOTES = "vs-section-drad-decision", "vs-section-drad-change", "vs-source-notes"
STEP = "vs-step"

State = tuple[Callable[[], Awaitable[Outcome]], dict[str, Any], tuple[str, ...]]


def of(*parts: str, changes: dict[str, Any] | None = None, **how: Any) -> State:
    """A run, what its settings are changed to afterwards, and the parts that tell of it."""
    return lambda: drad_outcome(**how), changes or {}, parts


async def by_samples() -> Outcome:
    """A run on a model without probabilities, for which several samples stand in."""
    written = model(Capabilities(languages=frozenset({"en"}), prefill=True))
    written.draws = [DRAFT, DRAFT]
    names = FixedRecognizer(*NAMES)
    return await run_method(Drad(), QUESTION, written, shelf=NOTHING, samples=2, recognizer=names)


async def summed() -> Outcome:
    said = PieceModel(lambda _: [("Bill", 0.9), (" Clinton", 0.8), (".", 0.9)])
    names = FixedRecognizer("Bill Clinton")
    return await run_method(Drad(), QUESTION, said, shelf=NOTHING, pooling="sum", recognizer=names)


STATES: dict[str, State] = {
    "a lower threshold": of(changes={"theta_1": 0.2}),
    "a higher threshold": of("vs-notice", DECISION, "vs-table", STEP, changes={"theta_1": 0.95}),
    "a single draft": of("vs-choice-input", DECISION, theta_1=0.1),
    "no entity": of(DECISION, recognizer=FixedRecognizer()),
    "nothing found": of(DECISION, STEP, shelf=NOTHING),
    "a failed search": of(DECISION, STEP, shelf=GONE),
    "repetitions": of(DECISION, theta_1=0.95, skip_repeats=True),
    "entropy by hand": of(NOTES, theta_2=1.25),
    "without entropy": of(NOTES, use_entropy=False, theta_2=1.25),
    "samples as a stand-in": (by_samples, {}, (NOTES, "vs-draft-panel")),
    "written to the end": of(DECISION, STEP, shelf=NOTHING, early_stop=True, m=1),
    "a sum of probabilities": (summed, {}, ("vs-table", "vs-formula")),
}
"""Runs, the settings they are looked at with, and the parts of the page that tell them apart."""


@pytest.mark.parametrize("state", STATES)
async def test_states(state: str, t: Catalogue, snapshot: Snapshot):
    made, changes, parts = STATES[state]
    snapshot(page_of(await made(), t, **changes), *parts)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_whole_pages(language: Language, snapshot: Snapshot):
    """The decision with its number, the correction step by step, heat and entities of drafts."""
    snapshot(page_of(await drad_outcome(), Catalogue(language)))


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


async def test_a_calibrated_threshold_names_its_model(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch
):
    table = {"pieces": {"5": {"theta_2": {"value": 1.5}}}}
    monkeypatch.setattr(drad_settings, "calibration", lambda method: table)
    notes = page_of(await drad_outcome(), t).one(".vs-source-notes").text()
    assert "θ₂ = 1.50 nats was calibrated on answers of pieces" in notes


# --- While the run goes on ------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_page_grows_with_the_run(language: Language, snapshot: Snapshot):
    trace, t = (await drad_outcome()).trace, Catalogue(language, strict=True)
    for kind in ("run_started", "revised", "retrieved"):
        snapshot(drad_view(until(trace, kind), t), "vs-answer-panel", DECISION, STEP)
    # Every moment of the run can be drawn.
    for end in range(1, len(trace.events) + 1):
        drad_view(fold(trace.events[:end]), t)


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


def test_a_run_of_version_0_1_has_verdicts_on_entities_alone(t: Catalogue):
    record = Record("drad").begin("drad").draft("drad")
    record.judge("drad", "doubtful", "Paris", "entity", start=16)
    view = record.end("drad", ORIGINAL).finish()
    page = read(drad_view(view, t))
    assert "1 of 1 entities is doubtful: Paris." in page.text()


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
