"""Ending a text in which a small model only repeats itself.

Greedy writing of a model of this size can fall into a loop ("a poet, a poet, a poet"): everything
up to the token limit is then the same piece, and costs as much time as an answer.
"""

from __future__ import annotations

import re

from pipelines.models.base import Delta, GenerationRequest, Watcher
from pipelines.text.languages import HAN

_TIMES = 4
"""How often a piece stands one after another before nothing else is expected (ours)."""

_LEAST_WIDTH = 40
"""Width of all of them together: that of Latin letters, of which a Chinese character has two."""

_LONGEST_PIECE = 120
_SHORTEST_TEXT = 64
"""Tokens: what a shorter request could lose in a loop is not worth following its pieces."""

_HAN = re.compile(f"[{HAN}]")


def ends_in_loop(text: str) -> bool:
    """Return whether the end of `text` is one piece with a word in it, four times or more."""
    end = text[-_LONGEST_PIECE * _TIMES :]
    # From the shortest piece on: that of "a, a, a, a, " is "a, ", and not all of it twice.
    for start in range(len(end) - 1, -1, -1):
        size = len(end) - start
        if size * _TIMES > len(end):
            return False
        piece = end[start:]
        if not any(map(str.isalpha, piece)):
            continue
        times, place = 1, start
        while place >= size and end[place - size : place] == piece:
            times, place = times + 1, place - size
        if times >= _TIMES and times * (size + len(_HAN.findall(piece))) >= _LEAST_WIDTH:
            return True
    return False


class LoopWatch:
    """A `Watcher` that ends a text in a loop, and hands its pieces on to another one."""

    def __init__(self, watch: Watcher | None = None) -> None:
        self.ended = False
        self._watch = watch
        self._text = ""

    def __call__(self, delta: Delta) -> bool | None:
        """Take the next piece; True where the text is to end here."""
        self._text = delta.text if delta.restart else self._text + delta.text
        wanted = self._watch(delta) if self._watch is not None else None
        # Who watches decides first: what it ended it must be able to read as ended.
        self.ended = not wanted and ends_in_loop(self._text)
        return wanted or self.ended


def may_loop(request: GenerationRequest) -> bool:
    """Return whether a loop in the reply is worth looking for: one text, and a long one."""
    return request.n == 1 and request.max_tokens >= _SHORTEST_TEXT
