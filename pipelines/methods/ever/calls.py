"""How EVER asks its model: prompts, short replies, lists, and several calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from pipelines.methods.replies.parsing import is_refusal, parse_fields, visible
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.types import Language, Message, Passage

__all__ = ["PROMPTS", "ask_line", "ask_list", "distinct", "numbered", "together", "turns"]

T = TypeVar("T")

PROMPTS = load_prompts("ever")

# What models put in front of the one thing they were asked for.
_LABELS = {
    "line": (
        "Question",
        "Statement",
        "Sentence",
        "Corrected sentence",
        "New sentence",
        "Answer",
        "The answer",
        "The answer is",
        "问题",
        "陈述",
        "句子",
        "改正后的句子",
        "新的句子",
        "答案",
        "答案是",
    )
}


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of `work` done at once, in its order.

    Where one fails the others are stopped and awaited, and its error is raised as it is.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def turns(language: Language, system: str, user: str, **values: str) -> tuple[Message, ...]:
    """Instructions and request: the prompts of these two keys with their placeholders filled."""
    return (
        Message(role="system", content=PROMPTS.fill(language, system)),
        Message(role="user", content=PROMPTS.fill(language, user, **values)),
    )


def numbered(language: Language, passages: Sequence[Passage]) -> str:
    """Passages as prompts show them, in the order given."""
    return "\n".join(
        PROMPTS.fill(language, "passage", rank=str(rank), title=passage.title, text=passage.text)
        for rank, passage in enumerate(passages, start=1)
    )


def distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Each passage once, by id and by its words, where it stood first."""
    found: dict[str, Passage] = {}
    seen: set[str] = set()
    for passage in passages:
        words = " ".join(passage.text.casefold().split())
        if passage.id not in found and words not in seen:
            found[passage.id] = passage
            seen.add(words)
    return tuple(found.values())


async def ask_line(step: Scope, messages: Sequence[Message], *, max_tokens: int = 128) -> str:
    """A reply of one line, without label or decoration; empty when the model declines.

    A line that ends in a colon only announces the next one ("The sentence is:").
    """
    (reply,) = await step.model().generate(step.request(messages, max_tokens=max_tokens))
    text = visible(reply.text)
    if is_refusal(text):
        return ""
    text = parse_fields(text, _LABELS).get("line", text)
    found = (visible(line.strip()) for line in text.splitlines())
    return next((line for line in found if line and not line.endswith((":", "："))), "")


async def ask_list(step: Scope, messages: Sequence[Message], name: str) -> str:
    """A reply that lists something, as JSON under `name` where the backend can be held to it."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "array", "items": {"type": "string"}}},
        "required": [name],
        "additionalProperties": False,
    }
    constrained = step.model().capabilities.structured_output
    request = step.request(messages, json_schema=schema if constrained else None)
    (reply,) = await step.model().generate(request)
    return reply.text
