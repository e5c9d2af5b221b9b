"""Texts that come in pieces: each adds to the text, or each is all of the text so far.

The protocol says that a piece adds. Some servers and gateways send the whole text again in every
piece, and nothing in such a stream says so but the pieces themselves: each begins with the one
before it. A model that repeats itself is never taken for one: its pieces only repeat the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_GROWTHS = 2
"""So many pieces that begin with the one before and say more show that pieces are whole."""

_LEAST = 10
"""Visible characters of the text so far that it takes to tell."""

_MOST_EQUAL = 3
"""Equal pieces that are waited for at the beginning; a model that says one word again is shown."""

_LONG = 20
"""Characters from which on a last piece that equals all before it says nothing new."""

_CUT = "\ufffd"

Entries = Sequence[Mapping[str, Any]]


class GrowingText:
    """A text by its pieces: `add` and `close` return what is new in them, with its token entries.

    A piece that may be either is held back until the next one tells.
    """

    def __init__(self) -> None:
        self._said = self._first = self._last = ""
        self._half = ""
        """Half a character at the end of the first piece, which the next one may complete."""
        self._count = self._growths = 0
        self._held: list[tuple[str, Entries]] = []
        self._entries: list[Mapping[str, Any]] = []
        self._whole: bool | None = None
        """Whether pieces are whole; None while nothing tells."""

    def add(self, piece: str, entries: Entries = (), *, last: bool = False) -> tuple[str, Entries]:
        """Return what a piece adds, "" where that cannot be told yet; `last` says that it ends the
        text. Raises ValueError where whole pieces take back what they said.
        """
        if piece:
            self._count += 1
        elif not entries:
            return self.close() if last else ("", ())
        found = self._taken(piece, entries, last)
        if not last:
            return found
        rest = self.close()
        return found[0] + rest[0], [*found[1], *rest[1]]

    def close(self) -> tuple[str, Entries]:
        """Return what was held back: the text has ended."""
        if not self._held and not self._half:
            return "", ()
        # Deeper and deeper indents are no whole text.
        least = 1 if self._first.strip() else _LEAST
        return self._released(whole=self._growths > 0 and self._tells(least))

    def rest(self, text: str) -> str:
        """Return what has not come yet of `text`, all of it; `text` itself where it is not."""
        if not self._first or not text.startswith(self._said):
            return text
        self._held, self._half, self._whole = [], "", False
        return text[len(self._said) :]

    def _taken(self, piece: str, entries: Entries, last: bool) -> tuple[str, Entries]:
        if self._whole:
            return self._grown(piece, entries)
        if self._whole is None and piece and self._first:
            before = self._last.rstrip(_CUT)
            if before and piece.startswith(before):
                self._held.append((piece, entries))
                self._growths += len(piece.rstrip(_CUT)) > len(before)
                self._last = piece
                if self._growths >= _GROWTHS and self._tells():
                    return self._released(whole=True)
                if self._growths or len(self._held) <= _MOST_EQUAL:
                    return "", ()
                return self._released(whole=False)
            text, known = self._released(whole=False)
            return self._added(piece, entries, before=(text, known))
        if last and self._count > _GROWTHS and piece == self._said and len(piece) >= _LONG:
            # All of it once more at the end.
            return "", ()
        if not self._first:
            self._first = self._last = piece
            self._entries = list(entries)
            bare = piece.rstrip(_CUT)
            self._half = piece[len(bare) :]
            self._said = bare
            return bare, entries
        return self._added(piece, entries)

    def _tells(self, least: int = _LEAST) -> bool:
        """Return whether the last piece is more than the first one again and again, and long
        enough: at the end of a text, of which every piece was whole, a word is.
        """
        text = self._last
        again = self._first * (len(text) // len(self._first) + 1)
        visible = sum(not one.isspace() for one in text)
        return (
            visible >= least and any(map(str.isalpha, text)) and not again.startswith(text.strip())
        )

    def _released(self, *, whole: bool) -> tuple[str, Entries]:
        held, self._held = self._held, []
        half, self._half = self._half, ""
        self._whole = whole
        take = self._grown if whole else self._added
        found = [take(piece, entries) for piece, entries in held]
        found.insert(0, ("" if whole else half, ()))
        return "".join(text for text, _ in found), [one for _, known in found for one in known]

    def _added(
        self, piece: str, entries: Entries, before: tuple[str, Entries] = ("", ())
    ) -> tuple[str, Entries]:
        self._said += piece
        return before[0] + piece, [*before[1], *entries]

    def _grown(self, piece: str, entries: Entries) -> tuple[str, Entries]:
        """Return what is new in a whole piece; its end may be half a character."""
        piece = piece.rstrip(_CUT)
        if not piece.startswith(self._said):
            if self._said.startswith(piece):
                return "", ()
            raise ValueError("A text that comes whole each time takes back what it said.")
        new, self._said = piece[len(self._said) :], piece
        count = len(self._entries)
        fresh = entries[count:] if list(entries[:count]) == self._entries else entries
        self._entries += fresh
        return new, fresh
