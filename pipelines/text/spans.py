"""A piece of text and where it stands."""

from __future__ import annotations

from pipelines.types import Frozen

__all__ = ["Span"]


class Span(Frozen):
    """A stretch of a text: `source[start:end] == text`.

    `start` and `end` are Python string indices (code points), half-open.
    """

    text: str
    start: int
    end: int

    @classmethod
    def of(cls, source: str, start: int, end: int) -> Span:
        """The span `[start, end)` of `source`."""
        return cls(text=source[start:end], start=start, end=end)
