"""Letting a model go on from a given beginning, whatever way its backend offers."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.base import Question
from pipelines.models.base import Watcher
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.types import Generation, Message

__all__ = ["continue_text", "joined_to", "sample_continuations"]


async def continue_text(
    step: Scope,
    question: Question,
    messages: Sequence[Message],
    prefix: str,
    *,
    prompts: Prompts,
    max_tokens: int,
    watch: Watcher | None = None,
) -> Generation:
    """What the model writes after `prefix` as its reply to `messages`; the prefix is not repeated.

    A backend that continues an assistant message is handed the prefix as one. Elsewhere the prompt
    `continue` asks for the rest, a repeated beginning is cut off and a missing space put in.
    """
    request = step.request(
        _going_on(step, question, messages, prefix, prompts),
        max_tokens=max_tokens,
        logprobs=step.model().capabilities.logprobs,
    )
    written = await step.write(request, watch=watch)
    return written if _is_handed(step, prefix) else joined_to(prefix, written)


async def sample_continuations(
    step: Scope,
    question: Question,
    messages: Sequence[Message],
    prefix: str,
    *,
    prompts: Prompts,
    max_tokens: int,
    count: int,
) -> list[Generation]:
    """`count` independent draws at temperature 1 of what `continue_text` would write."""
    request = step.request(
        _going_on(step, question, messages, prefix, prompts),
        max_tokens=max_tokens,
        n=count,
        temperature=1.0,
        sample=0,
    )
    drawn = await step.model().generate(request)
    if _is_handed(step, prefix):
        return list(drawn)
    return [joined_to(prefix, sample) for sample in drawn]


def _is_handed(step: Scope, prefix: str) -> bool:
    return not prefix or step.model().capabilities.prefill


def _going_on(
    step: Scope,
    question: Question,
    messages: Sequence[Message],
    prefix: str,
    prompts: Prompts,
) -> tuple[Message, ...]:
    if not prefix:
        return tuple(messages)
    if step.model().capabilities.prefill:
        return (*messages, Message(role="assistant", content=prefix))
    asked = prompts.fill(
        question.language, "continue", question=messages[-1].content, prefix=prefix
    )
    return (*messages[:-1], Message(role="user", content=asked))


def joined_to(prefix: str, written: Generation) -> Generation:
    """`written` without a repeated prefix and with the space that keeps two words apart."""
    drop = len(prefix) if written.text.startswith(prefix) else 0
    text = written.text[drop:]
    needs_space = (
        bool(text)
        and prefix[-1].isascii()
        and not prefix[-1].isspace()
        and text[0].isascii()
        and text[0].isalnum()
    )
    shift = int(needs_space) - drop
    tokens = written.tokens
    if tokens is not None:
        tokens = tuple(
            token.model_copy(update={"start": token.start + shift, "end": token.end + shift})
            for token in tokens
            if token.start >= drop
        )
    return written.model_copy(update={"text": " " * needs_space + text, "tokens": tokens})
