"""The calls and searches of a run as bars of the timeline."""

from __future__ import annotations

from components.calls import kind_of
from components.numbers import two_digits
from components.timeline import CallBar
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.events import ModelCalled, Retrieved
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Message

__all__ = ["call_bars"]


def call_bars(view: RunView) -> list[CallBar]:
    """Every attempt and search so far by the time it began, with what is being written now."""
    bars = [bar for method in view.methods.values() for bar in _of_method(method, view)]
    return sorted(bars, key=lambda bar: bar.start)


def _of_method(method: MethodView, view: RunView) -> list[CallBar]:
    steps = {step.span: step.step for step in method.steps}
    bars = [_call(method.name, steps.get(call.span, ""), call) for call in method.calls]
    bars += [_search(method.name, steps.get(s.span, ""), s) for s in method.searches]
    called = {call.span for call in method.calls}
    if not view.over:
        bars += [
            _writing(method.name, step)
            for step in method.steps
            if step.outcome is None and step.text and step.span not in called
        ]
    return bars


def _call(method: str, step: str, call: ModelCalled) -> CallBar:
    return CallBar(
        method=method,
        step=step,
        role=call.role,
        model=call.model,
        start=call.started,
        end=call.time,
        kind=kind_of(call),
        cached=call.cached,
        attempt=call.attempt,
        error=call.error.message if call.error else None,
        prompt=_prompt(call),
        reply=_reply(call),
        prompt_tokens=sum(g.usage.prompt_tokens for g in call.generations) or None,
        completion_tokens=sum(g.usage.completion_tokens for g in call.generations) or None,
        id=str(call.seq),
    )


def _prompt(call: ModelCalled) -> tuple[Message, ...]:
    match call.request:
        case GenerationRequest(messages=messages) | ChoiceRequest(messages=messages):
            return messages
        case ScoreRequest(messages=messages, text=text):
            return (*messages, Message(role="assistant", content=text))
        case SimilarityRequest(left=left, right=right):
            return tuple(Message(role="user", content="\n".join(side)) for side in (left, right))


def _reply(call: ModelCalled) -> str:
    if call.choice is not None:
        shares = call.choice.probabilities.items()
        return "\n".join(f"{label}: {probability:.3g}" for label, probability in shares)
    if call.similarities is not None:
        rows = call.similarities
        return "\n".join("  ".join(two_digits(value) for value in row) for row in rows)
    return "\n———\n".join(generation.text for generation in call.generations)


def _search(method: str, step: str, search: Retrieved) -> CallBar:
    return CallBar(
        method=method,
        step=step,
        role="",
        model=search.retriever,
        start=search.started,
        end=search.time,
        kind="retrieve",
        error=search.error.message if search.error else None,
        prompt=(Message(role="user", content=search.query),),
        reply="\n".join(f"{passage.rank}. {passage.title}" for passage in search.passages),
        id=str(search.seq),
    )


def _writing(method: str, step: StepView) -> CallBar:
    return CallBar(
        method=method,
        step=step.step,
        role="main",
        model="",
        start=step.started,
        end=None,
        kind="generate",
        reply=step.text,
        id=step.span,
    )
