"""What the baselines that correct an answer have in common: what may take an answer's place.

A reply that is empty, cut, filtered, refused, only the question again or in the wrong language is
no correction: then the text stays as it was, with a flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import echoes
from pipelines.methods.replies.verdicts import YES_NO, decide_between
from pipelines.methods.writing import units_of, write_draft
from pipelines.models.base import Claim
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese, text_key
from pipelines.types import Generation, Message

MOST_QUERY_WORDS = 64
"""Words of a query, of which the last are taken (published comparisons: 64 tokens). A Chinese
character counts as a word."""

Rewriting = Annotated[
    Literal["auto", "always"],
    Field(
        description="Whether what the model rewrote takes the answer's place: always (paper), or"
        " automatically (ours): not where the model is weak, since nothing else checks it."
    ),
]
"""A choice of the methods whose corrections rest on the model alone."""


def takes_rewriting(scope: Scope, rewriting: Rewriting) -> bool:
    """Return whether what the main model rewrites without evidence may take an answer's place."""
    return rewriting == "always" or not scope.model().capabilities.weak


def usable(written: Generation, question: Question, *before: str) -> bool:
    """Return whether a reply can take the place of an answer; `before` are texts it was
    written from.
    """
    text = written.text.strip()
    return bool(
        text
        and written.finish_reason not in ("length", "filter")
        and not declines(text)
        and not echoes(text, question)
        and not changes_to_chinese(text, question.text, *before)
    )


async def written_anew(
    step: Scope,
    messages: Sequence[Message],
    question: Question,
    *before: str,
    max_tokens: int,
) -> Generation | None:
    """Return the main model's new text; None where it cannot take the place of an answer,
    or fails.
    """
    try:
        written = await write_draft(step, messages, max_tokens)
    except VeriscopeError:
        # Recorded with the call. What there was is still there.
        return None
    return written if usable(written, question, *before) else None


def same_words(first: str, second: str) -> bool:
    """Return whether two texts differ in nothing but marks, spaces and case."""
    return text_key(first) == text_key(second)


def query_of(text: str, question: Question) -> str:
    """Return a text as a query, its last words if it is long; the question where there are
    no words.
    """
    words = units_of(Generation(text=text))[-MOST_QUERY_WORDS:]
    query = " ".join(text[words[0].start :].split()) if words else ""
    return query if any(character.isalnum() for character in query) else question.text


async def p_yes(
    step: Scope,
    messages: Sequence[Message],
    question: Question,
    prompts: Prompts,
    *,
    role: str = "main",
    claim: Claim | None = None,
) -> float | None:
    """Return P(yes) / (P(yes) + P(no)) in [0, 1]; None where the model says neither or the
    call fails.
    """
    language = question.language
    try:
        choice = await decide_between(
            step,
            messages,
            YES_NO[language],
            reminder=prompts.fill(language, "reminder"),
            role=role,
            claim=claim,
        )
    except VeriscopeError:
        # Recorded with the call.
        return None
    if choice.best is None:
        return None
    yes, no = choice.probabilities.get("yes", 0.0), choice.probabilities.get("no", 0.0)
    return yes / (yes + no) if yes + no > 0 else None
