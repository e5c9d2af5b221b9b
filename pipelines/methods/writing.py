"""What methods have in common: drafts, their continuations, searches, lists of short texts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, TypeVar

from pipelines.base import Generation, Message, Passage, Token, calibration
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.base import Demonstrations, Question
from pipelines.methods.replies.lists import introduces
from pipelines.methods.replies.parsing import visible
from pipelines.models.base import AdaptedStep, Watcher
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.text import split_sentences, text_key, without_thinking
from pipelines.text.languages import HAN, has_han

# One unit per Chinese character or run of other visible characters, where there are no tokens.
_UNIT = re.compile(rf"[{HAN}]|[^\s{HAN}]+")


def grounded_messages(
    prompts: Prompts, question: Question, passages: Sequence[Passage]
) -> tuple[Message, ...]:
    """Return a prompt with the keys `system`, `question` and `passage`, filled with passages
    in order.
    """
    listed = prompts.listed(question.language, passages)
    return prompts.turns(
        question.language, "system", "question", question=question.text, passages=listed
    )


def demonstrates(scope: Scope, setting: Demonstrations, step: str = "", role: str = "main") -> bool:
    """Return whether a model is shown demonstrations under this setting, for a kind of `step`."""
    return setting == "on" or (setting == "auto" and needs_help(scope, step, role))


def needs_help(scope: Scope, step: str, role: str = "main") -> bool:
    """Return whether the model of `role` is helped with this `step`, in the run's language.

    Where that was measured (`assets/calibration/habits.json`), the measurement says so. Else weak
    models are helped.
    """
    model = scope.model(role)
    measured = calibration("habits").get(model.name, {}).get(step, {}).get(scope.language)
    return model.capabilities.weak if measured is None else bool(measured["helped"])


def adapts(scope: Scope, setting: Demonstrations, step: AdaptedStep, role: str = "main") -> bool:
    """Return whether a model is asked for a `step` with its adapter, where it has one that
    is better.

    docs/measurements.md says which steps these are. With "off" it is left as it is.
    """
    able = step in scope.model(role).capabilities.adapted
    return able and demonstrates(scope, setting, step, role)


# --- Asking ---------------------------------------------------------------------------------------


async def write(
    step: Scope,
    messages: Sequence[Message],
    max_tokens: int,
    watch: Watcher | None = None,
    sample: int | None = None,
) -> Generation:
    """Return a text of the main model as it was written, with token probabilities where it
    gives them.
    """
    logprobs = step.model().capabilities.logprobs
    request = step.request(messages, max_tokens=max_tokens, logprobs=logprobs, sample=sample)
    return await step.write(request, watch=watch)


async def write_draft(
    step: Scope,
    messages: Sequence[Message],
    max_tokens: int,
    watch: Watcher | None = None,
    sample: int | None = None,
) -> Generation:
    """Return `write`, without what only surrounds the text."""
    return answer_of(await write(step, messages, max_tokens, watch, sample), messages)


async def first_draft(
    step: Scope, messages: Sequence[Message], max_tokens: int, watch: Watcher | None = None
) -> Generation:
    """Return `write_draft` for a method's first text, without which it has nothing; see
    `not_empty`.

    Where the answer is given, it is that, and nothing is written; it has no token probabilities.
    """
    if step.given is not None:
        return Generation(text=step.given.text)
    return await not_empty(
        step, lambda sample: write_draft(step, messages, max_tokens, watch, sample)
    )


async def not_empty(
    step: Scope, write: Callable[[int | None], Awaitable[Generation]]
) -> Generation:
    """Return what `write` gives for a sample; where that is empty, it is asked once more.

    Raises InvalidReplyError where it is empty again, RefusedRequestError where it was filtered.
    """
    generation = await write(None)
    if not generation.text.strip():
        # As another sample it is asked for again instead of found in the cache.
        generation = await write(1)
    if not generation.text.strip():
        filtered = generation.finish_reason == "filter"
        kind = "filtered_answer" if filtered else "empty_answer"
        raise failure(f"asking.{kind}", name=step.model().name)
    return generation


async def ask(
    step: Scope,
    messages: Sequence[Message],
    *,
    role: str = "main",
    complete: bool = False,
    drawn: bool = False,
    **options: Any,
) -> str:
    """Return what the model of `role` replies, as people see it; `options` are those of the
    request.

    "" for what a content filter left of a reply; where it has to be `complete`, also for one that
    was cut at the token limit; where it has to be `drawn`, for one that the service gave before.
    """
    reply = await _asked(step, messages, role, options)
    return "" if (complete and reply.is_cut) or (drawn and reply.repeated) else reply.text


async def _asked(
    step: Scope, messages: Sequence[Message], role: str, options: dict[str, Any]
) -> Generation:
    """Return the reply as people see it, empty where it was filtered."""
    (reply,) = await step.model(role).generate(step.request(messages, **options))
    text = "" if reply.finish_reason == "filter" else visible(reply.text)
    return reply.model_copy(update={"text": text, "tokens": None})


async def ask_lines(
    step: Scope, messages: Sequence[Message], *, role: str = "main", **options: Any
) -> list[str]:
    """Return the lines of a reply, as people see them; without one that was cut at the
    token limit.
    """
    reply = await _asked(step, messages, role, options)
    lines = reply.text.splitlines()
    return lines[:-1] if reply.is_cut else lines


def list_schema(
    name: str, *, exactly: int | None = None, pattern: str | None = None
) -> dict[str, Any]:
    """Return the schema of a JSON object with nothing but a list of texts under `name`.

    `exactly` and `pattern` are those of `ask_list`.
    """
    item = {"type": "string"} | ({} if pattern is None else {"pattern": pattern})
    count = {} if exactly is None else {"minItems": exactly, "maxItems": exactly}
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": item, **count}},
        "required": [name],
        "additionalProperties": False,
    }


async def ask_list(
    step: Scope,
    messages: Sequence[Message],
    name: str,
    *,
    exactly: int | None = None,
    pattern: str | None = None,
    **options: Any,
) -> str:
    """Return a reply that lists texts, as JSON under `name` where the backend has
    structured output.

    Such a list has `exactly` so many items where that is given, and each of them has the form
    `pattern`, a regular expression from ^ to $. A last line that was cut is left out.
    """
    schema = list_schema(name, exactly=exactly, pattern=pattern)
    options["json_schema"] = schema if step.model().capabilities.structured_output else None
    reply = await _asked(step, messages, options.pop("role", "main"), options)
    if reply.is_cut and not reply.text.startswith(("{", "[", "```")):
        # The last item was cut. Of JSON, what reads the list leaves it out.
        return reply.text.rpartition("\n")[0]
    return reply.text


class _Draw(Protocol):
    @property
    def repeated(self) -> bool: ...


_Drawn = TypeVar("_Drawn", bound=_Draw)


def independent(draws: Iterable[_Drawn]) -> list[_Drawn]:
    """Return the draws that say something new: none that a service gave before, and none at all
    where only one is left of several, for nothing can be compared with it.
    """
    listed = list(draws)
    new = [one for one in listed if not one.repeated]
    return [] if len(new) < len(listed) and len(new) < 2 else new


# --- Passages -------------------------------------------------------------------------------------


async def found_for(
    step: Scope, query: str, k: int, *, dense: bool = False
) -> list[Passage] | None:
    """Return what a search finds; None where it fails, which is recorded."""
    try:
        return await step.search(query, k, dense=dense)
    except VeriscopeError:
        return None


def distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return each passage once, by id and by its words, where it stood first."""
    found: dict[str, Passage] = {}
    seen: set[str] = set()
    for passage in passages:
        key = text_key(passage.text)
        if passage.id not in found and key not in seen:
            found[passage.id] = passage
            seen.add(key)
    return tuple(found.values())


