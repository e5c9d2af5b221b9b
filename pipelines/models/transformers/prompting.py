"""From messages to token ids, and from token ids and given replies to text with offsets.

Decoding tokens one at a time loses text: a Chinese character may be spread over several byte-level
tokens, and SentencePiece drops a leading space. The raw bytes of the pieces lose nothing: joined
and decoded as UTF-8 they are the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.base import Message
from pipelines.errors import failure
from pipelines.models.base import REFLECTION_TOKENS
from pipelines.text.alignment import token_spans
from pipelines.text.thinking import NO_MARKS, Marks, declared_marks

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_META_SPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and its tokens: `pieces[id]` in bytes (None for special ones), names of others.

    `prepends_space` says that the tokenizer puts a space before every text it encodes, so that the
    space at the beginning of a reply is the tokenizer's and not the model's. `reflections` are the
    tokens by which Self-RAG's weights criticise what they write; they are read and written as text.
    """

    tokenizer: PreTrainedTokenizerBase
    pieces: list[bytes | None]
    special: dict[int, str]
    prepends_space: bool
    reflections: dict[str, int] = field(default_factory=dict)

    def piece(self, token: int) -> bytes | None:
        """Return a token's bytes; None for special tokens and ids beyond the tokenizer's own."""
        return self.pieces[token] if token < len(self.pieces) else None

    def text(self, token: int) -> str:
        """Return a token as people read it; bytes that are no whole character become U+FFFD."""
        piece = self.piece(token)
        return self.special.get(token, "") if piece is None else piece.decode("utf-8", "replace")

    def encode(self, text: str, *, begins: bool = False) -> list[int]:
        """Return the tokens of `text`, in which control tokens count as ordinary text, but for
        `reflections`. What `begins` a prompt has what the tokenizer puts before every text.
        """
        ids: list[int] = []
        for number, part in enumerate(_reflected().split(text) if self.reflections else [text]):
            if (token := self.reflections.get(part)) is not None:
                ids.append(token)
            elif part or (begins and not number):
                first = begins and not number
                ids += self.tokenizer.encode(
                    part, add_special_tokens=first, split_special_tokens=True
                )
        return ids


@cache
def _reflected() -> re.Pattern[str]:
    return re.compile(f"({'|'.join(map(re.escape, REFLECTION_TOKENS))})")


