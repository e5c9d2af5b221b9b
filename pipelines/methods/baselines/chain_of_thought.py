"""Chain of thought: the model reasons in sentences before it answers.

Source: Wei et al. 2022 (with demonstrations), Kojima et al. 2022 (without; where a reply marks no
answer, a second call asks for it). The bare answer is `Answer.short`.
"""

from __future__ import annotations

from pydantic import Field

from pipelines.base import Answer, Message
from pipelines.methods.base import Demonstrations, Method, Question, Settings, Stage
from pipelines.methods.baselines.shared import COT_PROMPTS, bare_answer
from pipelines.methods.replies.announced import read_answer
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import demonstrates, first_draft
from pipelines.run.scope import Scope


class ChainOfThoughtSettings(Settings):
    """Settings of chain of thought."""

    demonstrations: Demonstrations = "auto"
    max_tokens: int = Field(
        256,
        ge=32,
        le=1024,
        description="Longest reasoning with its answer, in tokens (ours: 256; published"
        " comparisons: 64 to 128 with demonstrations).",
    )


def reasoned_messages(question: Question, *, shown: bool) -> tuple[Message, ...]:
    """Return the prompt for reasoning and an answer, with demonstrations where they are `shown`."""
    shots = "reasoned" if shown else ""
    return COT_PROMPTS.turns(
        question.language, "system", "question", shots=shots, question=question.text
    )


class ChainOfThought(Method[ChainOfThoughtSettings]):
    """Reasoning, then the answer, in one reply."""

    name = "chain_of_thought"
    page = "baselines"
    judges = False
    grounded = True
    baseline = True
    settings_type = ChainOfThoughtSettings
    flow = (
        Stage("draft"),
        Stage("conclude", optional=True),
    )
    prompts = (COT_PROMPTS,)

    async def run(
        self, question: Question, scope: Scope, settings: ChainOfThoughtSettings
    ) -> Answer:
        shown = demonstrates(scope, settings.demonstrations)
        async with scope.span("draft") as step:
            messages = reasoned_messages(question, shown=shown)
            draft = await first_draft(step, messages, settings.max_tokens)
            step.revised(draft)
        short = read_answer(draft.text, cut_off=draft.is_cut)
        if not short and scope.given is None:
            async with scope.span("conclude") as step:
                short = await bare_answer(step, question, draft.text)
        return Answer(
            text=draft.text,
            original=draft.text,
            short=short or None,
            abstained=declines(short),
            flags=() if short else ("no_final_answer",),
        )
