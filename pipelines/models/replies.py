"""Replies of services that report token entries: the text, its tokens with offsets, their entropy.

The protocol of OpenAI, which DashScope shares here, sends a reply twice: as text (`content`) and as
token entries (`logprobs.content`), each with the raw bytes it stands for. The two may differ: the
entries can hold an end-of-turn marker, a stop string that was cut from the text, hidden reasoning,
or white space that the server trimmed, and the text can hold U+FFFD where a server cut it between
the bytes of a character. The text is trusted, except that bytes replace U+FFFD where they can;
entries outside it are dropped. A reply that comes whole is a stream of one part.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import exp, isnan, log, nan
from typing import Any, NamedTuple

from pipelines.base import (
    LOGPROB_ROUNDING,
    Alternative,
    FinishReason,
    Generation,
    Token,
    Usage,
)
from pipelines.models.base import Delta
from pipelines.text.alignment import token_spans

_REPLACEMENT = "\ufffd"
_FINISH: dict[str, FinishReason] = {"length": "length", "content_filter": "filter"}
_IMPOSSIBLE = -9999.0
"""The log-probability that services report of a token that cannot be; JSON has no infinity."""

_MOST_TOKENS = 10**9
# Neither halves of surrogate pairs nor null characters can be stored.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def truncated_entropy(logprobs: Sequence[float]) -> tuple[float, float]:
    """Return entropy (nats) and tail mass of a distribution of which only `logprobs` are known.

    H = -sum_i p_i ln p_i - t ln t, with t = 1 - sum_i p_i taken as a single outcome. Merging
    outcomes can only lower entropy, so this is a lower bound of the entropy over the whole
    vocabulary, and equal to it when the tail is empty or one token.
    """
    masses = [exp(value) for value in logprobs]
    tail = max(0.0, 1.0 - sum(masses))
    entropy = -sum(mass * value for mass, value in zip(masses, logprobs, strict=True) if mass > 0)
    if tail > 0:
        entropy -= tail * log(tail)
    return max(0.0, entropy), tail


class TokenEntry(NamedTuple):
    """A token entry: the bytes it stands for, and the token, which has no offsets yet.

    The token's alternatives are the candidates reported, most probable first, itself among them
    when it is probable enough; `top_k` counts the candidates the entropy was computed over, which
    always include the token.
    """

    data: bytes
    token: Token

    def placed(self, text: str, start: int, end: int, before: int = 0) -> Token:
        """Return the token at `[start, end)` of `text`, `before` characters into the reply."""
        span = {"text": text[start:end], "start": before + start, "end": before + end}
        return self.token.model_copy(update=span)


def read_entry(entry: Mapping[str, Any]) -> TokenEntry:
    """Return a `TokenEntry` from one element of `logprobs.content`.

    Where an entry has no `bytes`, its token string stands in. llama.cpp reports a character that
    took several tokens as one entry with all its bytes and the log-probability of the last token
    only, so the token is looked up among its alternatives by vocabulary id first. Raises KeyError,
    TypeError, AttributeError or ValueError when the entry is not what the protocol promises.
    """
    own = _logprob(entry)
    listed = sorted(entry.get("top_logprobs") or (), key=lambda other: -_logprob(other))
    alternatives = tuple(
        Alternative(text=_data(other).decode("utf-8", "replace"), logprob=_logprob(other))
        for other in listed
    )
    known = [other.logprob for other in alternatives]
    if not any(_same_token(entry, other) for other in listed):
        known.append(own)
    entropy, tail = truncated_entropy(known)
    token = Token(
        text="",
        start=0,
        end=0,
        logprob=own,
        entropy=entropy,
        top_k=len(known),
        tail_mass=tail,
        alternatives=alternatives,
    )
    return TokenEntry(_data(entry), token)


def _logprob(entry: Mapping[str, Any]) -> float:
    """Return the log-probability of an entry, at most 0; ValueError for what cannot be one."""
    try:
        value = float(entry["logprob"])
    except OverflowError:
        value = nan
    if isnan(value) or value > LOGPROB_ROUNDING:
        raise ValueError("A log-probability is a number of at most 0.")
    return max(_IMPOSSIBLE, min(value, 0.0))


def _data(entry: Mapping[str, Any]) -> bytes:
    raw = entry.get("bytes")
    # "replace": a string cut inside a character may hold half a surrogate pair.
    data = str.encode(entry["token"], "utf-8", "replace") if raw is None else bytes(raw)
    return data.replace(b"\0", _REPLACEMENT.encode())


def storable(text: str) -> str:
    """Return `text` with U+FFFD in the place of what cannot be stored: null and halves of
    surrogates.
    """
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def usage_of(read: object, written: object) -> Usage:
    """Return the tokens that a service says it has read and written; 0 for what cannot be
    a number.
    """
    return Usage(prompt_tokens=_count(read), completion_tokens=_count(written))


def _count(value: object) -> int:
    return int(value) if isinstance(value, int) and 0 <= value <= _MOST_TOKENS else 0


def _same_token(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    for key in ("id", "bytes"):
        if one.get(key) is not None and other.get(key) is not None:
            return one[key] == other[key]
    return one["token"] == other["token"]


def _decode_complete(pieces: Iterable[TokenEntry]) -> str:
    """Return what the pieces spell, without a character at the end whose bytes are not all
    there yet.
    """
    data = b"".join(piece.data for piece in pieces)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def align_entries(
    pieces: Sequence[TokenEntry], content: str
) -> tuple[str, tuple[Token, ...] | None]:
    """Return the reply's text and its tokens with offsets in it; None where they do not belong
    together.

    The text is `content`, or what the bytes decode to where `content` has U+FFFD in their place.
    """
    decoded = b"".join(piece.data for piece in pieces).decode("utf-8", "replace")
    spans = token_spans([piece.data for piece in pieces])
    text = _mended(content, decoded)
    offset = _find(text, decoded, {start for start, _ in spans})
    if offset is None:
        return text, None
    tokens: list[Token] = []
    for piece, (start, end) in zip(pieces, spans, strict=True):
        first, last = max(start - offset, 0), min(end - offset, len(text))
        if first < last:
            tokens.append(piece.placed(text, first, last))
    return text, tuple(tokens)


def _mended(content: str, decoded: str) -> str:
    if _REPLACEMENT not in content or _REPLACEMENT in decoded:
        return content
    known = [re.escape(part) for part in re.split(f"{_REPLACEMENT}+", content)]
    return decoded if re.fullmatch(".+?".join(known), decoded, re.DOTALL) else content


def _find(text: str, decoded: str, starts: set[int]) -> int | None:
    """Return where `text` lies in `decoded`: at its start, else at the last fitting token, else
    anywhere.

    The last, because what a server leaves out before the text is reasoning, which may quote it.
    """
    if decoded.startswith(text):
        return 0
    found = [match.start() for match in re.finditer(f"(?={re.escape(text)})", decoded)]
    at_token = [offset for offset in found if offset in starts]
    return at_token[-1] if at_token else (found[0] if found else None)


class ReplyBuilder:
    """Collects text and token entries, and says what can be shown so far.

    A token is shown together with its last character, and a character once all its bytes are
    there, so the parts shown always add up to the beginning of the final text. `prefix` is the
    assistant message being continued: a server that repeats it before the new text has it cut off.
    What comes after `most` characters is not taken any more, and the reply ends by its length.
    Where token entries are missing, or cannot be read, the text has no tokens.
    """

    def __init__(self, *, logprobs: bool, prefix: str = "", most: int = sys.maxsize) -> None:
        self._logprobs = logprobs
        self._prefix = prefix
        self._most = most
        self._content = ""
        self._pieces: list[TokenEntry] = []
        self._open: list[TokenEntry] = []
        self._shown: list[Token] = []
        self._length = 0
        self._matched = True
        self.finish_reason: FinishReason | None = None

    @property
    def begun(self) -> bool:
        """Whether any text has arrived."""
        return bool(self._content)

    @property
    def is_full(self) -> bool:
        """Whether the text was cut because it became too long."""
        return len(self._content) >= self._most

    def close(self, reason: str) -> None:
        """Take the server's reason for ending: "stop", "length", "content_filter", ...

        A refusal comes in pieces of its own, after which the server says "stop".
        """
        if self.finish_reason != "filter":
            self.finish_reason = "length" if self.is_full else _FINISH.get(reason, "stop")

    def add(self, content: str, entries: Sequence[Mapping[str, Any]] = ()) -> Delta | None:
        """Take the next part; returns what can be shown now, None when that is nothing."""
        if self.is_full:
            return None
        content = storable(content)
        if len(self._content) + len(content) >= self._most:
            # Its tokens no longer fit it.
            content, entries = content[: self._most - len(self._content)], ()
            self.finish_reason = "length"
        self._content += content
        if self._logprobs:
            self._take(entries)
        text = self._without_prefix()
        if text is None:
            return None
        rest = text[self._length :]
        if not self._logprobs:
            return self._show(rest.partition(_REPLACEMENT)[0], [])
        decoded = _decode_complete(self._open)
        if self._matched and not _agree(rest, decoded) and self._length == 0:
            self._drop_blank()
            decoded = _decode_complete(self._open)
        # Else the entries belong to something more than the text: see `align_entries`.
        self._matched = self._matched and _agree(rest, decoded)
        if not self._matched:
            return self._show(rest.partition(_REPLACEMENT)[0], [])
        return self._show_matched(rest, min(len(rest), len(decoded)))

    def _take(self, entries: Sequence[Mapping[str, Any]]) -> None:
        try:
            pieces = [read_entry(entry) for entry in entries]
        except (KeyError, TypeError, ValueError, AttributeError):
            # The text can be read all the same.
            self._logprobs = False
            return
        self._pieces += pieces
        self._open += pieces

    def _drop_blank(self) -> None:
        """Forget white space before the text, which some servers trim from it."""
        while self._open:
            first = self._open[0]
            self._open[0] = first._replace(data=first.data.lstrip())
            if self._open[0].data or not first.data:
                return
            del self._open[0]

    def _show_matched(self, rest: str, ready: int) -> Delta | None:
        spans = token_spans([piece.data for piece in self._open])
        count = len(spans)
        # A token is held back whole, and with it every token that shares a character with it.
        while count and (spans[count - 1][1] > ready or spans[count - 1][0] >= ready):
            count -= 1
            ready = min(ready, spans[count][0])
        tokens = [
            piece.placed(rest, start, end, self._length)
            for piece, (start, end) in zip(self._open[:count], spans[:count], strict=True)
            if start < end
        ]
        del self._open[:count]
        return self._show(rest[:ready], tokens)

    def _show(self, text: str, tokens: list[Token]) -> Delta | None:
        if not text:
            return None
        self._length += len(text)
        self._shown += tokens
        return Delta(text=text, tokens=tuple(tokens))

    def _without_prefix(self) -> str | None:
        """Return the new text so far; None while it may still turn out to be the prefix."""
        content, prefix = self._content, self._prefix
        if not prefix:
            return content
        written = _decode_complete(self._pieces)
        new = bool(written and content) and _agree(content, written)
        if not new and content.startswith(prefix):
            return content[len(prefix) :]
        if not new and prefix.startswith(content):
            return None
        self._prefix = ""
        return content

    def rest(self) -> Delta | None:
        """Return what was held back, now that the reply is over."""
        text, tokens = self._final()
        late = tuple(token for token in tokens or () if token.end > self._length)
        return Delta(text=text[self._length :], tokens=late) if len(text) > self._length else None

    def generation(self, usage: Usage) -> Generation:
        """Return the whole reply."""
        text, tokens = self._final()
        reason = self.finish_reason or "stop"
        return Generation(text=text, tokens=tokens, usage=usage, finish_reason=reason)

    def stopped(self, usage: Usage | None = None) -> Generation:
        """Return the reply as far as it was shown, for a reader that wants no more of it.

        Where the tokens used are not known, the token entries are counted.
        """
        text = (self._without_prefix() or "")[: self._length]
        known = self._logprobs and self._matched and (self._pieces or not text)
        tokens = tuple(self._shown) if known else None
        usage = usage or Usage(completion_tokens=len(self._pieces))
        return Generation(text=text, tokens=tokens, usage=usage, finish_reason="watcher")

    def _final(self) -> tuple[str, tuple[Token, ...] | None]:
        text = self._without_prefix()
        text = self._content if text is None else text
        if not self._logprobs or (text and not self._pieces):
            return text, None
        return align_entries(self._pieces, text)


def _agree(text: str, decoded: str) -> bool:
    return text.startswith(decoded) or decoded.startswith(text)
