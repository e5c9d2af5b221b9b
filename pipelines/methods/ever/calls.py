"""How EVER asks its model: prompts, replies of one line, lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.methods.replies.parsing import declines, parse_fields, visible
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.text import text_key
from pipelines.types import Language, Message, Passage

__all__ = ["PROMPTS", "ask_line", "ask_list", "demonstrations", "distinct", "numbered", "turns"]

PROMPTS = load_prompts("ever")

# What models put in front of the one thing they were asked for.
_LABELS = {
    "line": (
        "Question",
        "The question is",
        "Statement",
        "Sentence",
        "Corrected sentence",
        "New sentence",
        "The corrected sentence is",
        "The new sentence is",
        "Answer",
        "The answer",
        "The answer is",
        "问题",
        "问题是",
        "陈述",
        "句子",
        "改正后的句子",
        "新的句子",
        "答案",
        "答案是",
    )
}


def turns(language: Language, system: str, user: str, **values: str) -> tuple[Message, ...]:
    """Instructions and request: the prompts of these two keys with their placeholders filled."""
    return (
        Message(role="system", content=PROMPTS.fill(language, system)),
        Message(role="user", content=PROMPTS.fill(language, user, **values)),
    )


def demonstrations(language: Language, key: str, *names: str) -> tuple[Message, ...]:
    """Requests of the kind `key` with their replies, as turns of a chat.

    The prompt `<key>_shown` has one a line: what fills `names`, then the reply, between bars.
    """
    shown: list[Message] = []
    for line in PROMPTS.fill(language, f"{key}_shown").splitlines():
        *values, reply = (part.strip() for part in line.split(" | "))
        asked = PROMPTS.fill(language, f"{key}_sentence", **dict(zip(names, values, strict=True)))
        shown += [Message(role="user", content=asked), Message(role="assistant", content=reply)]
    return tuple(shown)


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
        key = text_key(passage.text)
        if passage.id not in found and key not in seen:
            found[passage.id] = passage
            seen.add(key)
    return tuple(found.values())


async def ask_line(step: Scope, messages: Sequence[Message], *, max_tokens: int = 128) -> str:
    """A reply of one line, without label or decoration; "" when the model declines.

    A line that ends in a colon only announces the next one ("The sentence is:").
    """
    (reply,) = await step.model().generate(step.request(messages, max_tokens=max_tokens))
    text = visible(reply.text)
    if declines(text):
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
