"""Text that grows by one sentence at a time: its beginning, the next sentence, and its end."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.replies.parsing import declines, visible
from pipelines.methods.writing import continue_text
from pipelines.models.base import Delta, Watcher
from pipelines.run.scope import Scope
from pipelines.text import split_sentences, text_key
from pipelines.text.languages import HAN, has_han
from pipelines.types import Generation, Message

__all__ = [
    "Piece",
    "appended",
    "cut",
    "first_piece",
    "length_of",
    "next_piece",
    "replaced",
    "said",
    "stripped",
    "until",
]

_AROUND = " \t\n.,;:!?\"'`*。，；！？“”"
_UNIT = re.compile(rf"[{HAN}]|[^\s{HAN}]+")


@dataclass(frozen=True)
class Piece:
    """A sentence as it continues a text: `generation.text[start:]`, white space before it.

    `last` says that the writer ended the text with it, `truncated` that the token limit did.
    """

    generation: Generation
    start: int
    last: bool = False
    truncated: bool = False

    @property
    def sentence(self) -> str:
        """The sentence without what stands before it."""
        return self.generation.text[self.start :]


def said(generation: Generation) -> Generation:
    """The generation without thinking blocks and decoration; its tokens keep their characters."""
    text = visible(generation.text)
    if text == generation.text.strip():
        return generation
    at = generation.text.rfind(text)
    if generation.tokens is None or at < 0:
        return generation.model_copy(update={"text": text, "tokens": None})
    return cut(_moved(generation, -at).model_copy(update={"text": text}), len(text))


def stripped(generation: Generation) -> Generation:
    """The generation without white space around its text."""
    lead = len(generation.text) - len(generation.text.lstrip())
    moved = _moved(generation, -lead).model_copy(update={"text": generation.text.strip()})
    if moved.tokens is None:
        return moved
    # The first token usually brings the white space along.
    tokens = tuple(
        token.model_copy(update={"start": 0}) if token.start < 0 < token.end else token
        for token in moved.tokens
    )
    return cut(moved.model_copy(update={"tokens": tokens}), len(moved.text))


def cut(generation: Generation, end: int) -> Generation:
    """The first `end` characters with the tokens that lie within them."""
    tokens = generation.tokens
    if tokens is not None:
        tokens = tuple(token for token in tokens if token.start >= 0 and token.end <= end)
    return generation.model_copy(update={"text": generation.text[:end], "tokens": tokens})


def appended(head: Generation, tail: Generation) -> Generation:
    """Both texts as one; where only one has tokens, the other goes without."""
    moved = _moved(tail, len(head.text)).tokens
    tokens = None if head.tokens is None and moved is None else (head.tokens or ()) + (moved or ())
    return tail.model_copy(update={"text": head.text + tail.text, "tokens": tokens})


def replaced(piece: Piece, sentence: str) -> Piece:
    """The piece with another sentence in the same place."""
    head = cut(piece.generation, piece.start)
    generation = appended(head, Generation(text=sentence))
    return Piece(generation, piece.start, piece.last, piece.truncated)


def until(limit: int, known: Collection[str] = ()) -> Watcher:
    """Ends the writing once `limit` sentences are complete that are not among `known`.

    A sentence is complete when the next one has begun, so that "Dr." or "3." ends none.
    """
    text = ""

    def watch(delta: Delta) -> bool:
        nonlocal text
        text = "" if delta.restart else text + delta.text
        complete = split_sentences(visible(text))[:-1]
        return sum(text_key(span.text) not in known for span in complete) >= limit

    return watch


def length_of(generation: Generation) -> int:
    """Its tokens, or its words and Chinese characters where it has none."""
    tokens = generation.tokens
    return len(_UNIT.findall(generation.text)) if tokens is None else len(tokens)


def first_piece(draft: Generation) -> Piece | None:
    """The first sentence of a whole answer; None when nothing was written."""
    spans = split_sentences(draft.text)
    if not spans:
        return None
    last = len(spans) == 1
    return Piece(
        cut(draft, spans[0].end),
        spans[0].start,
        last=last,
        truncated=last and draft.finish_reason == "length",
    )


async def next_piece(
    step: Scope,
    question: Question,
    messages: tuple[Message, ...],
    base: Generation,
    *,
    max_tokens: int,
) -> Piece | None:
    """The sentence that the model writes after `base`; None when the answer ends there.

    It ends when the model writes nothing more, says that it is done or knows nothing more, or only
    repeats itself.
    """
    handed = step.model().capabilities.prefill
    before = {text_key(span.text) for span in split_sentences(base.text)}
    left = max_tokens - length_of(base)
    if left < 1:
        return None
    written = said(
        await continue_text(
            step,
            question,
            messages,
            base.text,
            prompts=PROMPTS,
            max_tokens=left,
            # Handed its own text, a model that says a sentence again has begun to go in circles.
            watch=until(1, () if handed else before),
        )
    )
    spans = split_sentences(written.text)
    if handed:
        spans = spans[:1]
    fresh = next((span for span in spans if text_key(span.text) not in before), None)
    if fresh is None or _is_done(fresh.text) or declines(fresh.text):
        return None
    following = written.text[fresh.end :].strip()
    ended = not following and written.finish_reason != "watcher"
    truncated = ended and written.finish_reason == "length"
    glue = written.text[: fresh.start] if fresh is spans[0] else ""
    if not glue[:1].isspace():
        glue = _space(base.text, fresh.text) + glue
    body = _moved(cut(written, fresh.end), len(glue) - fresh.start)
    tokens = body.tokens and tuple(token for token in body.tokens if token.start >= 0)
    generation = body.model_copy(update={"text": glue + fresh.text, "tokens": tokens})
    # Asked for one sentence, a model stops after it whether or not the answer is complete.
    return Piece(generation, len(glue), last=truncated or (ended and handed), truncated=truncated)


def _moved(generation: Generation, by: int) -> Generation:
    if generation.tokens is None or not by:
        return generation
    tokens = tuple(
        token.model_copy(update={"start": token.start + by, "end": token.end + by})
        for token in generation.tokens
    )
    return generation.model_copy(update={"tokens": tokens})


def _space(before: str, after: str) -> str:
    return "" if not before or has_han(after[:1]) or has_han(before[-2:]) else " "


def _is_done(text: str) -> bool:
    words = {PROMPTS.fill(language, "done").casefold() for language in ("en", "zh")}
    return text.strip(_AROUND).casefold() in words
