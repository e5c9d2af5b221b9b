"""Reads what servers of the OpenAI protocol answer: whole or in pieces, in the forms in use.

Some leave out what the protocol promises (`index`, `delta`, `finish_reason`), some count where they
should repeat, some send the text as a list of parts, some stream to those who asked for none.
What is no answer is an error.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from pipelines.base import Usage
from pipelines.models.dialects import RefusalError
from pipelines.models.entries import listed_entries
from pipelines.models.error_texts import is_error_text
from pipelines.models.growing import GrowingText
from pipelines.models.replies import ReplyPart, usage_of
from pipelines.remote import server_words

_DONE = re.compile(rb'[\["\s]*(?:done\b|\[done\])', re.I)
_BLANK = b" \t\r\n\xef\xbb\xbf"
# Not `splitlines`: what ends a line for it may stand in a text.
_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")


class End(Mapping[str, Any]):
    """The word that ends a stream: nothing was broken off."""

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


async def answers_in(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Mapping[str, Any], None]:
    """Yield the JSON objects of an answer: the data of server-sent events, or the whole body.

    A whole body, and a stream that says that it is over, yields an `End` last. Comments, names of
    events and empty data are passed over. Raises ValueError for what is no JSON object.
    """
    rest = b""
    data = _Event()
    events: bool | None = None
    async for piece in pieces:
        rest += piece
        if events is None and (begun := rest.lstrip(_BLANK)):
            events = begun[:1] not in b"{[<" + b'"'
            rest = begun
        if not events:
            continue
        *lines, rest = _LINE.split(rest)
        for line in lines:
            for answer in _event(line, data):
                yield answer
                if isinstance(answer, End):
                    return
    if events:
        for line in (rest.rstrip(b"\r"), b""):
            for answer in _event(line, data):
                yield answer
                if isinstance(answer, End):
                    return
        return
    for answer in _objects(rest):
        yield answer
    yield End()


class _Event(list[bytes]):
    """The lines of data of an event so far; `failed` says that its name is that of an error."""

    failed = False


def _event(line: bytes, data: _Event) -> Iterable[Mapping[str, Any]]:
    """Yield what a line of an event stream completes; `data` are the lines of the event so far.

    Some end no event with an empty line: a new line of data completes what is whole without it.
    """
    name, _, value = line.partition(b":")
    more = bool(line) and name.strip() == b"data"
    if line and not more:
        # A comment, the name or number of an event.
        if name.strip() == b"event":
            data.failed = b"error" in value.lower()
        return
    said = b"\n".join(data).strip()
    whole = not more
    if said and more:
        try:
            json.loads(said)
            whole = True
        except ValueError:
            whole = _DONE.match(said) is not None
    if whole:
        data.clear()
    if more:
        data.append(value.removeprefix(b" "))
    if not said or not whole:
        return
    if _DONE.match(said):
        yield End()
    elif said[:1] in b'{["':
        yield from _answers(json.loads(said))
    elif data.failed or is_error_text(said.decode("utf-8", "replace")):
        yield {"error": {"message": said.decode("utf-8", "replace")}}
    # Anything else ("null", "ping") says only that the connection is alive.


def _objects(body: bytes) -> Iterable[Mapping[str, Any]]:
    """Yield the objects of a whole body, or those of its lines."""
    try:
        yield from _answers(json.loads(body.lstrip(_BLANK)))
    except json.JSONDecodeError:
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) < 2:
            raise
        for line in lines:
            if not _DONE.match(line.strip()):
                yield from _answers(json.loads(line))


def _answers(value: object) -> Iterable[Mapping[str, Any]]:
    """Yield the answers in a value: itself, those of a list, or those that its text spells."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = json.loads(value)
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, Mapping):
            raise ValueError("An answer is an object.")
        yield _unwrapped(one)


