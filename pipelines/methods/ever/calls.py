"""How EVER asks its model: demonstrations, and replies of one line."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.replies.parsing import declines, parse_fields, visible
from pipelines.methods.wording import load_wording
from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.types import Language, Message

PROMPTS = load_prompts("ever")

_LABELS = {"line": load_wording("ever").entries["labels"]}


def demonstrations(language: Language, key: str, *names: str) -> tuple[Message, ...]:
    """Requests of the kind `key` with their replies, as turns of a chat.

    The prompt `<key>_shown` has one a line: what fills `names`, then the reply, between bars.
    """
    shown: list[Message] = []
    for line in PROMPTS.fill(language, f"{key}_shown").splitlines():
        *values, reply = (part.strip() for part in line.split(" | "))
        asked = dict(zip(names, values, strict=True))
        shown += PROMPTS.turns(language, f"{key}_sentence", **asked)
        shown.append(Message(role="assistant", content=reply))
    return tuple(shown)


async def ask_line(step: Scope, messages: Sequence[Message], *, max_tokens: int = 128) -> str:
    """A reply of one line, without label or decoration; "" when the model declines.

    A line that ends in a colon only announces the next one ("The sentence is:").
    """
    text = await ask(step, messages, max_tokens=max_tokens)
    if declines(text):
        return ""
    text = parse_fields(text, _LABELS).get("line", text)
    found = (visible(line.strip()) for line in text.splitlines())
    return next((line for line in found if line and not line.endswith((":", "："))), "")
