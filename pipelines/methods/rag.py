"""RAG: retrieve once by the question, then answer from the passages found."""

from __future__ import annotations

from pydantic import Field

from pipelines.methods import nearest
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Wording
from pipelines.methods.direct import direct_messages
from pipelines.methods.writing import grounded_messages, write_draft
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.types import Answer, Generation


class RagSettings(Settings):
    """Settings of RAG."""

    passages: int = Field(
        3, ge=1, le=20, description="Passages given to the model (DRAD's single-round: 3)."
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


class Rag(Method[RagSettings]):
    """Single-round retrieval: the passages for the question itself go into one prompt."""

    name = "rag"
    judges = False
    grounded = True
    baseline = True
    settings_type = RagSettings
    roles = JUDGES
    prompts = (load_prompts("rag"), load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: RagSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: RagSettings) -> Answer:
        async with scope.span("retrieve") as step:
            passages = await step.search(question.text, settings.passages)
        remarks: tuple[str, ...] = () if passages else ("no_evidence",)
        if passages and nearest.takes_sentence(scope, settings.wording):
            async with scope.span("draft") as step:
                correction = await nearest.correct(step, question, passages)
                if correction.changes:
                    step.revised(Generation(text=correction.text))
                    text, flags = correction.text, (correction.flag,)
                    return Answer(text=text, original=text, flags=flags)
            remarks = (correction.flag,)
        async with scope.span("draft") as step:
            # Nothing found: the model answers from memory, and the answer says so.
            messages = (
                grounded_messages(self.prompts[0], question, passages)
                if passages
                else direct_messages(question)
            )
            draft = await write_draft(step, messages, settings.max_tokens)
            step.revised(draft)
        return Answer(text=draft.text, original=draft.text, flags=remarks)
