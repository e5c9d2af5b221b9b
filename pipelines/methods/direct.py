"""Direct: one answer from the model alone, the baseline every method starts from."""

from __future__ import annotations

from pipelines.methods.base import AnswerTokens, Method, Question, Settings
from pipelines.methods.replies.questions import echoes
from pipelines.methods.writing import first_draft
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.types import Answer, Message


class DirectSettings(Settings):
    """Settings of Direct."""

    max_tokens: AnswerTokens = 128


def direct_messages(question: Question) -> tuple[Message, ...]:
    """The prompt of a direct answer; the first drafts of DRAD and the SLM check use it as well."""
    prompts = load_prompts("direct")
    return prompts.turns(question.language, "system", "question", question=question.text)


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
            draft = await first_draft(step, direct_messages(question), settings.max_tokens)
            step.revised(draft)
        flags = ("question_repeated",) if echoes(draft.text, question) else ()
        return Answer(text=draft.text, original=draft.text, flags=flags)
