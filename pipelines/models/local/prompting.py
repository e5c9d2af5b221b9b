"""From messages to token ids, and from a given reply to its tokens with character offsets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.errors import InvalidInputError
from pipelines.models.local.vocabulary import Vocabulary
from pipelines.text.align import token_spans
from pipelines.types import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Prompt", "ReplyToken", "encode_prompt", "encode_reply", "first_tokens"]

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
    tokenizer: "PreTrainedTokenizerBase",
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
    tokenizer: "PreTrainedTokenizerBase",
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


def _encode_text(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)


def encode_reply(
    tokenizer: "PreTrainedTokenizerBase",
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
    tokenizer: "PreTrainedTokenizerBase",
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
    tokenizer: "PreTrainedTokenizerBase", vocabulary: Vocabulary, spelling: str
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
