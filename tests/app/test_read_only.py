"""The Runs page where runs can be read and not stored, and runs of processes that were killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS
from pipelines.store import RunStore, file_url
from tests.app.opening import page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, page, told
from tests.pipelines.store import examples
from tests.pipelines.store.read_only import read_only


@pytest.fixture
def reading(open_folder: Path) -> Iterator[Engine]:
    """An engine that may not write, over a whole run and one whose process is gone."""
    with closing(RunStore(file_url(open_folder))) as store:
        store.create("whole", ME, examples.started("whole"))
        store.append("whole", examples.complete("whole")[1:])
        store.create("cut", ME, examples.started("cut"))

    def open_engine(data: Path) -> Engine:
        with read_only(data):
            return Engine(data)

    with page_engine(open_folder, open_engine) as engine:
        # What is written is refused even though it could be written again by now.
        store = engine.service.store
        refusal = store.refusal
        assert refusal is not None

        def refuse() -> None:
            raise refusal

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store._database, "_open_to_write", refuse)
            yield engine


def test_runs_are_listed_and_an_interrupted_one_says_so(reading: Engine):
    test = page("runs").run()
    assert not test.exception
    assert told(test).count("interrupted") == 1
    keys = {button.key for button in test.button}
    assert {"open-whole", "open-cut"} <= keys


def test_an_interrupted_run_is_opened_and_says_what_happened(reading: Engine):
    test = page("ask")
    test.query_params["run"] = "cut"
    test.run()
    assert not test.exception
    assert "The run was interrupted" in seen(test)


def test_a_question_is_refused_with_what_to_do(reading: Engine):
    test = page("ask").run()
    for method in METHODS:
        test.checkbox(key=f"method.{method}").uncheck()
    test.checkbox(key="method.direct").check()
    test.text_input(key="question").input("Who?")
    test.button(key="run").click().run()
    assert not test.exception
    assert "The runs cannot be written" in told(test)
