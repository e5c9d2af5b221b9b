"""What every token of a tokenizer stands for, in bytes.

Decoding tokens one at a time loses text: a Chinese character may be spread over several byte-level
tokens, and SentencePiece drops a leading space. The raw bytes of the pieces lose nothing: joined
and decoded as UTF-8 they are the text.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Vocabulary", "read_vocabulary", "token_bytes"]

_META_SPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """The character that stands for each byte in byte-level BPE (Radford et al. 2019, GPT-2).

    Printable Latin-1 characters stand for themselves; the other bytes, in order, take the code
    points from 256 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {
        chr(256 + index): byte for index, byte in enumerate(others)
    }


_ALPHABET = _byte_alphabet()


def _read_byte_level(piece: str) -> bytes:
    try:
        return bytes(_ALPHABET[character] for character in piece)
    except KeyError:  # a word added to the vocabulary as plain text
        return piece.encode("utf-8", "replace")


def _read_meta_space(piece: str) -> bytes:
    if byte := _BYTE_PIECE.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    return piece.replace(_META_SPACE, " ").encode("utf-8", "replace")


def _decoder_steps(tokenizer: "PreTrainedTokenizerBase") -> list[dict[str, Any]]:
    """The steps by which a fast tokenizer turns pieces into text; empty where it tells none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = getattr(backend, "decoder", None)
    if decoder is None:
        return []
    state = json.loads(decoder.__getstate__())
    return state["decoders"] if state["type"] == "Sequence" else [state]


def _piece_reader(
    tokenizer: "PreTrainedTokenizerBase", pieces: Sequence[str | None]
) -> Callable[[str], bytes] | None:
    """How this tokenizer writes bytes as pieces, None when it is neither of the two usual ways."""
    steps = _decoder_steps(tokenizer)
    kinds = {step["type"] for step in steps}
    if "ByteLevel" in kinds:
        return _read_byte_level
    spaces = [step for step in steps if step["type"] == "Replace"]
    if "Metaspace" in kinds or any(step["pattern"].get("String") == _META_SPACE for step in spaces):
        return _read_meta_space
    if not steps:
        known = {piece for piece in pieces if piece}
        if known.issuperset(_ALPHABET):
            return _read_byte_level
        if any(piece.startswith(_META_SPACE) for piece in known):
            return _read_meta_space
    return None


def token_bytes(tokenizer: "PreTrainedTokenizerBase") -> list[bytes | None]:
    """The UTF-8 bytes each token id adds to a text, None for special tokens, which add nothing.

    Byte-level pieces are mapped back through the GPT-2 byte alphabet; in SentencePiece and
    metaspace pieces ▁ is a space and <0xE4> is a byte. For any other tokenizer a token's bytes are
    what decoding it after a plain letter adds.
    """
    size = len(tokenizer)
    pieces: list[str | None] = list(tokenizer.convert_ids_to_tokens(list(range(size))))
    special = set(tokenizer.all_special_ids)
    added = {
        index: token.content
        for index, token in tokenizer.added_tokens_decoder.items()
        if not token.special
    }
    special |= set(tokenizer.added_tokens_decoder) - set(added)
    read = _piece_reader(tokenizer, pieces)
    anchor = [] if read else tokenizer.encode("a", add_special_tokens=False)[-1:]
    before = len(tokenizer.decode(anchor)) if anchor else 0

    def bytes_of(index: int, piece: str | None) -> bytes | None:
        if index in special or piece is None:
            return None
        if index in added:
            return added[index].encode()
        return read(piece) if read else str(tokenizer.decode([*anchor, index]))[before:].encode()

    return [bytes_of(index, piece) for index, piece in enumerate(pieces)]


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a model: `pieces[id]` in bytes (None for special ones), names of all others.

    `prepends_space` says that the tokenizer puts a space before every text it encodes, so that the
    space at the beginning of a reply is the tokenizer's and not the model's.
    """

    pieces: list[bytes | None]
    special: dict[int, str]
    prepends_space: bool

    def piece(self, token: int) -> bytes | None:
        """Bytes of a token; None for special tokens and for ids beyond the tokenizer's own."""
        return self.pieces[token] if token < len(self.pieces) else None

    def text(self, token: int) -> str:
        """A token as people read it; bytes that are no whole character become U+FFFD."""
        piece = self.piece(token)
        return self.special.get(token, "") if piece is None else piece.decode("utf-8", "replace")


def read_vocabulary(tokenizer: "PreTrainedTokenizerBase") -> Vocabulary:
    """Read all of a tokenizer's tokens at once, so that decoding never has to ask it again."""
    pieces = token_bytes(tokenizer)
    names = tokenizer.convert_ids_to_tokens(list(range(len(pieces))))
    special = {
        index: name
        for index, (piece, name) in enumerate(zip(pieces, names, strict=True))
        if piece is None and name is not None
    }
    letter = tokenizer.encode("a", add_special_tokens=False)
    begins = b"".join(pieces[token] or b"" for token in letter)
    return Vocabulary(pieces=pieces, special=special, prepends_space=begins == b" a")
