"""Rowen's decision taken again from a recorded run, for other variants, weights and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.drafts import recorded_drafts
from pipelines.methods.rowen.decision import (
    RowenDecision,
    RowenPair,
    conclude,
    is_settled,
    with_answer,
)
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, sides_of
from pipelines.run.events import Event, Judged, Retrieved, SpanEnded, SpanStarted
from pipelines.run.trace import Trace
from pipelines.types import Answer

__all__ = ["decide_again", "read_pair", "read_plan"]

_CHECK = ("k", "target", "answers", "temperature", "max_tokens")
_REPAIR = ("queries", "passages")
"""Settings that the recorded check, and the recorded repair, were made with."""


def decide_again(
    trace: Trace, method: str, recorded: RowenSettings, settings: RowenSettings
) -> RowenDecision:
    """The decision for `settings` on a run recorded with `recorded`; pure.

    It holds the recorded answer where evidence is retrieved as it was, the original where none is
    needed, and no answer where the run did not make what these settings want.
    """
    events = trace.of_method(method)
    drafts = [event.after for event in recorded_drafts(trace, method)]
    plan = read_plan(events)
    if plan is None or not drafts:
        # Nothing was compared: the model does not speak the language, or was not asked to answer.
        original = drafts[0] if drafts else None
        return RowenDecision(
            flagged=False,
            answer=None
            if original is None
            else Answer(text=original, original=original, short=original),
        )
    planned = sum(isinstance(one, SpanStarted) and one.step == "pair" for one in events)
    pairs = [read_pair(one) for one in events if isinstance(one, Judged) and one.what == "pair"]
    decision = conclude(settings, plan, pairs, planned)

    def leaves(reason: str) -> RowenDecision:
        return decision.model_copy(update={"diverges_at": 0, "reason": reason})

    assert decision.variant is not None
    if not _same(recorded, settings, _CHECK):
        return leaves("settings")
    if not set(sides_of(decision.variant)) <= set(plan.sides):
        return leaves("rowen_side")
    if not is_settled(settings, plan, pairs, planned):
        return leaves("rowen_stopped")
    if not decision.retrieve:
        return with_answer(decision, plan, settings, drafts[0])
    if not _same(recorded, settings, _REPAIR):
        return leaves("settings")
    if not _retrieved(events):
        return leaves("rowen_retrieval")
    searched = [(e.error is not None, len(e.passages)) for e in events if isinstance(e, Retrieved)]
    repaired = drafts[1] if len(drafts) > 1 else None
    return with_answer(decision, plan, settings, drafts[0], repaired, searched)


def read_plan(events: Sequence[Event]) -> RowenPlan | None:
    """How the recorded run went about its check, None where it made none."""
    for event in events:
        if isinstance(event, SpanStarted) and event.step == "check":
            return RowenPlan.model_validate(event.detail)
    return None


def read_pair(event: Judged) -> RowenPair:
    """The comparison that a recorded verdict on a pair tells of."""
    return RowenPair.model_validate({**event.detail, "span": event.span})


def _same(one: RowenSettings, other: RowenSettings, fields: Sequence[str]) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def _retrieved(events: Sequence[Event]) -> bool:
    """Whether evidence was searched for, and used where there was any, to the end."""
    steps = {one.span: one.step for one in events if isinstance(one, SpanStarted)}
    ended = {steps.get(one.span): one.outcome for one in events if isinstance(one, SpanEnded)}
    begun = "repair" in steps.values()
    return ended.get("retrieve") == "ok" and (not begun or ended.get("repair") == "ok")
