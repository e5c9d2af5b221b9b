"""The steps of a method as a diagram: those that it declares, with what a run made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from components.elements import sign
from components.markup import Html, tag
from components.messages import Catalogue, duration, named
from pipelines.methods.flow import Stage
from pipelines.methods.registry import METHODS
from pipelines.run.view import MethodView, RunView, StepView

State = Literal["waiting", "running", "done", "failed", "stopped", "skipped", "unreached"]

_SIGNS: dict[State, str] = {
    "waiting": "·",
    "running": "▸",
    "done": "✓",
    "failed": "✗",
    "stopped": "■",
    "skipped": "–",
    "unreached": "·",
}
"""The second cue of each state."""


@dataclass(frozen=True, slots=True)
class StageView:
    """A declared step and what a run made of it.

    `count` spans of it were begun, `failed` of them failed; `seconds` is the time in which at least
    one of them was running. `current` is True for the running step that was begun last.
    """

    stage: Stage
    state: State = "waiting"
    count: int = 0
    failed: int = 0
    seconds: float = 0.0
    current: bool = False


def stages_of(flow: Sequence[Stage], method: MethodView | None, view: RunView) -> list[StageView]:
    """Return every step of `flow`; `method` is None until the method has begun."""
    if method is None:
        state: State = "unreached" if view.over else "waiting"
        return [StageView(stage, state) for stage in flow]
    over = view.over or method.outcome is not None
    found = [[step for step in method.steps if step.name in stage.spans] for stage in flow]
    begun = [place for place, steps in enumerate(found) if steps]
    last = max(begun, default=-1)
    going_on = [step for steps in found for step in steps if step.outcome is None and not over]
    newest = max(going_on, key=lambda step: step.started, default=None)
    stages: list[StageView] = []
    for place, (stage, steps) in enumerate(zip(flow, found, strict=True)):
        if not steps:
            stages.append(StageView(stage, _unbegun(place < last, stage, method, over=over)))
            continue
        # Spans inside another of the same step are its parts.
        parents = {step.parent for step in steps}
        single = [step for step in steps if step.span not in parents]
        failed = sum(step.outcome == "failed" for step in single)
        state = _begun(steps, method, last=place == last, over=over)
        current = newest is not None and newest in steps
        seconds = _covered(steps, view.time)
        stages.append(StageView(stage, state, len(single), failed, seconds, current))
    return stages


def _unbegun(passed: bool, stage: Stage, method: MethodView, *, over: bool) -> State:
    """Return the state of a step of which nothing was begun; `passed` is one that a later step
    follows.
    """
    if over:
        return "skipped" if passed or method.outcome == "ok" else "unreached"
    return "skipped" if passed and not stage.repeats else "waiting"


def _begun(steps: Sequence[StepView], method: MethodView, *, last: bool, over: bool) -> State:
    outcomes = {step.outcome for step in steps}
    if None in outcomes and not over:
        return "running"
    if "failed" in outcomes or (last and method.outcome == "failed"):
        return "failed"
    return "stopped" if None in outcomes or "cancelled" in outcomes else "done"


def _covered(steps: Iterable[StepView], now: float) -> float:
    """Return the length of the union of the steps' times, in seconds."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted((s.started, now if s.ended is None else s.ended) for s in steps):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def flow_diagram(
    name: str, view: RunView | None, t: Catalogue, *, timed: bool = True
) -> Html | None:
    """Return the steps of the method `name`, as far as the run has come; None for one without any.

    Without a run (`view` None) it says what the method does. `timed` is false where the times are
    not those of the models, as in a run that was re-evaluated.
    """
    method = METHODS.get(name)
    if method is None or not method.flow:
        return None
    title = t("flow.title", method=named("method", name, t))
    if view is None:
        items = [_step(StageView(stage), t, plan=True) for stage in method.flow]
    else:
        stages = stages_of(method.flow, view.methods.get(name), view)
        items = [_step(one, t, timed=timed) for one in stages]
    return tag(
        "div.vs-flow",
        tag("ol.vs-flow-steps", items, aria_label=title),
        key=f"flow-{name}",
    )


def _step(one: StageView, t: Catalogue, *, plan: bool = False, timed: bool = True) -> Html:
    stage, words = one.stage, _words(one, t, plan=plan, timed=timed)
    css = f"li.vs-flow-step.vs-flow-{one.state}"
    css += ".vs-flow-optional" if stage.optional else ""
    css += ".vs-flow-current" if one.current else ""
    again = stage.repeats and tag("span.vs-flow-again", "↻", title=t("flow.repeats"))
    return tag(
        css,
        tag(
            "span.vs-flow-name",
            None if plan else sign(_SIGNS[one.state]),
            tag("span", t(f"step.{stage.step}")),
            again,
            tag("span.vs-sr", f" ({t('flow.repeats')})") if stage.repeats else None,
        ),
        tag("span.vs-flow-words.vs-num", words),
        aria_current="step" if one.current else None,
        key=stage.step,
    )


def _words(one: StageView, t: Catalogue, *, plan: bool, timed: bool) -> str:
    """Return the count and the time of a step, or why there are none."""
    if plan:
        return t("flow.optional") if one.stage.optional else t("flow.always")
    if one.state in ("waiting", "skipped", "unreached"):
        return t(f"flow.state.{one.state}")
    parts = [t("flow.count", count=one.count)] if one.count > 1 else []
    if timed and one.state != "running":
        parts.append(duration(one.seconds, t))
    if one.failed:
        parts.append(t("flow.failed", count=one.failed))
    elif one.state != "done":
        parts.insert(0, t(f"flow.state.{one.state}"))
    return " · ".join(parts)
