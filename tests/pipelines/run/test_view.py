"""Folding events into what a screen shows."""

from typing import Any

import pytest

from pipelines.base import Answer, Generation, Token, Usage
from pipelines.models.base import SimilarityRequest
from pipelines.run.events import (
    MethodSpec,
    ModelCalled,
    Revised,
    RunFinished,
    RunSpec,
    RunStarted,
    SpanEnded,
    SpanStarted,
    TokenWritten,
)
from pipelines.run.live import Recorder
from pipelines.run.view import (
    MethodView,
    RunView,
    fold,
    number_setting,
    reduce,
    whole_setting,
)
from tests.scripted.fakes import request


class Events:
    """Emits events on a clock that advances by one second an event."""

    def __init__(self) -> None:
        self.list: list[Any] = []
        self._time = -1.0
        self._recorder = Recorder("r", self.list.append, self._clock)

    def _clock(self) -> float:
        self._time += 1.0
        return self._time

    def add(self, event_type: type[Any], span: str, parent: str | None = None, **fields: Any):
        return self._recorder.emit(event_type, span=span, parent=parent, **fields)


def started() -> Events:
    events = Events()
    spec = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),))
    events.add(RunStarted, "run", spec=spec, language="en", created=0.0, versions={}, prompts={})
    events.add(SpanStarted, "m", "run", method="direct", name="method")
    events.add(SpanStarted, "d", "m", method="direct", name="draft")
    return events


def token(text: str, start: int) -> Token:
    return Token(text=text, start=start, end=start + len(text), logprob=-0.1)


@pytest.mark.parametrize(
    ("held", "number", "whole"),
    [
        (3, 3, 3),
        (2.5, 2.5, 2),
        (True, None, 7),
        ("3", None, 7),
        (float("nan"), None, 7),
        (-1, -1, 7),
        # More than 1.8e308, the largest number of that kind.
        (10**400, None, 7),
        (10**300, 10**300, 1000),
    ],
)
def test_a_run_from_elsewhere_may_hold_any_number(held: object, number: float | None, whole: int):
    method = MethodView("direct", span="m", started=0.0, settings={"k": held})
    assert number_setting(method, "k") == number
    assert whole_setting(method, "k", 7) == whole


def test_a_text_grows_in_its_step_until_it_is_a_draft():
    events = started()
    events.add(TokenWritten, "d", "m", text="A", tokens=(token("A", 0),))
    events.add(TokenWritten, "d", "m", text=" b", tokens=(token(" b", 1),))
    view = fold(events.list)
    writing = view.methods["direct"].writing
    assert writing is not None
    assert (writing.text, len(writing.tokens)) == ("A b", 2)

    draft = Generation(text="A b")
    events.add(
        Revised, "d", "m", draft=0, before="", after="A b", start=0, reason="original",
        generation=draft,
    )  # fmt: skip
    view = fold(events.list)
    assert view.methods["direct"].writing is None
    assert view.methods["direct"].drafts[0].after == "A b"


def test_a_restart_forgets_the_text_before_it():
    events = started()
    events.add(TokenWritten, "d", "m", text="A")
    events.add(TokenWritten, "d", "m", text="", restart=True)
    events.add(TokenWritten, "d", "m", text="B")
    writing = fold(events.list).methods["direct"].writing
    assert writing is not None
    assert writing.text == "B"


def test_the_end_of_a_method_carries_its_answer_and_the_run_ends_once():
    events = started()
    call = {"role": "main", "model": "fake", "request": request(), "started": 1.0}
    reply = (Generation(text="A", usage=Usage(completion_tokens=7)),)
    events.add(ModelCalled, "d", "m", **call, attempt=1, generations=reply)
    events.add(ModelCalled, "d", "m", **call, attempt=1, generations=reply, cached=True)
    events.add(SpanEnded, "d", "m", outcome="ok")
    answer = Answer(text="A", original="A")
    events.add(SpanEnded, "m", "run", outcome="ok", answer=answer)
    events.add(RunFinished, "run", answers={"direct": answer})
    view = fold(events.list)
    method = view.methods["direct"]
    assert (view.status, view.over) == ("finished", True)
    assert method.answer == answer
    assert method.steps[0].outcome == "ok"
    assert (len(method.calls), len(method.made), method.tokens) == (2, 1, 7)


def test_an_embedders_calls_are_shown_but_not_counted_as_a_language_models():
    events = started()
    reply = (Generation(text="A", usage=Usage(completion_tokens=7)),)
    call = {"model": "fake", "started": 1.0, "attempt": 1}
    events.add(ModelCalled, "d", "m", role="main", request=request(), generations=reply, **call)
    compared = SimilarityRequest(left=("a",), right=("b",))
    events.add(
        ModelCalled, "d", "m", role="embedder", request=compared, similarities=((0.5,),), **call
    )
    method = fold(events.list).methods["direct"]
    assert [one.role for one in method.calls] == ["main", "embedder"]
    assert [one.role for one in method.made] == ["main"]
    assert method.tokens == 7


def test_a_step_knows_the_step_it_is_part_of():
    events = started()
    events.add(SpanStarted, "e", "d", method="direct", name="detect")
    steps = {step.span: step for step in fold(events.list).methods["direct"].steps}
    assert {span: step.parent for span, step in steps.items()} == {"d": "m", "e": "d"}
    events.add(SpanEnded, "e", "d", outcome="ok")
    ended = fold(events.list).methods["direct"].steps[1]
    assert (ended.parent, ended.outcome) == ("d", "ok")


def test_reducing_is_pure_and_piecewise_equal_to_folding():
    events = started()
    events.add(TokenWritten, "d", "m", text="A")
    view = RunView()
    for event in events.list:
        before = view
        view = reduce(before, event)
        assert reduce(before, event) == view
    assert view == fold(events.list)


def test_an_event_of_an_unknown_span_moves_only_the_clock():
    events = started()
    view = fold(events.list)
    stray = events.add(TokenWritten, "elsewhere", "m", text="A")
    after = reduce(view, stray)
    assert after.methods == view.methods
    assert after.time == stray.time
