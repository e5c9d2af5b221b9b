"""RAG: retrieve once by the question, then answer from the passages found."""

from __future__ import annotations

from pydantic import Field

from pipelines.methods.base import Method, Need, Question, Settings
from pipelines.methods.direct import direct_messages
from pipelines.methods.writing import grounded_messages, write_answer
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
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
    judges = False
    grounded = True
    baseline = True
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
            draft = await write_answer(step, messages, settings.max_tokens)
            step.revised(draft)
        flags = () if passages else ("no_evidence",)
        return Answer(text=draft.text, original=draft.text, flags=flags)
