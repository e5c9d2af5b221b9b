"""What Rowen asks a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import visible
from pipelines.prompts import load_prompts
from pipelines.run.findings import Side, TargetLanguage
from pipelines.run.scope import Scope
from pipelines.types import Language, Message, Passage

__all__ = [
    "PROMPTS",
    "SHORT_TOKENS",
    "answer_question",
    "paraphrase_messages",
    "paraphrase_schema",
    "query_messages",
    "reason_messages",
    "repair_messages",
    "same_messages",
    "short_messages",
    "translate_messages",
]

PROMPTS = load_prompts("rowen")

SHORT_TOKENS = 96
"""Longest short answer, translation or query, in tokens."""


async def answer_question(
    step: Scope,
    text: str,
    code: TargetLanguage,
    *,
    reasoned: bool,
    max_tokens: int,
    role: str = "main",
    temperature: float = 0.0,
    sample: int | None = None,
) -> str:
    """The short answer of the model of `role`, after reasoning where `reasoned`; "" for none."""

    async def say(messages: Sequence[Message], most: int) -> str:
        request = step.request(messages, max_tokens=most, temperature=temperature, sample=sample)
        return visible((await step.model(role).generate(request))[0].text)

    if reasoned:
        messages = reason_messages(text, code)
        reasoning = await say(messages, max_tokens)
        if reasoning:
            return await say(short_messages(messages, reasoning, code), SHORT_TOKENS)
    return await say(_asked("single", text, code), SHORT_TOKENS)


def reason_messages(text: str, code: TargetLanguage) -> tuple[Message, ...]:
    """Asks to examine the question and think it through."""
    return _asked("reason", text, code)


def short_messages(
    messages: Sequence[Message], reasoning: str, code: TargetLanguage
) -> tuple[Message, ...]:
    """The second turn, for the answer alone; without a reasoning it is the only one."""
    if not reasoning:
        return _asked("single", messages[-1].content, code)
    return (
        *messages,
        Message(role="assistant", content=reasoning),
        Message(role="user", content=PROMPTS.fill(_words(code), "short")),
    )


def paraphrase_messages(
    question: Question, count: int, had: Sequence[str] = ()
) -> tuple[Message, ...]:
    """Asks for `count` questions that mean the same, other than those there are already."""
    values = {"question": question.text, "count": str(count)}
    if not had:
        return _user(question.language, "paraphrase", **values)
    listed = "\n".join(f"- {one}" for one in had)
    return _user(question.language, "paraphrase_more", had=listed, **values)


def paraphrase_schema(count: int) -> dict[str, Any]:
    """The form of `count` paraphrases, for a backend that constrains its output."""
    strings = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"questions": strings},
        "required": ["questions"],
        "additionalProperties": False,
    }


def translate_messages(text: str, source: Language, code: TargetLanguage) -> tuple[Message, ...]:
    """Asks for the question in the target language."""
    name = PROMPTS.fill(source, f"language_{code}")
    return _user(source, "translate", question=text, name=name)


def same_messages(
    side: Side, language: Language, question: str, first: str, second: str
) -> tuple[Message, ...]:
    """The equivalence operator C: across languages, or for two models' question-answer pairs."""
    return _user(language, f"same_{side}", question=question, first=first, second=second)


def query_messages(text: str, language: Language) -> tuple[Message, ...]:
    """Asks for a search query."""
    return _user(language, "query", question=text)


def repair_messages(
    question: Question, reasoning: str, answer: str, passages: Sequence[Passage]
) -> tuple[Message, ...]:
    """The repair M(x0, t0, r0, E)."""
    language = question.language
    listed = "\n".join(
        PROMPTS.fill(language, "passage", rank=str(number), title=one.title, text=one.text)
        for number, one in enumerate(passages, start=1)
    )
    asked = PROMPTS.fill(
        language,
        "repair_question",
        passages=listed,
        question=question.text,
        reasoning=reasoning,
        answer=answer,
    )
    return (
        Message(role="system", content=PROMPTS.fill(language, "repair")),
        Message(role="user", content=asked),
    )


def _asked(key: str, text: str, code: TargetLanguage) -> tuple[Message, ...]:
    words = _words(code)
    system = PROMPTS.fill(words, key)
    if words != code:
        name = PROMPTS.fill(words, f"language_{code}")
        system = f"{system}\n{PROMPTS.fill(words, 'in_language', name=name)}"
    return (Message(role="system", content=system), Message(role="user", content=text))


def _words(code: TargetLanguage) -> Language:
    """The language of the prompts that ask in `code`."""
    return "zh" if code == "zh" else "en"


def _user(language: Language, key: str, **values: str) -> tuple[Message, ...]:
    return (Message(role="user", content=PROMPTS.fill(language, key, **values)),)
