"""The drafts of a method, as recorded, and prompts that carry passages."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.base import Question
from pipelines.prompts import Prompts
from pipelines.run.events import Revised
from pipelines.run.scope import Scope
from pipelines.run.trace import Trace
from pipelines.types import Generation, Message, Passage

__all__ = ["grounded_messages", "record_original", "recorded_drafts"]


def record_original(step: Scope, draft: Generation) -> None:
    """Write a method's first draft down."""
    step.revised(draft=0, before="", after=draft.text, start=0, reason="original", generation=draft)


def recorded_drafts(trace: Trace, method: str) -> list[Revised]:
    """The drafts of `method` in order; the first is the original."""
    return [event for event in trace.of_method(method) if isinstance(event, Revised)]


def grounded_messages(
    prompts: Prompts, question: Question, passages: Sequence[Passage]
) -> tuple[Message, ...]:
    """A prompt with the keys `system`, `question` and `passage`, filled with passages in order."""
    language = question.language
    listed = "\n".join(
        prompts.fill(language, "passage", rank=str(number), title=passage.title, text=passage.text)
        for number, passage in enumerate(passages, start=1)
    )
    return (
        Message(role="system", content=prompts.fill(language, "system")),
        Message(
            role="user",
            content=prompts.fill(language, "question", question=question.text, passages=listed),
        ),
    )
