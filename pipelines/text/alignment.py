"""From characters of a text to the tokens a model wrote it with.

Byte-level BPE cuts text between bytes, not characters: one Chinese character may be spread over
several tokens, and one token may hold several characters or the end of one and the start of the
next. Everything here therefore starts from the raw bytes of each token.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from pipelines.base import Frozen, Offset, Token


class Span(Frozen):
    """A stretch of a text, `source[start:end] == text`: code points, half-open."""

    text: str
    start: Offset
    end: Offset

    @classmethod
    def of(cls, source: str, start: int, end: int) -> Span:
        """Return the span `[start, end)` of `source`."""
        return cls(text=source[start:end], start=start, end=end)


def _character_starts(data: bytes) -> list[int]:
    """Return the byte offset where each character of `data.decode("utf-8", "replace")` begins."""
    starts: list[int] = []
    view = memoryview(data)
    position = 0
    while position < len(data):
        try:
            valid = str(view[position:], "utf-8")
            broken = None
        except UnicodeDecodeError as error:
            # error.end closes the same run of bytes that "replace" turns into one U+FFFD.
            valid = str(view[position : position + error.start], "utf-8")
            broken = (position + error.start, position + error.end)
        for character in valid:
            starts.append(position)
            position += len(character.encode("utf-8"))
        if broken is not None:
            starts.append(broken[0])
            position = broken[1]
    return starts


def token_spans(pieces: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return characters `[start, end)` each token contributes to, one pair per piece.

    Offsets count characters of `b"".join(pieces).decode("utf-8", errors="replace")`. A token
    that holds any byte of a character covers that whole character, so neighbours overlap where a
    character is split between them. Bytes that are no UTF-8 count as the U+FFFD they decode to.
    An empty piece has `start == end`.
    """
    starts = _character_starts(b"".join(pieces))
    edges = [0, *accumulate(len(piece) for piece in pieces)]
    spans: list[tuple[int, int]] = []
    for first, last in pairwise(edges):
        end = bisect_left(starts, last)
        spans.append((end, end) if first == last else (bisect_right(starts, first) - 1, end))
    return spans


def tokens_covering(spans: Sequence[tuple[int, int]], start: int, end: int) -> range:
    """Return indices of the tokens that share at least one character with `[start, end)`.

    `spans` comes from :func:`token_spans`. Tokens without characters never begin or end the
    range; one between two others is inside it. Empty when nothing overlaps.
    """
    hits = [i for i, (first, last) in enumerate(spans) if max(first, start) < min(last, end)]
    return range(hits[0], hits[-1] + 1) if hits else range(0)


def by_characters(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with those that share a character taken as one, in order.

    Bytes of one character are one outcome of the model: its probability is the product of theirs,
    None where one is not known, and its entropy that of the first, at which the character was
    still open.
    """
    found: list[Token] = []
    for token in tokens:
        before = found[-1] if found else None
        if before is None or token.start >= before.end or token.start == token.end:
            found.append(token)
            continue
        known = before.logprob is not None and token.logprob is not None
        joint = (before.logprob or 0.0) + (token.logprob or 0.0) if known else None
        changed = {"end": max(before.end, token.end), "logprob": joint}
        found[-1] = before.model_copy(update=changed)
    return found
