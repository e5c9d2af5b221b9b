"""Tokens with offsets from the per-token entries of an OpenAI-style reply.

The protocol sends a reply twice: as text (`content`) and as token entries (`logprobs.content`),
each with the raw bytes it stands for. The two may differ: the entries can hold an end-of-turn
marker, a stop string that was cut from the text, hidden reasoning, or white space that the server
trimmed, and the text can hold U+FFFD where a server cut it between the bytes of a character. The
text is trusted, except that bytes replace U+FFFD where they can; entries outside it are dropped.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.models.distributions import truncated_entropy
from pipelines.text.align import token_spans
from pipelines.types import Alternative, Token

__all__ = ["REPLACEMENT", "Piece", "decode_complete", "place", "read_piece", "to_token"]

REPLACEMENT = "\ufffd"


class Piece(NamedTuple):
    """A token entry: the bytes it stands for and what the model thought of the position.

    `alternatives` are the candidates reported, most probable first, the token itself among them
    when it is probable enough; `top_k` counts the candidates the entropy was computed over, which
    always include the token.
    """

    data: bytes
    logprob: float
    entropy: float
    top_k: int
    tail_mass: float
    alternatives: tuple[Alternative, ...]


def read_piece(entry: Mapping[str, Any]) -> Piece:
    """A `Piece` from one element of `logprobs.content`.

    Where an entry has no `bytes`, its token string stands in. llama.cpp reports a character that
    took several tokens as one entry with all its bytes and the log-probability of the last token
    only, so the token is looked up among its alternatives by vocabulary id first. Raises KeyError,
    TypeError or ValueError when the entry is not what the protocol promises.
    """
    own = min(float(entry["logprob"]), 0.0)
    listed = sorted(entry.get("top_logprobs") or (), key=lambda one: -float(one["logprob"]))
    alternatives = tuple(
        Alternative(
            text=_data(one).decode("utf-8", "replace"), logprob=min(float(one["logprob"]), 0.0)
        )
        for one in listed
    )
    known = [one.logprob for one in alternatives]
    if not any(_same_token(entry, one) for one in listed):
        known.append(own)
    entropy, tail = truncated_entropy(known)
    return Piece(_data(entry), own, entropy, len(known), tail, alternatives)


def _data(entry: Mapping[str, Any]) -> bytes:
    raw = entry.get("bytes")
    # "replace": a string cut inside a character may hold half a surrogate pair.
    return str.encode(entry["token"], "utf-8", "replace") if raw is None else bytes(raw)


def _same_token(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    for key in ("id", "bytes"):
        if one.get(key) is not None and other.get(key) is not None:
            return one[key] == other[key]
    return one["token"] == other["token"]


def to_token(piece: Piece, text: str, start: int, end: int) -> Token:
    """`piece` as the token at `[start, end)` of `text`."""
    return Token(
        text=text[start:end],
        start=start,
        end=end,
        logprob=piece.logprob,
        entropy=piece.entropy,
        top_k=piece.top_k,
        tail_mass=piece.tail_mass,
        alternatives=piece.alternatives,
    )


def decode_complete(data: bytes) -> str:
    """`data` as text, without a character at its end whose bytes are not all there yet."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def place(pieces: Sequence[Piece], content: str) -> tuple[str, tuple[Token, ...] | None]:
    """The reply's text and its tokens with offsets in it; None where they do not belong together.

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
            tokens.append(to_token(piece, text, first, last))
    return text, tuple(tokens)


def _mended(content: str, decoded: str) -> str:
    if REPLACEMENT not in content or REPLACEMENT in decoded:
        return content
    known = [re.escape(part) for part in re.split(f"{REPLACEMENT}+", content)]
    return decoded if re.fullmatch(".+?".join(known), decoded, re.DOTALL) else content


def _find(text: str, decoded: str, starts: set[int]) -> int | None:
    """Where `text` lies in `decoded`: at its start, else at the last fitting token, else anywhere.

    The last, because what a server leaves out before the text is reasoning, which may quote it.
    """
    if decoded.startswith(text):
        return 0
    found = [match.start() for match in re.finditer(f"(?={re.escape(text)})", decoded)]
    at_token = [offset for offset in found if offset in starts]
    return at_token[-1] if at_token else (found[0] if found else None)