def _unwrapped(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer inside what a gateway put around it, and a message alone as a choice."""
    if "choices" in answer:
        return answer
    inner = (one for one in answer.values() if isinstance(one, Mapping) and "choices" in one)
    if (found := next(inner, None)) is not None:
        return found
    message = answer.get("message")
    if isinstance(message, Mapping) and "content" in message:
        # It says itself whether more is to come.
        kind = "delta" if answer.get("done") is False else "message"
        ended = {name: answer[name] for name in _REASONS if answer.get(name)}
        return {**answer, "message": None, "choices": [{kind: message, **ended}]}
    return answer


# What went wrong, said in an answer with status 200.

_BY_WORD = (
    (re.compile(r"rate_?limit|too_?many|throttl|quota"), 429),
    (re.compile(r"auth|permission|api_?key"), 401),
    (re.compile(r"invalid|unsupported|bad_?request|not_?support|validation|param"), 400),
    (re.compile(r"overload|unavailable"), 503),
    (re.compile(r"time_?d?_?out"), 408),
)


_CODES = ("code", "error_code", "errorCode", "status_code", "Code")
_TELLS = ("error", "Error", "error_msg", "error_code", "base_resp", "Response")
"""Keys under which services say, in the place of an answer, that there is none."""


def _raise_error(answer: Mapping[str, Any]) -> None:
    """Raise RefusalError where an answer says that there is none."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else choices
    # Of the part that failed, or beside what only this service adds ("x_groq").
    parts = (answer, first, *answer.values())
    held = (part.get("error") for part in parts if isinstance(part, Mapping))
    error = next(filter(None, held), None)
    code = _code_in(error or answer)
    bare = answer.get("object") == "error" or (
        "choices" not in answer and any(answer.get(key) for key in ("detail", "msg", "message"))
    )
    told = not choices and any(answer.get(key) for key in _TELLS) and bool(server_words(answer))
    if not error and (not (bare or told) or str(code) in ("0", "200")):
        return
    body = error or answer
    word = str(body.get("type") or "") if isinstance(body, Mapping) else ""
    status = int(code) if str(code or "").isdigit() else 0
    if not 400 <= status < 600:
        said = f"{code or ''} {word}".casefold()
        said = said if error or bare else f"{said} {server_words(answer)}".casefold()
        status = next((number for pattern, number in _BY_WORD if pattern.search(said)), 500)
        if status == 500 and told and not error:
            # It names no kind: what it took for wrong is in its words.
            status = 400
    raise RefusalError(status, code, body)


def _code_in(body: object, depth: int = 0) -> Any:
    """Return the code that an error has, at whatever depth; None without one."""
    if not isinstance(body, Mapping) or depth > 3:
        return None
    own = next((body[name] for name in _CODES if body.get(name) is not None), None)
    if own is not None:
        return own
    inner = (_code_in(one, depth + 1) for one in body.values())
    return next((one for one in inner if one is not None), None)


# The choices of an answer.


class Texts(NamedTuple):
    """What a message says, what was only thought, and whether it is a refusal."""

    said: str = ""
    thought: str = ""
    refused: bool = False


_THOUGHT = re.compile(r"think|thought|reason|reflect", re.I)
_NO_THOUGHT = re.compile(r"token|signature|effort|count|_id\b|time|encrypted", re.I)
_TEXT_KEYS = (
    "text", "content", "value", "output_text", "parts", "thinking", "reasoning", "summary",
)  # fmt: skip
_REASONS = ("finish_reason", "finishReason", "finish_details", "done_reason", "stop_reason")


def texts_of(content: object, *, thought: bool = False) -> Texts:
    """Return the texts in the content of a message: a text, or parts of a text in any nesting.

    Parts whose type speaks of thinking or reasoning were only thought; pictures, sounds and calls
    are passed over. Raises ValueError for a content that is no text at all.
    """
    if content is None:
        return Texts()
    if isinstance(content, str):
        return Texts(thought=content) if thought else Texts(said=content)
    if isinstance(content, Mapping):
        kind = str(content.get("type") or "")
        thought = thought or _THOUGHT.search(kind) is not None
        if "refusal" in kind or content.get("refusal"):
            return Texts(refused=True)
        for key in _TEXT_KEYS:
            if content.get(key) is not None:
                aside = thought or _THOUGHT.search(key) is not None
                return texts_of(content[key], thought=aside)
        return Texts()
    if isinstance(content, list):
        parts = [texts_of(one, thought=thought) for one in content]
        return Texts(
            "".join(one.said for one in parts),
            "".join(one.thought for one in parts),
            any(one.refused for one in parts),
        )
    raise ValueError("The content of a message is a text.")


def thought_in(message: Mapping[str, Any]) -> str:
    """Return what a message holds in a field for thinking, such as `reasoning_content`.

    Of several fields the first that has a text counts: some servers say the same in two.
    """
    for key, value in message.items():
        if _THOUGHT.search(str(key)) and not _NO_THOUGHT.search(str(key)):
            try:
                found = texts_of(value, thought=True)
            except ValueError:
                continue
            if found.thought:
                return found.thought
    return ""


class AnswerReader:
    """Turns the answers to one request into parts of its `count` texts, numbered from 0."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._first: int | None = None
        self._last = 0
        self._repeated = False
        self._open = set[int]()
        """The numbers of the texts that have begun and not ended."""
        self._said = defaultdict[int, GrowingText](GrowingText)
        self._thought = defaultdict[int, GrowingText](GrowingText)
        self._over = False

    def parts(self, answer: Mapping[str, Any]) -> list[ReplyPart]:
        """Return what an answer adds; RefusalError for an error, ValueError for a tool's call."""
        if isinstance(answer, End):
            self._over = True
            return []
        _raise_error(answer)
        name = answer.get("id")
        parts: list[ReplyPart] = []
        choices = answer.get("choices")
        choices = [choices] if isinstance(choices, Mapping) else choices
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(choice, Mapping):
                raise ValueError("A choice is an object.")
            number = self._number(choice, position)
            part = self._part(choice, number)
            if part.content or part.thought:
                self._open.add(number)
            if part.finish_reason:
                self._open.discard(number)
            part = self._new(part) if number >= 0 else part
            parts.append(part._replace(id=name if isinstance(name, str) else ""))
        return parts

    def closing(self) -> list[ReplyPart]:
        """Return the ends of texts without a reason, in a stream that was ended properly."""
        if not self._over:
            return []
        return [self._new(ReplyPart(number, "", (), "stop")) for number in sorted(self._open)]

    def _new(self, part: ReplyPart) -> ReplyPart:
        """Return what is new in a part, which may hold all of its text so far."""
        last = bool(part.finish_reason)
        content, entries = self._said[part.number].add(part.content, part.entries, last=last)
        thought, _ = self._thought[part.number].add(part.thought, last=last)
        return part._replace(content=content, entries=entries, thought=thought)

    @property
    def is_broken_off(self) -> bool:
        """Whether a text has begun that nothing has ended."""
        return bool(self._open) and not self._over

    def _number(self, choice: Mapping[str, Any], position: int) -> int:
        """Return which text a choice belongs to; -1 for one that was not asked for."""
        given: Any = choice.get("index")
        index = int(given) if isinstance(given, int) or str(given).isdigit() else None
        if self._count > 1:
            return position if index is None else index
        if position:
            return -1
        if index is None or self._first is None:
            self._first = self._first if index is None else index
            self._last = self._last if index is None else index
            return 0
        if index == self._first:
            self._repeated = True
            return 0
        # One text whose pieces are counted.
        counts = not self._repeated and index == self._last + 1
        self._last = index if counts else self._last
        return 0 if counts else -1

    def _part(self, choice: Mapping[str, Any], number: int) -> ReplyPart:
        delta: Any = choice.get("delta")
        message: Any = choice.get("message") or choice.get("messages")
        message = message[-1] if isinstance(message, list) and message else message
        message = {"content": message} if isinstance(message, str) else message
        whole = not isinstance(delta, Mapping) and isinstance(message, Mapping)
        said: Mapping[str, Any] = message if whole else delta if isinstance(delta, Mapping) else {}
        reason = next((choice[name] for name in _REASONS if choice.get(name)), None)
        if said.get("tool_calls") or said.get("function_call"):
            raise ValueError("A tool is called instead of an answer.")
        if reason in ("tool_calls", "function_call"):
            raise ValueError("A tool is called instead of an answer.")
        contents = (said.get("content"), said.get("text"), said.get("parts"), choice.get("text"))
        texts = texts_of(next((one for one in contents if one is not None), None))
        content = texts.said
        if whole and number >= 0:
            # Some say all of it once more at the end.
            content = self._said[number].rest(content)
        thought = thought_in(said) or texts.thought
        lists = [choice.get("logprobs"), said.get("logprobs")]
        entries = next((found for one in lists if (found := listed_entries(one))), [])
        if not entries and isinstance(listed := said.get("content"), list):
            entries = [
                entry
                for one in listed
                if isinstance(one, Mapping) and not texts_of(one).thought
                for entry in listed_entries(one.get("logprobs"))
            ]
        if said.get("refusal") or texts.refused:
            reason = "content_filter"
        # Some spell out that there is no reason yet.
        reason = None if reason in ("", "null", "None") else reason
        return ReplyPart(number, content, entries, reason, thought)


def merged(parts: Sequence[ReplyPart]) -> list[ReplyPart]:
    """Return one part for each text, in order: of an answer, or of a stream nobody asked for."""
    made: dict[int, ReplyPart] = {}
    for part in parts:
        if part.number < 0:
            continue
        known = made.get(part.number)
        made[part.number] = (
            part
            if known is None
            else ReplyPart(
                part.number,
                known.content + part.content,
                [*known.entries, *part.entries],
                part.finish_reason or known.finish_reason,
                known.thought + part.thought,
                known.id or part.id,
            )
        )
    texts = [part._replace(number=at) for at, (_, part) in enumerate(sorted(made.items()))]
    return texts


def usage_in(answer: Mapping[str, Any]) -> Usage | None:
    """Return the tokens that an answer says were used; None where it does not say."""
    choices = answer.get("choices")
    within = choices if isinstance(choices, list) else ()
    # Some have it in the choice, or beside what only they add ("x_groq").
    held = (one.get("usage") for one in (answer, *within, *answer.values()) if _is_object(one))
    usage = next(filter(_is_object, held), None)
    if usage is None:
        return None
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    thought = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return usage_of(
        _first(usage, "prompt_tokens", "input_tokens"),
        _first(usage, "completion_tokens", "output_tokens"),
        usage.get("reasoning_tokens") if thought is None else thought,
    )


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _first(usage: Mapping[str, Any], *names: str) -> object:
    return next((usage[name] for name in names if usage.get(name) is not None), None)
