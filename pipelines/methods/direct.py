"""Direct: one answer from the model alone, the baseline every method starts from."""

from __future__ import annotations

from pydantic import Field

from pipelines.methods.base import Method, Question, Settings
from pipelines.methods.writing import write_answer
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.types import Answer, Message

__all__ = ["Direct", "DirectSettings", "direct_messages"]


class DirectSettings(Settings):
    """Settings of Direct."""

    max_tokens: int = Field(
        128, ge=8, le=1024, description="Longest answer, in tokens (ours: two short sentences)."
    )


def direct_messages(question: Question) -> tuple[Message, ...]:
    """The prompt of a direct answer; the first drafts of DRAD and the SLM check use it as well."""
    prompts = load_prompts("direct")
    return (
        Message(role="system", content=prompts.fill(question.language, "system")),
        Message(
            role="user",
            content=prompts.fill(question.language, "question", question=question.text),
        ),
    )


class Direct(Method[DirectSettings]):
    """One greedy answer, with token log-probabilities where the model gives them."""

    name = "direct"
    judges = False
    grounded = True
    baseline = True
    settings_type = DirectSettings
    prompts = (load_prompts("direct"),)

    async def run(self, question: Question, scope: Scope, settings: DirectSettings) -> Answer:
        async with scope.span("draft") as step:
            draft = await write_answer(step, direct_messages(question), settings.max_tokens)
            step.revised(draft)
        return Answer(text=draft.text, original=draft.text)
