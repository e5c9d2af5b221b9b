"""The Check page without a browser: what is pasted, what can check it, and what is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from pipelines.engine.checking import STANDARD, detectors
from pipelines.engine.service import Engine
from pipelines.run.events import Judged
from pipelines.samples.walkthroughs import sample_texts
from tests.app.opening import page_engine
from tests.app.playing import load, open_engine, opened, run, seen
from tests.app.test_screens import ME, page, told

BORN, DIED = "Marie Curie was born in Warsaw.", "She died in Florida."
TEXT = f"{BORN} {DIED}"
OPEN = {"check.setup": True}
ONE = {f"check.method.{name}": name == "slm" for name in detectors()}
"""One detector is ticked: it takes no call of a model that writes."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, open_engine) as opened:
        yield opened


def check(test: AppTest, text: str = TEXT) -> AppTest:
    test.text_area(key="check.text").input(text)
    test.button(key="check.run").click()
    return test.run()


def finished(engine: Engine, test: AppTest) -> str:
    """The run that the page looks at, once it is over."""

    async def over(run_id: str) -> None:
        subscription = await engine.service.watch(run_id, owner=ME)
        async for _ in subscription.events():
            pass

    run_id = test.query_params["run"]
    if isinstance(run_id, list):
        (run_id,) = run_id
    engine.call(over(run_id))
    return run_id


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_drawn_with_examples_in_its_language(engine: Engine, language: Language):
    test = page("check", lang=language, **OPEN).run()
    assert not test.exception
    t = Catalogue(language)
    assert t("check.title") in seen(test)
    assert t("check.empty") in seen(test)
    titles = [one.title for one in sample_texts() if one.language == language]
    (pills,) = test.get("pills") or test.get("button_group")
    assert [option.content for option in pills.proto.options] == titles


def test_a_text_is_checked_as_a_run_that_other_pages_know(engine: Engine):
    test = check(page("check", **ONE).run())
    assert not test.exception
    run_id = finished(engine, test)
    trace = load(engine, run_id)
    assert trace.header.spec.answer is not None
    assert trace.header.spec.answer.text == TEXT
    assert [one.name for one in trace.header.spec.methods] == ["slm"]
    judged = [e for e in trace.events if isinstance(e, Judged) and e.what == "sentence"]
    assert [e.text for e in judged] == [BORN, DIED]
    # Without a question, lists call it by the text.
    (listed,) = engine.service.store.list(ME)
    assert listed.title == TEXT
    # The form is folded away, so that what was found is in view.
    assert not test.text_area
    shown = seen(opened("check", run_id, **ONE))
    assert BORN in shown
    assert "SLM check" in shown
    assert "Together" in shown
    assert Catalogue("en")("check.corrected.none") in shown


def test_after_a_reload_the_form_shows_what_was_given(engine: Engine):
    test = page("check", **ONE).run()
    test.text_input(key="check.question").input("Who was she?")
    run_id = finished(engine, check(test))
    again = opened("check", run_id, **ONE, **{"check.form": True})
    assert again.text_area(key="check.text").value == TEXT
    assert again.text_input(key="check.question").value == "Who was she?"


def test_a_check_is_opened_on_its_page_wherever_its_address_or_its_row_leads(engine: Engine):
    run_id = finished(engine, check(page("check", **ONE).run()))
    test = page("ask")
    test.query_params["run"] = run_id
    test.run()
    assert not test.exception
    assert test.session_state["_wanted_page"] == "check"
    # Who goes back to Ask is told where the check is; the form is not filled with what it asked.
    assert Catalogue("en")("ask.check") in seen(test)
    assert not test.text_input(key="question").value
    assert test.button(key="ask-check-open").label == "Open the check"
    listed = page("runs").run()
    listed.button(key=f"open-{run_id}").click().run()
    assert listed.session_state["_wanted_page"] == "check"


def test_sources_are_given_one_in_each_block(engine: Engine):
    test = page("check", **ONE, **{"check.against": "sources"}).run()
    test.text_area(key="check.sources").input(f"{BORN}\n\nShe died in France.")
    run_id = finished(engine, check(test))
    evidence = load(engine, run_id).header.spec.evidence
    assert (evidence.source, evidence.text) == ("given", f"{BORN}\n\nShe died in France.")


def test_what_cannot_work_says_what_it_needs(engine: Engine):
    test = page("check", **OPEN, **{"check.text": TEXT}).run()
    captions = " ".join(caption.value for caption in test.caption)
    assert "SelfCheckGPT (needs the question)" in captions
    assert test.checkbox(key="check.method.selfcheck").disabled
    assert "Needs the question that the text answers." in captions
    test.text_input(key="check.question").input("Who was she?").run()
    assert not test.checkbox(key="check.method.selfcheck").disabled
    # Sources are wanted, and there are none yet.
    test = page("check", **OPEN, **{"check.text": TEXT, "check.against": "sources"}).run()
    captions = " ".join(caption.value for caption in test.caption)
    assert "EVER, HAARAG, SLM check, P(yes) (needs evidence)" in captions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text to check."),
        ("x" * 8001, "The text has 8,001 characters; 8,000 can be checked at once."),
        ("…", "The text holds no word that could be checked."),
        ("So it is. " * 61, "The text has 61 sentences; 60 can be checked at once."),
    ],
)
def test_what_cannot_be_checked_is_told_and_kept(engine: Engine, text: str, said: str):
    test = check(page("check", **ONE).run(), text)
    assert said in told(test)
    assert test.text_area(key="check.text").value == text
    assert "run" not in test.query_params


def test_without_a_detector_nothing_begins(engine: Engine):
    test = check(page("check", **dict.fromkeys(ONE, False)).run())
    assert "No detector was chosen" in told(test)
    assert "run" not in test.query_params


@pytest.mark.parametrize("sample", sample_texts(), ids=lambda one: one.id)
def test_an_example_fills_the_form_and_says_what_is_wrong_in_it(engine: Engine, sample):
    test = page("check", lang=sample.language).run()
    (pills,) = test.pills
    pills.select(sample.id)
    test.run()
    assert not test.exception
    assert test.text_area(key="check.text").value == sample.text
    assert sample.about in [caption.value for caption in test.caption]
    if sample.sources:
        assert test.text_area(key="check.sources").value == "\n\n".join(sample.sources)


def test_a_run_that_checks_nothing_leaves_the_page_empty(engine: Engine):
    from tests.app.playing import EVEREST, play

    shown = seen(opened("check", play(engine, EVEREST)))
    assert Catalogue("en")("check.empty") in shown


def test_a_check_can_be_looked_at_on_other_pages_and_compared(engine: Engine):
    run_id = finished(engine, check(page("check", **ONE).run()))
    assert BORN in seen(opened("check", run_id))
    assert not opened("grounding", run_id).exception
    # The same check again is a run of its own.
    again = run(engine, load(engine, run_id).header.spec)
    assert again != run_id


def test_the_standard_detectors_are_ticked_at_first(engine: Engine):
    test = page("check", **OPEN).run()
    ticked = [name for name in detectors() if test.checkbox(key=f"check.method.{name}").value]
    assert ticked == list(STANDARD)
