"""Texts of models and visitors in a terminal, which obeys what it is shown."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with control characters spelled out: they could move the cursor or hide what follows.

    Tabs and line breaks stay.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)