def read_vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """Read all of a tokenizer's tokens at once, so that decoding never has to ask it again.

    Byte-level pieces are mapped back through the GPT-2 byte alphabet; in SentencePiece and
    metaspace pieces ▁ is a space and <0xE4> is a byte. For any other tokenizer a token's bytes are
    what decoding it after a plain letter adds.
    """
    names: list[str | None] = list(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    known = tokenizer.added_tokens_decoder
    added = {index: token.content for index, token in known.items() if not token.special}
    numbers = {name: index for index, name in enumerate(names) if name in REFLECTION_TOKENS}
    reflections = {name: numbers[name] for name in REFLECTION_TOKENS if name in numbers}
    unwritten = set(tokenizer.all_special_ids) | (set(known) - set(added))
    read = _piece_reader(tokenizer, names)
    anchor = tokenizer.encode("a", add_special_tokens=False)
    before = len(tokenizer.decode(anchor[-1:]))

    def bytes_of(index: int, name: str | None) -> bytes | None:
        if name is not None and name in reflections:
            return name.encode()
        if index in unwritten or name is None:
            return None
        if index in added:
            return added[index].encode()
        return read(name) if read else str(tokenizer.decode([anchor[-1], index]))[before:].encode()

    pieces = [bytes_of(index, name) for index, name in enumerate(names)]
    special = {i: name for i, name in enumerate(names) if pieces[i] is None and name is not None}
    begins = b"".join(pieces[token] or b"" for token in anchor)
    space = begins == b" a"
    return Vocabulary(tokenizer, pieces, special, space, reflections)


def _piece_reader(
    tokenizer: PreTrainedTokenizerBase, names: Sequence[str | None]
) -> Callable[[str], bytes] | None:
    """Return how this tokenizer writes bytes as pieces, None for an unusual way."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    alphabet = {character: byte for byte, character in bytes_to_unicode().items()}

    def byte_level(piece: str) -> bytes:
        try:
            return bytes(alphabet[character] for character in piece)
        except KeyError:  # a word added to the vocabulary as plain text
            return piece.encode("utf-8", "replace")

    def meta_space(piece: str) -> bytes:
        if byte := _BYTE_PIECE.fullmatch(piece):
            return bytes([int(byte[1], 16)])
        return piece.replace(_META_SPACE, " ").encode("utf-8", "replace")

    steps = _decoder_steps(tokenizer)
    kinds = {step["type"] for step in steps}
    replaced = {step["pattern"].get("String") for step in steps if step["type"] == "Replace"}
    known = {name for name in names if name and not steps}
    if "ByteLevel" in kinds or known.issuperset(alphabet):
        return byte_level
    if (
        "Metaspace" in kinds
        or _META_SPACE in replaced
        or any(name.startswith(_META_SPACE) for name in known)
    ):
        return meta_space
    return None


def _decoder_steps(tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
    """Return the steps from pieces to text of a fast tokenizer; empty where it tells none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = getattr(backend, "decoder", None)
    if decoder is None:
        return []
    state = json.loads(decoder.__getstate__())
    return state["decoders"] if state["type"] == "Sequence" else [state]


_PLAIN_LABELS = {"user": "User: ", "assistant": "Assistant: "}
_INSTRUCTED = {"user": "### Instruction:\n", "assistant": "### Response:\n"}
"""The format that Self-RAG's weights were trained with (Asai and others 2024)."""


@dataclass(frozen=True)
class Prompt:
    """Token ids a model is given, and how its continuation is to be read.

    `drops_space`: a space at the very beginning of the reply belongs to the format, not to the
    reply. `stop`: strings with which the next turn would begin. `marks` are those around thinking.
    """

    ids: tuple[int, ...]
    drops_space: bool = False
    stop: tuple[str, ...] = ()
    marks: Marks = NO_MARKS


_TAIL = 16
"""Tokens at the end of a prompt that may open the thinking."""

_marks = lru_cache(maxsize=64)(declared_marks)


def encode_prompt(vocabulary: Vocabulary, messages: Sequence[Message]) -> Prompt:
    """Return the prompt with which a model answers `messages`, or continues a final assistant
    message.

    The tokenizer's chat template writes it; models that can write their reasoning first are told
    not to. A system message that the template refuses is put before the first user message.
    Control tokens that occur in the messages' text count as ordinary text.

    A tokenizer without a template gets blocks separated by empty lines: the system text as it is,
    then "User: ..." and "Assistant: ..." in turn, ending with an open "Assistant:". The reply ends
    where the model begins another "User:" turn. Weights of Self-RAG get the format that they were
    trained with.

    Raises InvalidInputError when there is nothing to answer or the template refuses the messages.
    """
    tokenizer = vocabulary.tokenizer
    chat = [message.model_dump(include={"role", "content"}) for message in messages]
    prefilled = bool(chat) and chat[-1]["role"] == "assistant"
    if prefilled and not chat[-1]["content"].strip():
        chat, prefilled = chat[:-1], False
    if not chat:
        raise failure("asking.no_message")
    if vocabulary.reflections or tokenizer.chat_template is None:
        labels = _INSTRUCTED if vocabulary.reflections else _PLAIN_LABELS
        text = "\n\n".join(labels.get(m["role"], "") + m["content"] for m in chat)
        text = text if prefilled else f"{text}\n\n{labels['assistant'].rstrip(' ')}"
        stop = f"\n{labels['user'].rstrip()}"
        ids = vocabulary.encode(text, begins=True)
        return Prompt(tuple(ids), drops_space=not prefilled, stop=(stop,))
    ids = _apply_template(tokenizer, chat, prefilled=prefilled)
    template, tail = tokenizer.chat_template, str(tokenizer.decode(ids[-_TAIL:]))
    marks = _marks(template, tail) if isinstance(template, str) else NO_MARKS
    drops_space = vocabulary.prepends_space and not prefilled
    return Prompt(tuple(ids), drops_space=drops_space, marks=marks)


def _apply_template(
    tokenizer: PreTrainedTokenizerBase, chat: list[dict[str, str]], *, prefilled: bool
) -> list[int]:
    from jinja2 import TemplateError

    problem: Exception | None = None
    for attempt in (chat, _without_system(chat)):
        # Some vocabularies spell a control token in plain pieces; there the text stays as it is.
        for sanitize in (True, False):
            try:
                ids: Any = tokenizer.apply_chat_template(
                    attempt,
                    add_generation_prompt=not prefilled,
                    continue_final_message=prefilled,
                    enable_thinking=False,
                    return_dict=False,
                    sanitize_control_tokens=sanitize,
                )
            except (TemplateError, ValueError, NotImplementedError) as error:
                problem = error
            else:
                return list(ids)
    raise failure("asking.no_template", problem=problem) from problem


def _without_system(chat: list[dict[str, str]]) -> list[dict[str, str]]:
    system = [message["content"] for message in chat if message["role"] == "system"]
    rest = [dict(message) for message in chat if message["role"] != "system"]
    if rest and system:
        rest[0]["content"] = "\n\n".join([*system, rest[0]["content"]])
    return rest or chat


class ReplyToken(NamedTuple):
    """A token of a given text and the characters [start, end) it stands for."""

    id: int
    start: int
    end: int


def encode_reply(
    vocabulary: Vocabulary, messages: Sequence[Message], prompt: Prompt, text: str
) -> list[ReplyToken]:
    """Return the tokens of `text` as the model would write it after `prompt`, with exact
    offsets in it.

    After a prefix the two are encoded together where that leaves the prefix's tokens as they are,
    so that a word begun in the prefix continues with the tokens the model would use.
    """
    if not text:
        return []
    wanted = text.encode("utf-8", "replace")
    for ids in _reply_candidates(vocabulary, messages, prompt, text):
        pieces = [vocabulary.piece(token) or b"" for token in ids]
        joined = b"".join(pieces)
        if joined == b" " + wanted:
            first = next(index for index, piece in enumerate(pieces) if piece)
            pieces[first] = pieces[first][1:]
        elif joined != wanted:
            continue
        return [
            ReplyToken(token, *span) for token, span in zip(ids, token_spans(pieces), strict=True)
        ]
    # A tokenizer that rewrites its input (another Unicode form, lower case) knows the offsets.
    encoding = vocabulary.tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
    )
    spans = zip(encoding["input_ids"], encoding["offset_mapping"], strict=True)
    return [ReplyToken(token, *span) for token, span in spans]