# --- Texts with their tokens ----------------------------------------------------------------------


def visible_generation(generation: Generation) -> Generation:
    """Return the generation without inline thinking and without a fence, emphasis or quotes
    around it.

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


def answer_of(generation: Generation, messages: Sequence[Message]) -> Generation:
    """Return `visible_generation`, without the question where the reply begins by repeating it."""
    seen = visible_generation(generation)
    asked = messages[-1].text.strip()
    rest = seen.text.removeprefix(asked).lstrip()
    if not asked.endswith(("?", "？")) or not rest or not seen.text.startswith(asked):
        return seen
    return part_of(seen, len(seen.text) - len(rest), len(seen.text))


def unwrapped(generation: Generation) -> Generation:
    """Return `visible_generation`, but white space alone is no wrapping: it may separate
    two words.
    """
    seen = visible_generation(generation)
    return generation if seen.text == generation.text.strip() else seen


def part_of(generation: Generation, start: int, end: int) -> Generation:
    """Return the characters [start, end) of a generation with the tokens that contribute
    to them.
    """
    tokens = generation.tokens
    if tokens is not None:
        tokens = tuple(
            _at(token, max(token.start, start) - start, min(token.end, end) - start)
            for token in tokens
            if token.start < end and start < token.end
        )
    return generation.model_copy(update={"text": generation.text[start:end], "tokens": tokens})


def cut(generation: Generation, end: int) -> Generation:
    """Return the first `end` characters with the tokens that lie within them."""
    part = part_of(generation, 0, end)
    whole = sum(token.end <= end for token in generation.tokens or ())
    return part.model_copy(update={"tokens": part.tokens and part.tokens[:whole]})


def appended(head: Generation, tail: Generation) -> Generation:
    """Return both texts as one; where only one has tokens, the other goes without."""
    end, tokens = len(head.text), head.tokens
    if tail.tokens is not None:
        moved = (_at(token, token.start + end, token.end + end) for token in tail.tokens)
        tokens = (*(tokens or ()), *moved)
    return tail.model_copy(update={"text": head.text + tail.text, "tokens": tokens})


def units_of(generation: Generation) -> tuple[Token, ...]:
    """Return the generation's tokens, or its words without any probability where it has none."""
    if generation.tokens is not None:
        return generation.tokens
    return tuple(
        Token(text=match.group(), start=match.start(), end=match.end())
        for match in _UNIT.finditer(generation.text)
    )


