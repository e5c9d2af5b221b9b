"""Direct: one answer from the model alone, the baseline every method starts from."""

from __future__ import annotations

from pipelines.base import Answer, Generation, Message
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.replies.lists import echoes
from pipelines.methods.writing import first_draft
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope


class DirectSettings(Settings):
    """Settings of Direct."""

    max_tokens: AnswerTokens = 128


def direct_messages(question: Question) -> tuple[Message, ...]:
    """Return the prompt of a direct answer; the first drafts of DRAD and the SLM check use it
    as well.
    """
    prompts = load_prompts("direct")
    return prompts.turns(question.language, "system", "question", question=question.text)


async def direct_draft(scope: Scope, question: Question, max_tokens: int) -> Generation:
    """Return the direct answer, or the one that the run was given, recorded as draft 0."""
    async with scope.span("draft") as step:
        draft = await first_draft(step, direct_messages(question), max_tokens)
        step.revised(draft)
    return draft


class Direct(Method[DirectSettings]):
    """One greedy answer, with token log-probabilities where the model gives them."""

    name = "direct"
    judges = False
    grounded = True
    baseline = True
    settings_type = DirectSettings
    flow = (Stage("draft"),)
    prompts = (load_prompts("direct"),)

    async def run(self, question: Question, scope: Scope, settings: DirectSettings) -> Answer:
        draft = await direct_draft(scope, question, settings.max_tokens)
        flags = ("question_repeated",) if echoes(draft.text, question) else ()
        return Answer(text=draft.text, original=draft.text, flags=flags)
