"""What methods have in common when they write: prompts with passages, replies, continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.methods.base import Question
from pipelines.methods.replies.text import visible
from pipelines.models.base import Watcher
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.text import without_thinking
from pipelines.types import Generation, Language, Message, Passage, Token

__all__ = [
    "Continuation",
    "continue_text",
    "grounded_messages",
    "joined_to",
    "listed_passages",
    "part_of",
    "sample_continuations",
    "visible_generation",
    "write_answer",
]


def grounded_messages(
    prompts: Prompts, question: Question, passages: Sequence[Passage]
) -> tuple[Message, ...]:
    """A prompt with the keys `system`, `question` and `passage`, filled with passages in order."""
    language = question.language
    listed = listed_passages(prompts, language, passages)
    asked = prompts.fill(language, "question", question=question.text, passages=listed)
    return (
        Message(role="system", content=prompts.fill(language, "system")),
        Message(role="user", content=asked),
    )


def listed_passages(prompts: Prompts, language: Language, passages: Sequence[Passage]) -> str:
    """The passages, numbered from 1, in the words of the key `passage`.

    Where there is a key `untitled`, it words passages without a title.
    """
    titled = "untitled" not in prompts.keys(language)
    return "\n".join(
        prompts.fill(
            language,
            "passage" if titled or one.title else "untitled",
            rank=str(number),
            title=one.title,
            text=one.text,
        )
        for number, one in enumerate(passages, start=1)
    )


async def write_answer(step: Scope, messages: Sequence[Message], max_tokens: int) -> Generation:
    """The main model's reply to `messages` as people see it, with its token probabilities if any.

    Methods that ask the same share one reply: the first to ask answers for all.
    """
    can = step.model().capabilities
    request = step.request(messages, max_tokens=max_tokens, logprobs=can.logprobs)
    return visible_generation(await step.write(request))


def visible_generation(generation: Generation) -> Generation:
    """The generation without inline thinking and without a fence, emphasis or quotes around it.

    Tokens keep their values and move with their characters. Where the visible text is not one
    piece of the reply, no token fits it any more and none is kept.
    """
    text = visible(generation.text)
    if text == generation.text:
        return generation
    # What is thought comes first and may hold the same words.
    start = generation.text.rfind(text)
    if start < 0:
        return generation.model_copy(update={"text": text, "tokens": None})
    return part_of(generation, start, start + len(text))


def part_of(generation: Generation, start: int, end: int) -> Generation:
    """The characters [start, end) of a generation with the tokens that contribute to them."""
    tokens = generation.tokens
    if tokens is not None:
        tokens = tuple(
            token.model_copy(
                update={
                    "start": max(token.start, start) - start,
                    "end": min(token.end, end) - start,
                }
            )
            for token in tokens
            if token.start < end and start < token.end
        )
    return generation.model_copy(update={"text": generation.text[start:end], "tokens": tokens})


def _at(token: Token, start: int, end: int) -> Token:
    return token.model_copy(update={"start": start, "end": end})


@dataclass(frozen=True)
class Continuation:
    """What a model is asked so that it goes on after `prefix`, and how its reply is read.

    A backend that continues an assistant message is given the prefix as one (`prefilled`).
    Elsewhere the prompt `continue` asks for the rest.
    """

    messages: tuple[Message, ...]
    prefix: str
    prefilled: bool

    @classmethod
    def of(
        cls,
        step: Scope,
        question: Question,
        messages: Sequence[Message],
        prefix: str,
        prompts: Prompts,
    ) -> Continuation:
        """How the main model is asked to go on with its reply to `messages`."""
        if not prefix:
            return cls(tuple(messages), prefix, prefilled=False)
        if step.model().capabilities.prefill:
            handed = Message(role="assistant", content=prefix)
            return cls((*messages, handed), prefix, prefilled=True)
        asked = prompts.fill(
            question.language, "continue", question=messages[-1].content, prefix=prefix
        )
        last = Message(role="user", content=asked)
        return cls((*messages[:-1], last), prefix, prefilled=False)

    def added(self, reply: Generation) -> Generation:
        """What the reply adds to the prefix: neither thinking nor a repeated beginning."""
        if not self.prefix:
            return visible_generation(reply)
        if self.prefilled and without_thinking(reply.text) == reply.text:
            return reply
        said = visible_generation(reply)
        # White space alone is no wrapping: the space before the next word belongs to the text.
        return joined_to(self.prefix, reply if said.text == reply.text.strip() else said)


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

    `watch` sees the reply as it comes in and may end it.
    """
    asked = Continuation.of(step, question, messages, prefix, prompts)
    request = step.request(
        asked.messages, max_tokens=max_tokens, logprobs=step.model().capabilities.logprobs
    )
    return asked.added(await step.write(request, watch=watch))


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
    asked = Continuation.of(step, question, messages, prefix, prompts)
    request = step.request(
        asked.messages, max_tokens=max_tokens, n=count, temperature=1.0, sample=0
    )
    return [asked.added(reply) for reply in await step.model().generate(request)]


def joined_to(prefix: str, written: Generation) -> Generation:
    """`written` without a repeated `prefix`, and with the space that separates two words."""
    drop = len(prefix) if written.text.startswith(prefix) else 0
    rest = part_of(written, drop, len(written.text))
    needs_space = (
        bool(rest.text)
        and prefix[-1].isascii()
        and not prefix[-1].isspace()
        and rest.text[0].isascii()
        and rest.text[0].isalnum()
    )
    if not needs_space:
        return rest
    tokens = rest.tokens and tuple(_at(t, t.start + 1, t.end + 1) for t in rest.tokens)
    return rest.model_copy(update={"text": f" {rest.text}", "tokens": tokens})
