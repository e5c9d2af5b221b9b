"""What the Ask page offers to watch: walkthroughs are played, recorded runs opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.screens import ask
from app.screens.setup import SAMPLES
from components.ask import examples, recordings_note
from components.base.words import Catalogue
from pipelines.base import Language
from pipelines.engine import service
from pipelines.engine.service import Engine
from pipelines.run.events import Trace
from pipelines.samples.walkthroughs import walkthrough, walkthroughs
from pipelines.store import exchange
from pipelines.store.exchange import CHOSEN, ChosenRun, RecordingChoice, export_lines
from tests.app.playing import EVEREST, load, opened, play, seen
from tests.app.test_screens import FOLDS, ME, page
from tests.scripted.recorded import Record, full_method

KEPT = "sample-en-001"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """The only recorded run there is."""
    record = Record("direct", "drad", run=KEPT, question="Who was <b>Ada</b>?")
    for method in ("direct", "drad"):
        full_method(record, method, "doubtful")
    record.finish()
    trace = Trace(events=tuple(record.events))
    lines = "".join(export_lines(trace))
    (tmp_path / "en-001.jsonl").write_text(lines, encoding="utf-8")
    chosen = ChosenRun(run="en-001", answer="A writer", shows={"drad": "corrects"})
    why = RecordingChoice(recorded={"en-001": {"drad": "corrects", "rag": "lucky"}}, runs=(chosen,))
    (tmp_path / CHOSEN).write_text(why.model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(ask, "recordings", partial(exchange.recordings, tmp_path))
    monkeypatch.setattr(ask, "choice", partial(exchange.choice, tmp_path))
    monkeypatch.setattr(
        service, "load_recording", partial(exchange.load_recording, folder=tmp_path)
    )
    return trace


def cards(test: AppTest, place: str) -> list[str]:
    """The samples that can be watched, by their ids."""
    start = f"sample-{place}-"
    keys = [button.key or "" for button in test.button]
    return [key.removeprefix(start) for key in keys if key.startswith(start)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_walkthrough_has_a_card(played: Engine, language: Language):
    test = page("ask", lang=language).run()
    assert not test.exception
    assert cards(test, "empty")[: len(walkthroughs())] == [one.id for one in walkthroughs()]
    for one in walkthroughs():
        for words in (one.title[language], one.question, one.shows[language]):
            assert words in seen(test)
        button = test.button(key=f"sample-empty-{one.id}")
        assert button.label == Catalogue(language)("samples.play")


def test_a_walkthrough_is_played(played: Engine):
    test = page("ask").run()
    test.button(key=f"sample-empty-{EVEREST}").click().run()
    assert not test.exception
    run_id = test.query_params["run"]
    assert load(played, run_id).header.spec == walkthrough(EVEREST).spec()
    assert test.text_input(key="question").value == walkthrough(EVEREST).question
    assert test.session_state["setup"] is False
    # The cards have made room for the run, and wait behind a button.
    assert cards(test, "empty") == []
    assert cards(test, "more") == []
    test.session_state["samples"] = True
    test.run()
    assert cards(test, "more")[: len(walkthroughs())] == [one.id for one in walkthroughs()]


def test_another_one_is_played_after_it(played: Engine):
    first = play(played, EVEREST)
    test = opened("ask", first)
    test.button(key=f"sample-more-{EVEREST}").click().run()
    assert not test.exception
    assert test.query_params["run"] != first


def test_a_played_walkthrough_leaves_the_choices_of_the_next_question_alone(played: Engine):
    test = page("ask").run()
    test.checkbox(key="method.rag").uncheck().run()
    test.button(key=f"sample-empty-{EVEREST}").click().run()
    test.session_state["setup"] = True
    test.run()
    assert test.checkbox(key="method.rag").value is False
    assert test.selectbox(key="model.main").value == "SmolLM2-135M-Instruct"


def test_a_walkthrough_that_cannot_be_found_says_so(
    played: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    test = page("ask").run()
    monkeypatch.setattr(ask, "walkthrough", partial(walkthrough, folder=tmp_path))
    test.button(key=f"sample-empty-{EVEREST}").click().run()
    assert not test.exception
    assert "Not found" in seen(test)


def test_a_recorded_run_is_opened_and_nothing_is_computed(played: Engine, kept: Trace):
    runs = played.service.store.list(ME, limit=1000)
    test = page("ask").run()
    assert not test.exception
    assert "DRAD catches and corrects the wrong answer" in seen(test)
    assert "Who was <b>Ada</b>?Right answer: A writer" in seen(test)
    told = [caption.value for caption in test.caption]
    assert "In none of the 1 recorded runs does this method do what it is for: RAG." in told
    assert "None of the 1 recorded runs shows a failure of RAG, DRAD." in told
    test.button(key=f"sample-empty-works-{KEPT}").click().run()
    assert not test.exception
    assert test.query_params["run"] == KEPT
    assert test.text_input(key="question").value == "Who was <b>Ada</b>?"
    assert "Ada was born in London." in seen(test)
    assert Catalogue("en")("illustration.note") not in seen(test)
    assert played.service.store.list(ME, limit=1000) == runs


@pytest.mark.parametrize("name", ["ask", "drad", "compare"])
def test_a_recorded_run_is_everybodys(played: Engine, kept: Trace, name: str):
    test = opened(name, KEPT, _owner="d" * 48)
    assert not test.exception
    assert "Not found" not in seen(test)
    assert "Ada" in seen(test)
    assert Catalogue("en")("page.not_used", method="DRAD") not in seen(test)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_walkthroughs_stand_first_then_what_works_what_fails_and_questions(
    played: Engine, language: Language
):
    t = Catalogue(language)
    test = page("ask", lang=language).run()
    assert not test.exception
    titles = ("samples.walkthroughs", "samples.recordings", "samples.works", "samples.fails")
    places = [seen(test).index(t(title)) for title in titles]
    assert places == sorted(places)
    shipped = exchange.recordings()
    opened_by = [
        f"{part}-{one.id}"
        for part, chosen in (("works", "shows"), ("fails", "fails"))
        for one in shipped
        if getattr(one.chosen, chosen)
    ]
    assert cards(test, "empty")[len(walkthroughs()) :] == opened_by
    assert recordings_note(exchange.choice(), t) in [one.value for one in test.caption]
    # What a run is made of waits behind a fold.
    folded = page("ask", **dict.fromkeys(FOLDS, False)).run()
    assert not folded.checkbox
    assert not folded.selectbox


def test_an_example_goes_into_the_form_of_the_empty_page_and_of_a_run(played: Engine):
    test = page("ask").run()
    test.pills(key="example").select(examples("en")[1]).run()
    assert test.text_input(key="question").value == examples("en")[1]
    test.button(key=f"sample-empty-{EVEREST}").click().run()
    # Beside a run they wait behind a fold.
    test.session_state[SAMPLES] = True
    test.run()
    test.pills(key="example").select(examples("en")[0]).run()
    assert not test.exception
    assert test.text_input(key="question").value == examples("en")[0]


def test_without_recorded_runs_there_is_no_list_of_them(
    played: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ask, "recordings", tuple)
    test = page("ask").run()
    assert Catalogue("en")("samples.recordings") not in seen(test)
    assert Catalogue("en")("samples.walkthroughs") in seen(test)
    monkeypatch.setattr(ask, "walkthroughs", tuple)
    test = page("ask").run()
    assert not test.exception
    assert cards(test, "empty") == []
    assert Catalogue("en")("samples.walkthroughs") not in seen(test)
