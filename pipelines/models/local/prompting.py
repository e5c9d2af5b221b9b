"""From messages to token ids, and from token ids and given replies to text with offsets.

Decoding tokens one at a time loses text: a Chinese character may be spread over several byte-level
tokens, and SentencePiece drops a leading space. The raw bytes of the pieces lose nothing: joined
and decoded as UTF-8 they are the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.errors import InvalidInputError
from pipelines.text.alignment import token_spans
from pipelines.types import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "Prompt",
    "ReplyToken",
    "Vocabulary",
    "encode_prompt",
    "encode_reply",
    "first_tokens",
    "read_vocabulary",
    "token_bytes",
]

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


def _decoder_steps(tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
    """The steps by which a fast tokenizer turns pieces into text; empty where it tells none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = getattr(backend, "decoder", None)
    if decoder is None:
        return []
    state = json.loads(decoder.__getstate__())
    return state["decoders"] if state["type"] == "Sequence" else [state]


def _piece_reader(
    tokenizer: PreTrainedTokenizerBase, pieces: Sequence[str | None]
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


def token_bytes(tokenizer: PreTrainedTokenizerBase) -> list[bytes | None]:
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


def read_vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
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


_PLAIN_LABELS = {"user": "User: ", "assistant": "Assistant: "}
_PLAIN_TURN = "\nUser:"


@dataclass(frozen=True)
class Prompt:
    """Token ids a model is given, and how the text it goes on with is to be read.

    `drops_space`: a space at the very beginning of the reply belongs to the format, not to the
    reply. `stop`: strings with which the next turn would begin.
    """

    ids: tuple[int, ...]
    drops_space: bool = False
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplyToken:
    """A token of a given text and the characters [start, end) it stands for."""

    id: int
    start: int
    end: int


def encode_prompt(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    messages: Sequence[Message],
    *,
    thinking: bool = False,
) -> Prompt:
    """The prompt with which a model answers `messages`, or goes on with a final assistant message.

    The tokenizer's chat template writes it; `thinking` is handed to templates that know it as
    `enable_thinking`. A system message that the template refuses is put before the first user
    message. Control tokens that occur in the messages' text count as ordinary text.

    A tokenizer without a template gets blocks separated by empty lines: the system text as it is,
    then "User: ..." and "Assistant: ..." in turn, ending with an open "Assistant:". The reply ends
    where the model begins another "User:" turn.

    Raises InvalidInputError when there is nothing to answer or the template refuses the messages.
    """
    chat = [message.model_dump() for message in messages]
    prefilled = bool(chat) and chat[-1]["role"] == "assistant"
    if prefilled and not chat[-1]["content"].strip():
        chat, prefilled = chat[:-1], False
    if not chat:
        raise InvalidInputError("There is no message to answer.", remedy="Ask a question.")
    if tokenizer.chat_template is None:
        text = "\n\n".join(_PLAIN_LABELS.get(m["role"], "") + m["content"] for m in chat)
        text = text if prefilled else f"{text}\n\nAssistant:"
        ids = tokenizer.encode(text, split_special_tokens=True)
        return Prompt(tuple(ids), drops_space=not prefilled, stop=(_PLAIN_TURN,))
    ids = _apply_template(tokenizer, chat, prefilled=prefilled, thinking=thinking)
    return Prompt(tuple(ids), drops_space=vocabulary.prepends_space and not prefilled)


def _apply_template(
    tokenizer: PreTrainedTokenizerBase,
    chat: list[dict[str, str]],
    *,
    prefilled: bool,
    thinking: bool,
) -> list[int]:
    from jinja2 import TemplateError

    options: dict[str, Any] = {
        "add_generation_prompt": not prefilled,
        "continue_final_message": prefilled,
        "enable_thinking": thinking,
        "return_dict": False,
    }
    problem: Exception | None = None
    for attempt in (chat, _without_system(chat)):
        # Some vocabularies spell a control token in plain pieces; there the text stays as it is.
        for sanitize in (True, False):
            try:
                ids: Any = tokenizer.apply_chat_template(
                    attempt, sanitize_control_tokens=sanitize, **options
                )
            except (TemplateError, ValueError, NotImplementedError) as error:
                problem = error
            else:
                return list(ids)
    raise InvalidInputError(
        f"The model's chat template refuses these messages ({problem}).",
        remedy="Let user and assistant messages alternate, beginning with a user message.",
    ) from problem


def _without_system(chat: list[dict[str, str]]) -> list[dict[str, str]]:
    system = [message["content"] for message in chat if message["role"] == "system"]
    rest = [dict(message) for message in chat if message["role"] != "system"]
    if rest and system:
        rest[0]["content"] = "\n\n".join([*system, rest[0]["content"]])
    return rest or chat


def _encode_text(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)


def encode_reply(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    messages: Sequence[Message],
    prompt: Prompt,
    text: str,
    *,
    thinking: bool = False,
) -> list[ReplyToken]:
    """The tokens of `text` as the model would write it after `prompt`, with exact offsets in it.

    After a prefix the two are encoded together where that leaves the prefix's tokens as they are,
    so that a word begun in the prefix goes on with the tokens the model would use.
    """
    if not text:
        return []
    for ids in _reply_candidates(tokenizer, vocabulary, messages, prompt, text, thinking):
        pieces = [vocabulary.piece(token) or b"" for token in ids]
        joined, wanted = b"".join(pieces), text.encode("utf-8", "replace")
        if joined == b" " + wanted:
            first = next(index for index, piece in enumerate(pieces) if piece)
            pieces[first] = pieces[first][1:]
        elif joined != wanted:
            continue
        spans = token_spans(pieces)
        return [
            ReplyToken(token, start, end) for token, (start, end) in zip(ids, spans, strict=True)
        ]
    # A tokenizer that rewrites its input (another Unicode form, lower case) knows the offsets.
    encoding = tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
    )
    offsets = encoding["offset_mapping"]
    return [
        ReplyToken(int(token), int(start), int(end))
        for token, (start, end) in zip(encoding["input_ids"], offsets, strict=True)
    ]


