"""The methods' pages for runs that did not end well, and for addresses of no run."""

from __future__ import annotations

import pytest

from pipelines.engine.service import Engine
from pipelines.run.events import MethodSpec, SpanStarted, Trace
from pipelines.run.findings import MethodStarted
from pipelines.samples.walkthroughs import walkthrough
from pipelines.store.exchange import export_lines
from tests.app.playing import (
    EACH,
    EVEREST,
    PAGES,
    SOMEBODY_ELSE,
    load,
    opened,
    run,
    seen,
)
from tests.app.test_screens import ME, told


@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_failed_says_why(name: str, played: Engine):
    # None of its replies fits another question.
    spec = walkthrough(EVEREST).spec()
    methods = tuple(one for one in spec.methods if one.name in PAGES[name])
    failed = run(
        played, spec.model_copy(update={"question": "谁写了《红楼梦》？", "methods": methods})
    )
    test = opened(name, failed)
    assert not test.exception
    assert "谁写了《红楼梦》？" in seen(test)
    assert "A request cannot be answered" in seen(test)
    # There is nothing to go back from.
    assert all(button.disabled for button in test.button)


def cut(played: Engine, whole: Trace, share: float) -> str:
    """A run that was stopped when this share of `whole` had been recorded."""
    kept = Trace(events=whole.events[: max(1, int(share * len(whole.events)))])
    return played.service.store.import_run("".join(export_lines(kept)), ME)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_was_stopped_is_shown_as_far_as_it_came(
    name: str, share: float, played: Engine, wall: str
):
    test = opened(name, cut(played, load(played, wall), share))
    assert not test.exception
    assert "The run was stopped" in seen(test)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("whose", ["nobody", "somebody else", "malformed"])
def test_an_address_of_no_run_of_this_browser_says_so(name: str, whose: str, everest: str):
    address = {"nobody": "0" * 32, "somebody else": everest, "malformed": "<b>../x"}[whose]
    test = opened(name, address, _owner=SOMEBODY_ELSE)
    assert not test.exception
    assert "Not found" in seen(test)
    assert "王富洲" not in seen(test)
    assert "<b>.." not in told(test)


@pytest.mark.parametrize(("name", "method"), EACH)
def test_a_run_with_settings_nobody_can_choose_says_what_is_wrong(
    name: str, method: str, played: Engine, everest: str
):
    whole = load(played, everest)
    header = whole.header
    wrong = (MethodSpec(name=method, settings={"unheard_of": 7}),)
    spec = header.spec.model_copy(update={"methods": wrong})
    started = header.model_copy(update={"spec": spec})
    # The settings recorded with the method come first: they are what it ran with.
    events = [
        event.model_copy(update={"detail": MethodStarted(settings={"unheard_of": 7})})
        if isinstance(event, SpanStarted) and event.name == "method" and event.method == method
        else event
        for event in whole.events[1:]
    ]
    run_id = played.service.store.import_run(
        "".join(export_lines(Trace(events=(started, *events)))), ME
    )
    test = opened(name, run_id)
    assert not test.exception
    assert "unheard_of" in seen(test)
