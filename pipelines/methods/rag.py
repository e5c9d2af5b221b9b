"""RAG: retrieve once by the question, then answer from the passages found."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.base import Answer, Generation, Passage
from pipelines.methods import nearest
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.direct import direct_messages
from pipelines.methods.writing import first_draft, grounded_messages
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES
from pipelines.run.scope import Scope


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
    flow = (
        Stage("retrieve"),
        Stage("draft", ("nearest",)),
    )
    roles = JUDGES
    prompts = (load_prompts("rag"), load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: RagSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: RagSettings) -> Answer:
        async with scope.span("retrieve") as step:
            passages = await step.search(question.text, settings.passages)
        if passages and nearest.takes_sentence(scope, settings.wording):
            return await self._from_sentence(question, scope, passages)
        async with scope.span("draft") as step:
            # Nothing found: the model answers from memory, and the answer says so.
            messages = (
                grounded_messages(self.prompts[0], question, passages)
                if passages
                else direct_messages(question)
            )
            draft = await first_draft(step, messages, settings.max_tokens)
            step.revised(draft)
        flags = () if passages else ("no_evidence",)
        return Answer(text=draft.text, original=draft.text, flags=flags)

    async def _from_sentence(
        self, question: Question, scope: Scope, passages: Sequence[Passage]
    ) -> Answer:
        """Return what the model writes from the passages, where the nearest sentence supports it.

        Else that sentence, and where none is near, only that there is none.
        What a weak model writes from passages that do not answer reads like an answer.
        """
        messages = grounded_messages(self.prompts[0], question, passages)
        async with scope.span("draft") as step:
            correction = await nearest.correct(step, question, passages, asked=messages)
            text = correction.text or self.prompts[0].fill(question.language, "insufficient")
            step.revised(Generation(text=text))
        return Answer(
            text=text,
            original=text,
            abstained=not correction.changes,
            flags=(correction.flag,),
        )
