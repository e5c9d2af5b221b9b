"""What models that think aloud put before their reply."""

from __future__ import annotations

import re

__all__ = ["is_thinking", "without_thinking"]

_NAMES = r"(?:think|thinking|thought)"
_BLOCK = re.compile(r"<(think|thinking|thought)>.*?(?:</\1>|\Z)", re.S | re.I)
_NEVER_OPENED = re.compile(rf"\A.*</{_NAMES}>", re.S | re.I)
_OPENING = re.compile(rf"<{_NAMES}>", re.I)


def without_thinking(text: str) -> str:
    """`text` without its thinking blocks, whatever they are called.

    A block that was never closed reaches to the end, one that was never opened to the beginning.
    """
    return _NEVER_OPENED.sub("", _BLOCK.sub("", text))


def is_thinking(text: str) -> bool:
    """Whether `text` holds the beginning of a thinking block."""
    return _OPENING.search(text) is not None