def _reply_candidates(
    vocabulary: Vocabulary, messages: Sequence[Message], prompt: Prompt, text: str
) -> Iterator[Sequence[int]]:
    if messages and messages[-1].role == "assistant" and messages[-1].content.strip():
        whole = messages[-1].model_copy(update={"content": messages[-1].content + text})
        both = encode_prompt(vocabulary, [*messages[:-1], whole])
        if both.ids[: len(prompt.ids)] == prompt.ids:
            yield both.ids[len(prompt.ids) :]
    if prompt.drops_space and not vocabulary.prepends_space:
        yield vocabulary.encode(" " + text)
    yield vocabulary.encode(text)


def first_tokens(vocabulary: Vocabulary, spelling: str) -> frozenset[int]:
    """Return tokens with which a reply that begins with `spelling` can begin.

    Counted are the first tokens of the spelling with and without a space before it. A token that
    is nothing but space begins every word and is passed over, so that with a vocabulary that
    writes "▁", "是" the second counts.
    """
    tokenizer, word = vocabulary.tokenizer, spelling.strip()
    heads: set[int] = set()
    for variant in (word, f" {word}"):
        ids = vocabulary.encode(variant)
        head = next((token for token in ids if (vocabulary.piece(token) or b"").strip()), None)
        if head is None:
            continue
        heads.add(head)
        # SentencePiece puts a space before everything, so the piece without it is looked up.
        for name in tokenizer.convert_ids_to_tokens([head]):
            if name.startswith(_META_SPACE):
                bare = tokenizer.convert_tokens_to_ids(name[1:])
                if isinstance(bare, int) and bare != tokenizer.unk_token_id:
                    heads.add(bare)
    return frozenset(heads)
