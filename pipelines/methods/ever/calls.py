"""How EVER asks its model for replies of one line."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.base import Message
from pipelines.methods.base import load_wording
from pipelines.methods.replies.parsing import declines, parse_fields, visible
from pipelines.methods.writing import ask_lines
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope

PROMPTS = load_prompts("ever")

_LABELS = {"line": load_wording("ever").entries["labels"]}


async def ask_line(
    step: Scope, messages: Sequence[Message], *, max_tokens: int = 128, adapted: bool = False
) -> str:
    """Return a reply of one line, without label or decoration; "" when the model declines.

    A line that ends in a colon only announces the next one ("The sentence is:"). One that was cut
    at the token limit is none.
    """
    lines = await ask_lines(step, messages, max_tokens=max_tokens, adapted=adapted)
    text = "\n".join(lines)
    if declines(text):
        return ""
    text = parse_fields(text, _LABELS).get("line", text)
    found = (visible(line.strip()) for line in text.splitlines())
    return next((line for line in found if line and not line.endswith((":", "："))), "")
