"""Token entries of a reply: read in every form in use, and put in their places in its text.

A service sends a reply twice: as text, and as token entries. The two may differ: the entries can
hold an end-of-turn marker, a stop string that was cut from the text, hidden reasoning, or white
space that the server trimmed; the text can hold U+FFFD where a server cut it between the bytes of a
character; an entry can be spelled as the vocabulary has it. The text is trusted, except that bytes
replace U+FFFD where they can. An entry that does not fit costs the characters it stands for, and no
others.
"""

from __future__ import annotations

import ast
import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import exp, isnan, log, nan
from typing import Any, NamedTuple

from pipelines.base import LOGPROB_ROUNDING, Alternative, Gap, Token
from pipelines.text.alignment import token_spans

REPLACEMENT = "\ufffd"
_IMPOSSIBLE = -9999.0
"""The log-probability that services report of a token that cannot be; JSON has no infinity."""

_LEAST_PLACED = 0.2
"""The share of a text's characters that entries have to fit; of fewer, they are of another text."""

_AHEAD = 240
"""Bytes of the text in which the next entry that fits is looked for."""


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


# The forms in which services list token entries.

_LISTS = (
    "content", "tokens", "completion_probabilities", "chosenCandidates", "output_token_logprobs",
    "token_logprobs", "logprobs",
)  # fmt: skip
_NAMES = ("decoded_token", "token", "text", "tok_str", "content", "piece")
_LOGARITHMS = ("logprob", "log_prob", "token_logprob", "logProb", "logProbability", "logprobs")
_PROBABILITIES = ("prob", "probability", "p")
_ALTERNATIVES = ("top_logprobs", "top_probs", "probs", "alternatives", "top_tokens", "candidates")
_BYTES = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")
_HEX = re.compile(r"(?:<0x[0-9a-fA-F]{2}>)+")
_LITERAL = re.compile(r"b(['\"]).*\1", re.DOTALL)
_ESCAPES = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[nrt])+")


def listed_entries(logprobs: object) -> list[Mapping[str, Any]]:
    """Return the entries that a service lists, one mapping a token in OpenAI's form; none where
    `logprobs` is nothing of the kind.

    Read are the list of entries, bare or under `content`, `tokens` and the like, and the older form
    of lists beside each other (`tokens`, `token_logprobs`, `top_logprobs`).
    """
    if isinstance(logprobs, Mapping):
        tokens = logprobs.get("tokens")
        if isinstance(tokens, list) and tokens and not isinstance(tokens[0], Mapping):
            return _beside(logprobs, tokens)
        for name in _LISTS:
            found = logprobs.get(name)
            if isinstance(found, list) or (name == "logprobs" and isinstance(found, Mapping)):
                return listed_entries(found)
        return []
    if not isinstance(logprobs, list | tuple):
        return []
    return [_in_one_form(one) for one in logprobs]


def _beside(logprobs: Mapping[str, Any], tokens: list[Any]) -> list[Mapping[str, Any]]:
    values = logprobs.get("token_logprobs") or logprobs.get("logprobs") or ()
    others = logprobs.get("top_logprobs") or ()
    made: list[Mapping[str, Any]] = []
    for index, token in enumerate(tokens):
        entry: dict[str, Any] = {"token": token}
        if index < len(values):
            entry["logprob"] = values[index]
        if index < len(others):
            entry["top_logprobs"] = _alternatives(others[index])
        made.append(entry)
    return made


