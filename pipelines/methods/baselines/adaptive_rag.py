"""Adaptive-RAG: a class of the question's complexity decides how much is searched.

Source: Jeong et al., NAACL 2024. The paper trains a classifier; here a prompt asks the main model
(ours). A simple question is answered from memory, as Direct does; one of a single step with one
search, as RAG does; one of several steps with a search for every sentence, as IRCoT does.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.base import Answer
from pipelines.errors import VeriscopeError
from pipelines.methods.base import (
    AnswerTokens,
    Demonstrations,
    Method,
    Need,
    Question,
    Settings,
    Stage,
    Wording,
)
from pipelines.methods.baselines.ircot import Ircot
from pipelines.methods.direct import Direct, DirectSettings
from pipelines.methods.rag import Rag, RagSettings
from pipelines.methods.replies.verdicts import decide_between
from pipelines.models.base import Option
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope

PROMPTS = load_prompts("adaptive_rag")

Complexity = Literal["none", "once", "many"]

_OPTIONS = (
    Option(label="none", spellings=("A", "a")),
    Option(label="once", spellings=("B", "b")),
    Option(label="many", spellings=("C", "c")),
)


class AdaptiveRagSettings(Settings):
    """Settings of Adaptive-RAG."""

    retrievals: Literal["auto", "none", "once", "many"] = Field(
        "auto",
        description="How much is searched: decided for each question (paper, by a classifier; ours,"
        " by a prompt), or the same for all.",
    )
    passages: int = Field(3, ge=1, le=20, description="Passages per search (as RAG and IRCoT: 3).")
    max_sentences: int = Field(
        8, ge=1, le=20, description="Maximum sentences with a search for each (as IRCoT: 8)."
    )
    max_tokens: AnswerTokens = 128
    demonstrations: Demonstrations = "auto"
    wording: Wording = "auto"


class AdaptiveRag(Method[AdaptiveRagSettings]):
    """No search, one search, or one for every sentence, as the question needs."""

    name = "adaptive_rag"
    page = "baselines"
    judges = False
    baseline = True
    effort = 4
    roles = Ircot.roles
    settings_type = AdaptiveRagSettings
    flow = (
        Stage("classify", optional=True),
        Stage("retrieve", optional=True, repeats=True),
        Stage("draft", ("nearest",)),
        Stage("next_sentence", optional=True, repeats=True),
        Stage("conclude", optional=True),
    )
    prompts = tuple(dict.fromkeys((PROMPTS, *Direct.prompts, *Rag.prompts, *Ircot.prompts)))

    def needs(self, settings: AdaptiveRagSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: AdaptiveRagSettings) -> Answer:
        flags: tuple[str, ...] = ()
        complexity = settings.retrievals
        if complexity == "auto":
            complexity, flags = await _complexity(question, scope)
        answer = await _answered(complexity, question, scope, settings)
        return answer.model_copy(update={"flags": (*flags, *answer.flags)})


async def _answered(
    complexity: Complexity, question: Question, scope: Scope, settings: AdaptiveRagSettings
) -> Answer:
    if complexity == "none":
        return await Direct().run(question, scope, DirectSettings(max_tokens=settings.max_tokens))
    if complexity == "once":
        single = RagSettings(
            passages=settings.passages, max_tokens=settings.max_tokens, wording=settings.wording
        )
        return await Rag().run(question, scope, single)
    ircot = Ircot()
    several = ircot.settings(
        {
            "passages": settings.passages,
            "max_sentences": settings.max_sentences,
            # Reasoning is longer than an answer.
            "max_tokens": min(1024, max(32, 2 * settings.max_tokens)),
            "demonstrations": settings.demonstrations,
            "wording": settings.wording,
        }
    )
    return await ircot.run(question, scope, several)


async def _complexity(question: Question, scope: Scope) -> tuple[Complexity, tuple[str, ...]]:
    """Return the class of a question, with a flag where it rests on nothing.

    What cannot be told is searched for once: it is neither the cheapest nor the dearest mistake.
    """
    if not scope.model().capabilities.judges:
        # What such a model says of a question was measured to be no better than chance.
        return "once", ("complexity_unknown",)
    async with scope.span("classify") as step:
        try:
            choice = await decide_between(
                step,
                PROMPTS.turns(question.language, "classify", question=question.text),
                _OPTIONS,
                reminder=PROMPTS.fill(question.language, "reminder"),
            )
        except VeriscopeError:
            # Recorded with the call.
            return "once", ("complexity_unknown",)
    found: dict[str, Complexity] = {"none": "none", "once": "once", "many": "many"}
    if choice.best is None:
        return "once", ("complexity_unknown",)
    return found[choice.best], (f"complexity_{choice.best}",)
