"""Ends DRAD's writing as soon as its first doubtful entity is complete."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.methods.writing import part_of
from pipelines.models.base import Delta
from pipelines.text import has_han
from pipelines.types import Generation, Token


class EarlyStop:
    """A watcher that ends a text as soon as `to_go` says so, between two words.

    `to_go` is given the reply so far, `first` tokens long at least, and says how many more tokens
    it needs; 0 ends the text.
    Where the text ends depends on its tokens alone, not on the pieces in which they arrive or on
    whether the backend stops at once: so it ends there again when the run is replayed.
    """

    def __init__(self, to_go: Callable[[Generation], int], first: int) -> None:
        self._to_go = to_go
        self._first = first
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._seen: list[Token] = []
        self._look_at = self._first
        self._end: int | None = None

    def __call__(self, delta: Delta) -> bool:
        """Take in what was written; return whether the text may end."""
        if delta.restart:
            self._begin()
        self._text += delta.text
        for token in delta.tokens:
            self._follow(token)
        return self._end is not None

    def cut(self, reply: Generation) -> Generation:
        """Return `reply` as far as it was to be written."""
        self._text = reply.text
        for token in (reply.tokens or ())[len(self._seen) :]:
            self._follow(token)
        if self._end is None:
            return reply
        kept = part_of(reply, 0, self._end)
        return kept.model_copy(update={"finish_reason": "watcher"})

    def _follow(self, token: Token) -> None:
        if self._end is not None:
            return
        if len(self._seen) >= self._look_at and self._begins_a_word(token):
            so_far = Generation(text=self._text[: token.start], tokens=tuple(self._seen))
            wait = self._to_go(so_far)
            if wait == 0:
                self._end = token.start
                return
            self._look_at = len(self._seen) + wait
        self._seen.append(token)

    def _begins_a_word(self, token: Token) -> bool:
        if token.start < self._seen[-1].end:
            # Both hold bytes of one character.
            return False
        around = self._text[token.start - 1 : token.start] + token.text[:1]
        return any(char.isspace() or has_han(char) for char in around)