def _in_one_form(entry: object) -> Mapping[str, Any]:
    """Return an entry under OpenAI's names; what it does not have stays missing."""
    if isinstance(entry, list | tuple):
        # A token and its number beside its id, in any order.
        name = next((one for one in entry if isinstance(one, str)), None)
        value = next((one for one in entry if isinstance(one, float)), None)
        entry = {"token": name, "logprob": value}
    if not isinstance(entry, Mapping):
        return {}
    if isinstance(named := entry.get("token"), Mapping):
        entry = {**named, **{key: value for key, value in entry.items() if key != "token"}}
    by_id = [one for one in entry.values() if isinstance(one, Mapping)]
    if by_id and len(by_id) == len(entry):
        # The token that was drawn first.
        entry = {**by_id[0], "top_logprobs": by_id}
    made: dict[str, Any] = {
        name: entry[name] for name in ("id", "bytes") if entry.get(name) is not None
    }
    if isinstance(made.get("bytes"), str):
        # The text once more, or its bytes in a spelling that is not known.
        del made["bytes"]
    if (name := _first(entry, _NAMES)) is not None:
        made["token"] = entry[name]
    if (name := _first(entry, _LOGARITHMS)) is not None:
        value = entry[name]
        made["logprob"] = value[0] if isinstance(value, list) and len(value) == 1 else value
    elif (name := _first(entry, _PROBABILITIES)) is not None:
        made["logprob"] = _logarithm(entry[name])
    if (name := _first(entry, _ALTERNATIVES)) is not None:
        made["top_logprobs"] = _alternatives(entry[name])
    return made


def _first(entry: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if entry.get(name) is not None), None)


def _alternatives(listed: object) -> object:
    if isinstance(listed, Mapping):
        return [{"token": token, "logprob": value} for token, value in listed.items()]
    if isinstance(listed, list):
        return [_in_one_form(one) for one in listed]
    return listed


def _logarithm(probability: object) -> object:
    if isinstance(probability, int | float) and probability > 0:
        return log(probability)
    return _IMPOSSIBLE if probability == 0 else probability


class TokenEntry(NamedTuple):
    """A token entry: the bytes it stands for, and the token, which has no offsets yet.

    The token's alternatives are the candidates reported, most probable first, itself among them
    when it is probable enough; `top_k` counts the candidates the entropy was computed over, which
    always include the token. `name` is how the service spells it.
    """

    data: bytes
    token: Token
    name: str = ""

    def placed(self, text: str, start: int, end: int, before: int = 0) -> Token:
        """Return the token at `[start, end)` of `text`, `before` characters into the reply."""
        span = {"text": text[start:end], "start": before + start, "end": before + end}
        return self.token.model_copy(update=span)

    def respelled(self) -> TokenEntry:
        """Return the entry with its spelling, and its alternatives', read as a vocabulary's."""
        others = tuple(
            other.model_copy(
                update={"text": from_vocabulary(other.text.encode()).decode("utf-8", "replace")}
            )
            for other in self.token.alternatives
        )
        token = self.token.model_copy(update={"alternatives": others})
        return self._replace(data=from_vocabulary(self.data), token=token)

    def forms(self) -> Iterator[TokenEntry]:
        """Yield the entry with every spelling that it may have, as it came first."""
        yield self
        if self.name and self.name.encode("utf-8", "replace") != self.data:
            yield self._replace(data=self.name.encode("utf-8", "replace"))
        respelled = self.respelled()
        if respelled.data != self.data:
            yield respelled
        named = from_vocabulary(self.name.encode("utf-8", "replace"))
        if named not in (self.data, respelled.data):
            yield respelled._replace(data=named)


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
    name = entry.get("token")
    return TokenEntry(_data(entry), token, name if isinstance(name, str) else "")


