"""Texts of models and visitors in a terminal, which obeys what it is shown."""

import logging
import re

_TURNING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNING}]")
_IN_JSON = re.compile(rf"[\x7f-\x9f{_TURNING}]")


def printable(text: str) -> str:
    """Return `text` with control characters spelled out: they could move the cursor or hide what
    follows.

    Tabs and line breaks stay.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def printable_json(text: str) -> str:
    """Return JSON `text` with the control characters that JSON allows in strings escaped: the
    same JSON.

    Some of them are line ends for some programs.
    """
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _PrintableFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def guard_log() -> None:
    """Make what is logged printable, in a process that leaves logging as Python has it.

    An error may quote what a server or a model said.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PrintableFormatter())
