"""Texts of models and visitors in a terminal, which obeys what it is shown."""

import logging
import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with control characters spelled out: they could move the cursor or hide what follows.

    Tabs and line breaks stay.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def printable_json(text: str) -> str:
    """As `printable`, for JSON: what is read from it is the same as before.

    JSON spells out the ASCII control characters by itself, but no others.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def guard_log() -> None:
    """Make what is logged printable, in a process that leaves logging as Python has it.

    An error may quote what a server or a model said.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PrintableFormatter())
