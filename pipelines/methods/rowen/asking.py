"""How Rowen has a question answered: reasoning first, then the answer alone, in any language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.findings import TargetLanguage
from pipelines.run.scope import Scope
from pipelines.types import FilledText, Language, Message

PROMPTS = load_prompts("rowen")

SHORT_TOKENS = 96
"""Longest short answer, translation or query, in tokens."""


async def answer_question(
    step: Scope,
    text: str,
    code: TargetLanguage,
    *,
    reasoned: bool,
    shown: bool = False,
    max_tokens: int,
    **options: Any,
) -> str:
    """Return the short answer to a question, after reasoning where `reasoned`; "" for none.

    With `shown`, an answer without reasoning is demonstrated: it is that alone, no sentence, and so
    can be compared. `options` are the role that answers, and those of its requests.
    """
    messages, reasoning = question_messages("reason", text, code), ""
    if reasoned:
        reasoning = await ask(step, messages, max_tokens=max_tokens, **options)
    asked = short_messages(messages, reasoning, code)
    if shown and not reasoning:
        shots = PROMPTS.shots(_words(code), "single")
        turns = ((one["question"], one["reply"]) for one in shots)
        asked = (
            asked[0],
            *(
                Message(role=role, content=content)
                for turn in turns
                for role, content in zip(("user", "assistant"), turn, strict=True)
            ),
            *asked[1:],
        )
    return await ask(step, asked, max_tokens=SHORT_TOKENS, **options)


def question_messages(key: str, text: str, code: TargetLanguage) -> tuple[Message, ...]:
    """Return messages that ask a question under the prompt "reason", to think it through, or
    "single".
    """
    words = _words(code)
    system = PROMPTS.fill(words, key)
    if words != code:
        name = PROMPTS.fill(words, f"language_{code}")
        system = FilledText.joined("\n", (system, PROMPTS.fill(words, "in_language", name=name)))
    return (Message(role="system", content=system), Message(role="user", content=text))


def short_messages(
    messages: Sequence[Message], reasoning: str, code: TargetLanguage
) -> tuple[Message, ...]:
    """Return the second turn, for the answer alone; without a reasoning it is the only one."""
    if not reasoning:
        return question_messages("single", messages[-1].text, code)
    said = Message(role="assistant", content=reasoning)
    return (*messages, said, *PROMPTS.turns(_words(code), "short"))


def _words(code: TargetLanguage) -> Language:
    """Return the language of the prompts that ask in `code`."""
    return "zh" if code == "zh" else "en"