def _at(token: Token, start: int, end: int) -> Token:
    return token.model_copy(update={"start": start, "end": end})


# --- Going on -------------------------------------------------------------------------------------


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
        """Return how the main model is asked to continue its reply to `messages`."""
        if not prefix:
            return cls(tuple(messages), prefix, prefilled=False)
        if step.model().capabilities.prefill:
            handed = Message(role="assistant", content=prefix)
            return cls((*messages, handed), prefix, prefilled=True)
        asked = prompts.turns(
            question.language, "continue", question=messages[-1].text, prefix=prefix
        )
        return cls((*messages[:-1], *asked), prefix, prefilled=False)

    def added(self, reply: Generation) -> Generation:
        """Return what the reply adds to the prefix: neither thinking nor a repeated beginning."""
        if not self.prefix:
            return answer_of(reply, self.messages)
        if self.prefilled and without_thinking(reply.text) == reply.text:
            # Chinese words stand side by side.
            gap = len(reply.text) - len(reply.text.lstrip()) if has_han(self.prefix[-1]) else 0
            return part_of(reply, gap, len(reply.text)) if gap else reply
        return joined_to(self.prefix, unwrapped(reply))


def joined_to(prefix: str, written: Generation) -> Generation:
    """Return what `written` adds to `prefix`, with the space that separates two words.

    A model without prefill often announces its text, repeats the end of what it goes on from, or
    starts the text anew: what stands there already is left out. Nothing is left of a new beginning
    that does not come to where the prefix ends.
    """
    text = written.text
    start = _announced(prefix, text)
    drop = start + _repeated(prefix, text[start:])
    if drop > start:
        marks = _MARKS_AT_END.search(prefix)
        opened = _MARKS_AT_START.match(text, start)
        closing = opened[0][::-1].translate(_CLOSING) if opened else ""
        for one in (closing, marks[0] if marks else ""):
            drop += len(one) if text.startswith(one, drop) else 0
    if (drop and prefix[-1:].isspace()) or has_han(prefix[-1:]):
        drop += len(text[drop:]) - len(text[drop:].lstrip())
    rest = part_of(written, drop, len(text))
    needs_space = (
        bool(rest.text)
        and prefix[-1].isascii()
        and not prefix[-1].isspace()
        and rest.text[0].isascii()
        and rest.text[0].isalnum()
    )
    return appended(Generation(text=" "), rest) if needs_space else rest


_HEAD = re.compile(r"[^:：!！\n]{1,120}[:：!！][*_]*\s*(?=\S)")
_MARKS_AT_START = re.compile(r"[^\w\s]+(?=\w)")
_CLOSING = str.maketrans("([{“‘「『（【", ")]}”’」』）】")


def _announced(prefix: str, text: str) -> int:
    """Return how many characters of `text` announce what goes on from an unfinished sentence.

    Such words are an introduction, or the whole unfinished sentence follows them once more. They
    end with a colon or an exclamation mark, and the text begins on another line or with a capital,
    which Chinese has not.
    """
    if not prefix.strip() or _is_complete(prefix):
        return 0
    begun, start = _words(split_sentences(prefix)[-1].text), 0
    while (head := _HEAD.match(text, start)) is not None:
        apart = "\n" in head[0] or text[head.end()].isupper()
        anew = len(begun) > 1 and _words(text[head.end() :])[: len(begun)] == begun
        announced = anew or introduces(head[0].strip("*_ \n"))
        if not announced or not (apart or (anew and has_han(prefix))):
            break
        start = head.end()
    return start


def _is_complete(prefix: str) -> bool:
    return prefix.rstrip().endswith((".", "!", "?", "。", "！", "？"))


_WRITTEN = re.compile(rf"[{HAN}]|[^\W{HAN}]+")


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WRITTEN.findall(text)]


_MARKS_AT_END = re.compile(r"[^\w\s]+(?=\s*\Z)")
_ANEW, _ANEW_ZH = 3, 6
"""Words or characters alike at the beginning of two texts that make the one a new start of the
other."""


def _repeated(prefix: str, text: str) -> int:
    """Return how many characters of `text` say once more what `prefix` says already.

    Words are compared without case and punctuation. After a complete sentence a repetition
    is one of that whole sentence: the next one may well begin with the name it ended with.
    """
    before = _words(prefix)
    after = [(found[0].casefold(), found.end()) for found in _WRITTEN.finditer(text)]
    words = [word for word, _ in after]
    complete = _is_complete(prefix)
    last = split_sentences(prefix)[-1].text if complete and prefix.strip() else ""
    least = len(_WRITTEN.findall(last)) if complete else 1
    for count in range(min(len(before), len(words)), least - 1, -1):
        if before[-count:] == words[:count] and (count > 1 or not has_han(words[0])):
            return after[count - 1][1]
    pairs = zip(before, words, strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if complete or alike < (_ANEW_ZH if has_han(prefix) else _ANEW):
        return 0
    end = before[-_ANEW:]
    places = (at for at in range(len(words) - _ANEW, -1, -1) if words[at : at + _ANEW] == end)
    found = next(places, None)
    return len(text) if found is None else after[found + _ANEW - 1][1]
