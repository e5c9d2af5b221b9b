"""RAG: retrieve once by the question, then answer from the passages found."""

from __future__ import annotations

from pydantic import Field

from pipelines.methods.base import Decision, Method, Need, Question, Settings
from pipelines.methods.direct import direct_messages
from pipelines.methods.drafts import grounded_messages, record_original, recorded_drafts
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.run.trace import Trace
from pipelines.types import Answer

__all__ = ["Rag", "RagSettings"]


class RagSettings(Settings):
    """Settings of RAG."""

    passages: int = Field(
        3, ge=1, le=20, description="Passages given to the model (DRAD's single-round: 3)."
    )
    max_tokens: int = Field(
        128, ge=8, le=1024, description="Longest answer, in tokens (ours: two short sentences)."
    )


class Rag(Method[RagSettings]):
    """Single-round retrieval: the passages for the question itself go into one prompt."""

    name = "rag"
    settings_type = RagSettings
    prompts = (load_prompts("rag"), load_prompts("direct"))

    def needs(self, settings: RagSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: RagSettings) -> Answer:
        async with scope.span("retrieve") as step:
            passages = await step.search(question.text, settings.passages)
        async with scope.span("draft") as step:
            # Nothing found: the model answers from memory, and the answer says so.
            messages = (
                grounded_messages(self.prompts[0], question, passages)
                if passages
                else direct_messages(question)
            )
            can = step.model().capabilities
            draft = await step.write(
                step.request(messages, max_tokens=settings.max_tokens, logprobs=can.logprobs)
            )
            record_original(step, draft)
        flags = () if passages else ("no_evidence",)
        return Answer(text=draft.text, original=draft.text, flags=flags)

    def decide(self, trace: Trace, settings: RagSettings) -> Decision:
        """RAG judges nothing: never flagged, the answer is the recorded one."""
        drafts = recorded_drafts(trace, self.name)
        text = drafts[-1].after if drafts else None
        return Decision(
            flagged=False, answer=None if text is None else Answer(text=text, original=text)
        )