def any_entry(entry: Mapping[str, Any]) -> TokenEntry:
    """Return what can be read of an entry: without a probability where it has none that can be."""
    try:
        return read_entry(entry)
    except (KeyError, TypeError, ValueError, AttributeError):
        name = entry.get("token") if isinstance(entry, Mapping) else None
        name = name if isinstance(name, str) else ""
        try:
            data = _data(entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            data = name.encode("utf-8", "replace")
        return TokenEntry(data, Token(text="", start=0, end=0, gap="invalid"), name)


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
    if raw is None:
        # "replace": a string cut inside a character may hold half a surrogate pair.
        data = _bytes_in(entry["token"]) or str.encode(entry["token"], "utf-8", "replace")
    else:
        data = bytes(raw)
    return data.replace(b"\0", REPLACEMENT.encode())


def _bytes_in(name: str) -> bytes | None:
    """Return the bytes that a token's name spells out, such as "bytes:\\xe4\\xb8" or "<0xE4>"."""
    if found := _BYTES.fullmatch(name):
        return bytes.fromhex(found[1].replace("\\x", ""))
    if _HEX.fullmatch(name):
        return bytes.fromhex("".join(re.findall(r"<0x(..)>", name)))
    if _ESCAPES.fullmatch(name):
        # Of bytes that are spelled out, each is one; of characters, those of UTF-8.
        characters = name.encode().decode("unicode_escape")
        kind = "latin-1" if "\\u" not in name else "utf-8"
        return characters.encode(kind, "replace")
    if _LITERAL.fullmatch(name):
        try:
            value = ast.literal_eval(name)
        except (ValueError, SyntaxError):
            return None
        return value if isinstance(value, bytes) else None
    return None


@cache
def _alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for.

    Bytes that are printable in Latin-1 stand for themselves, the others are moved behind U+0100
    (the byte-level BPE of GPT-2).
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = (byte for byte in range(256) if byte not in shown)
    alphabet = {chr(byte): byte for byte in shown}
    return alphabet | {chr(0x100 + number): byte for number, byte in enumerate(moved)}


def from_vocabulary(data: bytes) -> bytes:
    """Return the bytes of a token that is spelled as in its vocabulary; others as they are.

    Read are byte-level spellings ("Ġof", "æĺ¯"), SentencePiece's "▁of" and <0xE6>, and the ends and
    beginnings of words of older vocabularies ("of</w>", "##of").
    """
    name = data.decode("utf-8", "replace")
    if (spelled := _bytes_in(name)) is not None:
        return spelled
    if "▁" in name:
        return name.replace("▁", " ").encode()
    if name.endswith("</w>"):
        return f"{name.removesuffix('</w>')} ".encode()
    alphabet = _alphabet()
    if not name.isascii() and all(character in alphabet for character in name):
        return bytes(alphabet[character] for character in name)
    return name.removeprefix("##").encode() if len(name) > 2 else data


def _same_token(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    for key in ("id", "bytes"):
        if one.get(key) is not None and other.get(key) is not None:
            return one[key] == other[key]
    return one["token"] == other["token"]


# Tokens in their places.


def decode_complete(pieces: Iterable[TokenEntry]) -> str:
    """Return what the pieces spell, without a last character whose bytes are not all there."""
    data = b"".join(piece.data for piece in pieces)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def align_entries(
    pieces: Sequence[TokenEntry], content: str
) -> tuple[str, tuple[Token, ...] | None]:
    """Return the reply's text and its tokens with offsets in it; None where they do not belong
    together.

    The text is `content`, or what the bytes decode to where `content` has U+FFFD in their place.
    Where the entries spell more or something else, those that fit are kept, in order; characters
    between them are tokens without a probability, whose `gap` says why.
    """
    for spelled in (pieces, [piece.respelled() for piece in pieces]):
        decoded = b"".join(piece.data for piece in spelled).decode("utf-8", "replace")
        spans = token_spans([piece.data for piece in spelled])
        text = _mended(content, decoded)
        offset = _find(text, decoded, {start for start, _ in spans})
        if offset is None:
            continue
        tokens: list[Token] = []
        for piece, (start, end) in zip(spelled, spans, strict=True):
            first, last = max(start - offset, 0), min(end - offset, len(text))
            if first < last:
                tokens.append(piece.placed(text, first, last))
        return text, _worth_keeping(tokens, text)
    return content, _worth_keeping(_pieced(pieces, content), content)


def _worth_keeping(tokens: Sequence[Token], text: str) -> tuple[Token, ...] | None:
    """Return the tokens; None where none of them has a probability, or they fit too little."""
    if not text.strip():
        return tuple(tokens)
    known = sum(token.end - token.start for token in tokens if token.logprob is not None)
    fitting = sum(token.end - token.start for token in tokens if token.gap in (None, "invalid"))
    return tuple(tokens) if known and fitting >= _LEAST_PLACED * len(text) else None


def _mended(content: str, decoded: str) -> str:
    if REPLACEMENT not in content or REPLACEMENT in decoded:
        return content
    known = [re.escape(part) for part in re.split(f"{REPLACEMENT}+", content)]
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


class _Fit(NamedTuple):
    """An entry in the bytes [start, end) of a text."""

    piece: TokenEntry
    start: int
    end: int


def _pieced(pieces: Sequence[TokenEntry], text: str) -> list[Token]:
    """Return tokens that cover `text`: the entries that fit, one after the other, and gaps."""
    data = text.encode("utf-8", "replace")
    edges = [0, *accumulate(len(character.encode("utf-8", "replace")) for character in text)]
    tokens: list[Token] = []
    at = 0

    def characters(start: int, end: int) -> tuple[int, int]:
        # A token that holds a part of a character covers the whole of it.
        return bisect_right(edges, start) - 1, bisect_left(edges, end)

    def leave(upto: int, reason: Gap) -> None:
        if at < upto:
            start, end = bisect_left(edges, at), bisect_right(edges, upto) - 1
            if start < end:
                tokens.append(Token(text=text[start:end], start=start, end=end, gap=reason))

    index = 0
    while index < len(pieces) and at < len(data):
        fit = _fitted(pieces[index], data, at)
        skipped = 0
        if fit is None:
            ahead = _resumed(pieces, index, data, at)
            if ahead is None:
                break
            skipped, fit = ahead
        spelled = any(piece.data.strip() for piece in pieces[index : index + skipped])
        leave(fit.start, "unreadable" if spelled else "missing")
        tokens.append(fit.piece.placed(text, *characters(fit.start, fit.end)))
        at, index = fit.end, index + skipped + 1
    leave(len(data), "unreadable" if index < len(pieces) else "missing")
    return tokens


def _fitted(piece: TokenEntry, data: bytes, at: int) -> _Fit | None:
    """Return the entry at byte `at`, whichever spelling it has; white space is not counted.

    An empty one fits nowhere. One that goes on after the end of the text was cut there.
    """
    behind = at
    while data[behind : behind + 1].isspace():
        behind += 1
    for form in piece.forms():
        for spelled, start in ((form.data, at), (form.data.strip(), behind)):
            if spelled and data.startswith(spelled, start):
                return _Fit(form, at, start + len(spelled))
            if spelled and start < len(data) and spelled.startswith(data[start:]):
                return _Fit(form, at, len(data))
    return None


def _resumed(
    pieces: Sequence[TokenEntry], index: int, data: bytes, at: int
) -> tuple[int, _Fit] | None:
    """Return how many entries to pass over, and where the next one fits: with the one behind it,
    so that a comma alone is no proof; as near as can be.
    """
    best: tuple[float, int, _Fit] | None = None
    for skipped in range(len(pieces) - index):
        if best is not None and skipped >= best[0]:
            break
        piece = pieces[index + skipped]
        following = next((one for one in pieces[index + skipped + 1 :] if one.data.strip()), None)
        for form in piece.forms():
            bare = form.data.strip()
            place = data.find(bare, at, at + _AHEAD + len(bare)) if bare else -1
            while place >= 0:
                end = place + len(bare)
                behind = following is None or end == len(data) or _fitted(following, data, end)
                if behind:
                    cost = skipped + (place - at) / 4
                    if best is None or cost < best[0]:
                        space = form.data[: len(form.data) - len(form.data.lstrip())]
                        start = place - len(space) if data.endswith(space, at, place) else place
                        best = cost, skipped, _Fit(form, start, end)
                    break
                place = data.find(bare, place + 1, at + _AHEAD + len(bare))
    return None if best is None else best[1:]
