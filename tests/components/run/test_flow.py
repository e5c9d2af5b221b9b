"""The diagram of a method's steps: what is declared is what runs do, and each state is told."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.run.calls import flow_diagram, stages_of
from components.run.report import panel_of
from pipelines.base import Language
from pipelines.methods.base import Stage
from pipelines.methods.registry import METHODS
from pipelines.run.events import Outcome, StepName
from pipelines.run.view import MethodView, RunView, Status, StepView, fold
from pipelines.store.exchange import load_recording, recordings
from tests.components.html_tree import Node, read
from tests.pipelines.methods.test_reevaluate import Setting

FLOW = (
    Stage("draft"),
    Stage("retrieve", optional=True),
    Stage("pair", ("judge",), repeats=True),
    Stage("repair", optional=True),
)


def step(
    name: StepName, start: float, end: float | None = None, outcome: Outcome = "ok", **more: Any
) -> StepView:
    done = outcome if end is not None else None
    span = more.pop("span", f"{name}-{start}")
    return StepView(span=span, name=name, started=start, ended=end, outcome=done, **more)


def method(*steps: StepView, outcome: Outcome | None = None) -> MethodView:
    return MethodView(name="drad", span="m", started=0.0, steps=steps, outcome=outcome)


def states(
    found: MethodView | None, *, status: Status = "running", time: float = 10.0
) -> list[str]:
    view = RunView(status=status, time=time)
    return [one.state for one in stages_of(FLOW, found, view)]


@pytest.mark.parametrize("name", METHODS)
async def test_a_method_declares_every_step_that_its_runs_take(name: str):
    """A span that no step names may only hold others."""
    flow = METHODS[name].flow
    known = {span for stage in flow for span in stage.spans}
    assert flow
    for seed in range(8):
        world = Setting(seed)
        settings = world.settings(METHODS[name], 0.5)
        view = fold((await world.run(METHODS[name], settings)).trace.events).methods[name]
        parents = {one.parent for one in view.steps}
        bare = {one.name for one in view.steps if one.span not in parents}
        assert bare <= known, (name, bare - known)


def test_recorded_runs_take_declared_steps_and_none_that_always_happens_is_missing():
    for recording in recordings():
        view = fold(load_recording(recording.id).events)
        for name, found in view.methods.items():
            for one in stages_of(METHODS[name].flow, found, view):
                assert one.state != "waiting", (name, one)
                if not one.stage.optional and not one.stage.repeats and found.outcome == "ok":
                    assert one.state == "done", (recording.id, name, one)


def test_a_step_belongs_to_one_stage():
    for name, one in METHODS.items():
        spans = [span for stage in one.flow for span in stage.spans]
        assert len(spans) == len(set(spans)), name


def test_nothing_has_begun():
    assert states(None) == ["waiting"] * 4
    assert states(None, status="cancelled") == ["unreached"] * 4


def test_the_current_step_is_lit_and_what_was_passed_over_is_skipped():
    running = method(step("draft", 0, 1), step("pair", 2))
    assert states(running) == ["done", "skipped", "running", "waiting"]
    found = stages_of(FLOW, running, RunView(status="running", time=3.0))
    assert [one.current for one in found] == [False, False, True, False]


def test_the_step_that_was_begun_last_is_the_current_one():
    both = method(step("draft", 0), step("pair", 1))
    found = stages_of(FLOW, both, RunView(status="running", time=3.0))
    assert [one.state for one in found[::2]] == ["running", "running"]
    assert [one.current for one in found] == [False, False, True, False]


def test_a_finished_method_needed_no_more_than_it_took():
    ended = method(step("draft", 0, 1), outcome="ok")
    assert states(ended, status="finished") == ["done", "skipped", "skipped", "skipped"]


def test_a_failed_step_is_marked_and_what_would_follow_was_not_reached():
    failed = method(step("draft", 0, 1), step("pair", 1, 2, "failed"), outcome="failed")
    assert states(failed, status="failed") == ["done", "skipped", "failed", "unreached"]
    # The method itself failed, between two steps.
    between = method(step("draft", 0, 1), outcome="failed")
    assert states(between, status="failed") == ["failed", "unreached", "unreached", "unreached"]


def test_a_stopped_step_is_told_from_a_failed_one():
    stopped = method(step("draft", 0, 1), step("pair", 1), outcome="cancelled")
    assert states(stopped, status="cancelled") == ["done", "skipped", "stopped", "unreached"]


def test_parts_of_a_step_are_counted_and_time_is_counted_once():
    """Two pairs at the same time from 1 to 3 and 2 to 4, the first with a judge inside: 3 s."""
    found = method(
        step("pair", 1, 3, span="a"),
        step("judge", 1.5, 2.5, parent="a", span="b"),
        step("pair", 2, 4, "failed", span="c"),
        outcome="ok",
    )
    pair = stages_of(FLOW, found, RunView(status="finished", time=9.0))[2]
    # The pair that holds the judge is not counted beside it.
    assert (pair.count, pair.failed, pair.seconds) == (2, 1, 3.0)


def items(html: str | None) -> list[Node]:
    assert html is not None
    return read(html).all("li")


def test_the_diagram_is_a_list_with_one_current_step(t: Catalogue):
    view = fold(load_recording(recordings()[0].id).events)
    name = next(iter(view.methods))
    drawn = items(flow_diagram(name, view, t))
    assert len(drawn) == len(METHODS[name].flow)
    assert not any("aria-current" in one.attributes for one in drawn)
    half = fold([e for e in load_recording(recordings()[0].id).events if e.time < view.time / 2])
    for running in half.methods:
        current = [
            one for one in items(flow_diagram(running, half, t)) if "aria-current" in one.attributes
        ]
        going_on = half.methods[running].outcome is None and not half.over
        assert len(current) <= 1
        assert not current or (going_on and current[0].attributes["aria-current"] == "step")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_explained_without_a_run(name: str, language: Language):
    t = Catalogue(language, strict=True)
    drawn = items(flow_diagram(name, None, t))
    for stage, one in zip(METHODS[name].flow, drawn, strict=True):
        assert t(f"step.{stage.step}") in one.text()


def test_the_panel_of_every_method_begins_with_its_steps(t: Catalogue):
    view = fold(load_recording(recordings()[0].id).events)
    for name in view.methods:
        first = read(panel_of(name)(view, t), unique_ids=False).all(".vs-panel")[0].children[0]
        assert "vs-flow" in first.classes


def test_a_method_from_elsewhere_has_no_diagram(t: Catalogue):
    assert flow_diagram("unheard_of", None, t) is None