def _reply_candidates(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    messages: Sequence[Message],
    prompt: Prompt,
    text: str,
    thinking: bool,
) -> list[list[int]]:
    candidates = []
    if messages and messages[-1].role == "assistant" and messages[-1].content.strip():
        whole = messages[-1].model_copy(update={"content": messages[-1].content + text})
        both = encode_prompt(tokenizer, vocabulary, [*messages[:-1], whole], thinking=thinking)
        if both.ids[: len(prompt.ids)] == prompt.ids:
            candidates.append(list(both.ids[len(prompt.ids) :]))
    if prompt.drops_space and not vocabulary.prepends_space:
        candidates.append(_encode_text(tokenizer, " " + text))
    candidates.append(_encode_text(tokenizer, text))
    return candidates


def first_tokens(
    tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary, spelling: str
) -> frozenset[int]:
    """Tokens with which a reply that begins with `spelling` can begin.

    Counted are the first tokens of the spelling with and without a space before it. A token that
    is nothing but space begins every word and is passed over, so that with a vocabulary that
    writes "▁", "是" the second counts.
    """
    word = spelling.strip()
    heads: set[int] = set()
    for variant in (word, f" {word}"):
        ids = _encode_text(tokenizer, variant)
        head = next((token for token in ids if (vocabulary.piece(token) or b"").strip()), None)
        if head is None:
            continue
        heads.add(head)
        # SentencePiece puts a space before everything, so the piece without it is looked up.
        for name in tokenizer.convert_ids_to_tokens([head]):
            if name.startswith("▁"):
                bare = tokenizer.convert_tokens_to_ids(name[1:])
                if isinstance(bare, int) and bare != tokenizer.unk_token_id:
                    heads.add(bare)
    return frozenset(heads)
