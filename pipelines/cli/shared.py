"""What many commands share: whose things they work on, lists of names, and what is said aside."""

from __future__ import annotations

import sys

from pipelines.printable import printable

OWNER = "command-line"
"""Who owns what is stored by a command."""


def listed_names(listed: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def say(text: str) -> None:
    """Tell the person, beside the output that a program may read."""
    print(printable(text), file=sys.stderr)
