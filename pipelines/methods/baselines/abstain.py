"""Answer or abstain: the model is told to say that it does not know, without or with passages.

Source: the abstaining baselines of the EVER paper (Kang, Ni and Yao 2023, short answers). What
counts as abstaining is read from the reply: "I don't know", a refusal, or that the passages do not
answer the question.
"""

from __future__ import annotations

import re

from pydantic import Field

from pipelines.base import Answer, Generation, Message, Passage
from pipelines.methods import nearest
from pipelines.methods.base import (
    AnswerTokens,
    Method,
    Need,
    Question,
    Settings,
    Stage,
    Wording,
    load_wording,
)
from pipelines.methods.replies.lists import echoes
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import first_draft, found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES
from pipelines.run.scope import Scope
from pipelines.text import split_sentences

PROMPTS = load_prompts("abstain")

_INSUFFICIENT = re.compile(load_wording("haarag").pattern("insufficient").pattern, re.I)


class AbstainSettings(Settings):
    """Settings of answering or abstaining."""

    retrieval: bool = Field(
        False,
        description="Search with the question and answer from the passages (EVER's paper has both"
        " forms; ours: off).",
    )
    passages: int = Field(3, ge=1, le=20, description="Passages given to the model (as RAG: 3).")
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


def abstains(answer: str) -> bool:
    """Return whether an answer says that there is none, in each of its sentences."""
    spans = split_sentences(answer)
    return declines(answer) or (
        bool(spans) and all(_INSUFFICIENT.match(span.text) is not None for span in spans)
    )


class Abstain(Method[AbstainSettings]):
    """One answer, or none where the model says that it does not know."""

    name = "abstain"
    page = "baselines"
    judges = False
    grounded = True
    baseline = True
    roles = JUDGES
    settings_type = AbstainSettings
    flow = (
        Stage("retrieve", optional=True),
        Stage("draft", ("nearest",)),
    )
    prompts = (PROMPTS, nearest.PROMPTS)

    def needs(self, settings: AbstainSettings) -> tuple[Need, ...]:
        searching = (Need(reason="evidence"),) if settings.retrieval else ()
        return (Need(reason="model"), *searching)

    async def run(self, question: Question, scope: Scope, settings: AbstainSettings) -> Answer:
        passages: list[Passage] = []
        flags: list[str] = []
        if settings.retrieval:
            async with scope.span("retrieve") as step:
                found = await found_for(step, question.text, settings.passages)
            passages = found or []
            if not passages:
                flags.append("search_failed" if found is None else "no_evidence")
        async with scope.span("draft") as step:
            if passages and step.given is None and nearest.takes_sentence(scope, settings.wording):
                # Where no sentence answers, a weak model does not say so: this does.
                correction = await nearest.correct(step, question, passages)
                text = correction.text or PROMPTS.fill(question.language, "unknown")
                draft = Generation(text=text)
                flags.append(correction.flag)
            else:
                asked = _messages(question, passages)
                draft = await first_draft(step, asked, settings.max_tokens)
            step.revised(draft)
        if echoes(draft.text, question):
            flags.append("question_repeated")
        return Answer(
            text=draft.text,
            original=draft.text,
            abstained=abstains(draft.text),
            flags=tuple(flags),
        )


def _messages(question: Question, passages: list[Passage]) -> tuple[Message, ...]:
    form = "grounded_" if passages else ""
    language = question.language
    return PROMPTS.turns(
        language,
        f"{form}system",
        f"{form}question",
        question=question.text,
        passages=PROMPTS.listed(language, passages),
        unknown=PROMPTS.fill(language, "unknown"),
    )
