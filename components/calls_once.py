"""Calls in a saved file: each call and each long text is written once.

A prompt begins like the one before it, and a method's page shows calls that the list of all calls
shows again. Written out each time, a long run would take tens of megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from components.markup import Child, Html, tag
from components.messages import Catalogue, integer
from components.prompts import marked_text

_SHARED = 400
"""Characters from which on a text, or the beginning of one, is referred to."""

_HEAD = 100
"""Texts that begin with the same characters may share more than these."""

_COMPARED = 8
"""Texts with such a beginning that a new one is compared with: the newest."""


@dataclass
class CallsOnce:
    """What one drawing of a file has written of the calls so far.

    `anchors` maps the number of a call's event to the id of its entry in the list of all calls.
    `most` is how many characters of a text are written at most, None for all; then `cut` counts
    the texts of which less was written, and `left_out` the characters.
    """

    anchors: Mapping[int, str] = field(default_factory=dict)
    most: int | None = None
    cut: int = 0
    left_out: int = 0
    _known: dict[str, str] = field(default_factory=dict)
    _begin: dict[str, list[str]] = field(default_factory=dict)

    def text(self, text: str, t: Catalogue) -> Html:
        """Return a text of a call, or a reference to the place where it was written before."""
        if len(text) < _SHARED:
            return self._written(text, 0, t)
        if anchor := self._known.get(text):
            return self._reference("report.same_text", len(text), anchor, t)
        known, length = self._like(text)
        anchor = f"text-{len(self._known) + 1}"
        self._known[text] = anchor
        self._begin.setdefault(text[:_HEAD], []).append(text)
        if not length:
            return self._written(text, 0, t, anchor)
        begins = self._reference("report.same_beginning", length, self._known[known], t)
        return tag("div", begins, self._written(text, length, t), id=anchor)

    def _like(self, text: str) -> tuple[str, int]:
        """Return the text that shares the longest beginning with this one, and how long that is."""
        found, length = "", 0
        for other in self._begin.get(text[:_HEAD], [])[-_COMPARED:]:
            shared = _shared(text, other)
            if shared > length:
                found, length = other, shared
        # No word and no line is divided where it can be helped.
        length = max(text.rfind(mark, 0, length) + 1 for mark in ("\n", " ")) or length
        return (found, length) if length >= _SHARED else ("", 0)

    def _written(self, text: str, start: int, t: Catalogue, anchor: str | None = None) -> Html:
        """Return the text from `start` on."""
        length = len(text) - start
        over = 0 if self.most is None else length - self.most
        if over <= 0:
            return tag("pre.vs-turn-text", marked_text(text, start), dir="auto", id=anchor)
        self.cut += 1
        self.left_out += over
        kept = tag("pre.vs-turn-text", marked_text(text, start, len(text) - over), dir="auto")
        note = t("report.cut", count=integer(over), total=integer(length))
        return tag("div", kept, tag("p.vs-note", note), id=anchor)

    def _reference(self, words: str, length: int, anchor: str, t: Catalogue) -> Html:
        parts: list[Child] = [tag("a", t(words, count=integer(length)), href=f"#{anchor}")]
        return tag("p.vs-note", parts)


_current: ContextVar[CallsOnce | None] = ContextVar("calls_once", default=None)


def calls_once() -> CallsOnce | None:
    """Return how calls are written in the file that is being drawn; None while a page is drawn."""
    return _current.get()


@contextmanager
def writing_once(once: CallsOnce) -> Iterator[None]:
    """Write calls by `once` in the block, so that views need not know whether a file is drawn."""
    token = _current.set(once)
    try:
        yield
    finally:
        _current.reset(token)


def _shared(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
