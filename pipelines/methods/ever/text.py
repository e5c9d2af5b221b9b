"""Text that grows by one sentence at a time: its beginning, the next sentence, and its end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.replies.parsing import declines, visible
from pipelines.methods.writing import Continuation, appended, part_of, units_of, unwrapped, write
from pipelines.models.base import Delta, Watcher
from pipelines.run.scope import Scope
from pipelines.text import has_han, split_sentences, text_key
from pipelines.types import Generation, Message

__all__ = ["Piece", "cut", "first_piece", "next_piece", "until"]

_AROUND = " \t\n.,;:!?\"'`*。，；！？“”"


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


def cut(generation: Generation, end: int) -> Generation:
    """The first `end` characters with the tokens that lie within them."""
    part = part_of(generation, 0, end)
    whole = sum(token.end <= end for token in generation.tokens or ())
    return part.model_copy(update={"tokens": part.tokens and part.tokens[:whole]})


def first_piece(draft: Generation) -> Piece | None:
    """The first sentence of a whole answer; None when nothing was written."""
    spans = split_sentences(draft.text)
    if not spans:
        return None
    last = len(spans) == 1
    truncated = last and draft.finish_reason == "length"
    return Piece(cut(draft, spans[0].end), spans[0].start, last, truncated)


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
    repeats itself; and where `max_tokens` are written.
    """
    left = max_tokens - len(units_of(base))
    if left < 1:
        return None
    before = {text_key(span.text) for span in split_sentences(base.text)}
    handed = step.model().capabilities.prefill
    asked = Continuation.of(step, question, messages, base.text, PROMPTS)
    # Handed its own text, a model that says a sentence again has begun to go in circles.
    watch = until(1, () if handed else before)
    written = unwrapped(asked.added(await write(step, asked.messages, left, watch)))
    spans = split_sentences(written.text)
    if handed:
        spans = spans[:1]
    fresh = next((span for span in spans if text_key(span.text) not in before), None)
    if fresh is None or _is_done(fresh.text) or declines(fresh.text):
        return None
    ended = not written.text[fresh.end :].strip() and written.finish_reason != "watcher"
    truncated = ended and written.finish_reason == "length"
    body = cut(written, fresh.end)
    if fresh is not spans[0]:
        body = part_of(body, fresh.start, fresh.end)
    space = "" if body.text[:1].isspace() else _space(base.text, fresh.text)
    generation = appended(Generation(text=space), body)
    # Asked for one sentence, a model stops after it whether or not the answer is complete.
    last = truncated or (ended and handed)
    return Piece(generation, len(generation.text) - len(fresh.text), last, truncated)


def _space(before: str, after: str) -> str:
    return "" if not before or has_han(after[:1]) or has_han(before[-2:]) else " "


def _is_done(text: str) -> bool:
    words = {PROMPTS.fill(language, "done").casefold() for language in ("en", "zh")}
    return text.strip(_AROUND).casefold() in words
