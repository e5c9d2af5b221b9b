"""What went into a step of an application and what came out of it, in any wrapping.

Tracers keep inputs and outputs as text, as JSON in a text, as the arguments of a function, as the
answer of a service, or as objects with a word for what they hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pipelines.engine.attached import attached_texts
from pipelines.engine.messages import (
    Utterance,
    documents_in,
    text_of_content,
    utterances,
)
from pipelines.engine.speakers import content_of, has_words, is_message
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.grids import value_in
from pipelines.evaluation.datasets.nested import in_small_letters
from pipelines.models.chunks import AnswerReader, End
from pipelines.models.dialects import RefusalError

LISTS = ("messages", "conversations", "conversation", "turns", "dialogue", "dialog", "chat")
"""Names under which a service is sent all messages; a `history` stands beside its question."""

_GIVEN = ("queryInput", "body", "postData", "messages", "contents", "inputs", "input", "question",
          "query", "user_query", "user_input", "user_message", "prompt", "prompts", "text",
          "instances", "kwargs", "args", "message", "content", "user", "human", "request",
          "value", "data", "raw", "payload")  # fmt: skip
_SAID = ("queryResult", "responseMessages", "body", "choices", "candidates", "generations",
         "outputs", "output", "answer", "final_answer", "response", "result", "completion",
         "generation", "reply", "replies", "text", "content", "message", "artifacts", "messages",
         "assistant", "generated_text", "combined_chunk_content", "completions", "sampled",
         "value", "data")  # fmt: skip
_DOCUMENTS = ("doc_references", "search_results", "web_search", "documents", "source_documents",
              "sources", "contexts", "context", "retrieved_documents", "retrieved_contexts",
              "results", "chunks", "matches", "hits")  # fmt: skip
_AROUND = ("inputs", "outputs", "input", "output", "kwargs", "result", "data")
_ALTERNATIVES = ("choices", "candidates", "generations", "replies", "predictions", "completions")
_CONTENTS = ("content", "contents", "output")
_CALLS = ("tool_calls", "function_call", "toolUse")
_DEEPEST = 6
_MESSAGES = re.compile(r"[\[{]+\s*[\"'](?:role|parts|content|messages?|type|choices)[\"']\s*:")
_ABOUT = re.compile(
    r"model|type|version|status|lang(?:uage)?|time(?:stamp)?|date|role|name|.*_?(?:id|key|url)",
    re.IGNORECASE,
)
"""Names of what is no question, though it be the only text."""

_SPOKEN = re.compile(r"(?m)^(system|user|assistant|human|ai|tool): ", re.IGNORECASE)


class BrokenError(ValueError):
    """A value was cut off while it was stored, so that nobody can read it."""


class TracedStep(NamedTuple):
    """What a model read and wrote, and the texts it had to go by.

    The last `answers` messages are answers to the same, for a model may be asked for several; None
    says that every answer counts. `in_turn` says that nobody told who speaks, so that the user was
    taken for the first and the assistant for the next.
    """

    id: str
    messages: list[Utterance]
    sources: tuple[str, ...] = ()
    model: str = ""
    trace: str = ""
    answers: int | None = 1
    in_turn: bool = False

    @property
    def has_answer(self) -> bool:
        """Whether a model said something in it; a call may fail, or only ask for a tool."""
        return any(one.speaker == "assistant" and one.text.strip() for one in self.messages)


def step_of(given: Any, said: Any, **known: Any) -> TracedStep:
    """Return what a step was given and what it said, with the documents among it; BrokenError for
    what was cut off.
    """
    read, wrote = read_given(given) or _asked_in(said), read_said(said)
    beside = (*documents_beside(given), *documents_beside(said), *told_by_tools(said))
    found = (*known.pop("sources", ()), *beside)
    several = isinstance(plain := plainly(said), Mapping) and any(map(plain.get, _ALTERNATIVES))
    answers = len(wrote) if several and wrote else 1
    return TracedStep(
        messages=[*read, *wrote], sources=tuple(dict.fromkeys(found)), answers=answers, **known
    )


def _asked_in(said: Any) -> list[Utterance]:
    """Return the messages before an answer that came with it: the history of a task (A2A)."""
    told = plainly(said)
    held = told.get("history") if isinstance(told, Mapping) else None
    return read_given(held) if isinstance(held, list) and any(map(is_message, held)) else []


def is_exchanged(value: Any) -> bool:
    """Return whether a value is what services are sent or answer with: messages, or choices."""
    if isinstance(value, list):
        return any(map(is_message, map(_opened, _flat(value)))) or streamed(value) is not None
    if not isinstance(value, Mapping):
        return False
    if is_message(value.get("message")) or any(
        isinstance(value.get(name), list) for name in (*LISTS, *_ALTERNATIVES, *_CONTENTS)
    ):
        return True
    # What a gateway put around it, or a service around its messages, under whatever name.
    return any(is_exchanged(one) for one in value.values() if isinstance(one, Mapping | list))


def plainly(value: Any) -> Any:
    """Return what JSON, or Python's way to write it, holds in a text; any other value as it is.

    Raises BrokenError where it was cut off.
    """
    if not isinstance(value, str):
        return in_small_letters(value)
    text = value.strip()
    if text[:1] == '"' == text[-1:]:
        # JSON of a text.
        try:
            return plainly(json.loads(text))
        except ValueError:
            return value
    found = value_in(text)
    if found is not None:
        return in_small_letters(found)
    if _MESSAGES.match(text):
        raise BrokenError
    return value


def read_given(value: Any, depth: int = 0) -> list[Utterance]:
    """Return the messages that a step was given; a text is what a user says."""
    value = plainly(value)
    if isinstance(value, str):
        return _spoken(value) or utterances(value)
    if isinstance(value, list):
        return [
            said
            for one in map(_opened, _flat(value))
            for said in (_spoken(one) if isinstance(one, str) else []) or utterances([one])
        ] or _first_read(value, depth)
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return []
    if is_message(value) or any(isinstance(value.get(name), list) for name in LISTS):
        if found := [one for name in LISTS for one in read_given(value.get(name), depth + 1)]:
            before = text_of_content(value.get("system"))
            return [*([Utterance(speaker="system", text=before)] if before else []), *found]
        return utterances(value)
    for name in _named(value, _GIVEN, "question"):
        if _says(value.get(name)) and (found := read_given(value[name], depth + 1)):
            return found
    if (inner := _wrapped(value)) is not None:
        return read_given(inner, depth + 1)
    texts = [
        one
        for name, one in value.items()
        if isinstance(one, str) and one.strip() and not _ABOUT.fullmatch(str(name))
    ]
    # The one thing that a function was given is what it was asked.
    return utterances(value) or (utterances(texts[0]) if len(texts) == 1 else [])


def _wrapped(value: Mapping[str, Any]) -> Any:
    """Return the request or the answer under a name that is not known; None without one."""
    held = [plainly(one) for one in value.values()]
    if len(held) == 1 and isinstance(held[0], list) and objects_in(held[0]):
        return held[0]
    held = [one for one in held if isinstance(one, Mapping | list)]
    return next(filter(is_exchanged, held), None)


def _first_read(values: list[Any], depth: int) -> list[Utterance]:
    """Return what the first object of a list gives to read: a batch of one."""
    found = (read_given(one, depth + 1) for one in values if isinstance(one, Mapping))
    return next(filter(None, found), []) if depth <= _DEEPEST else []


def read_said(value: Any, depth: int = 0) -> list[Utterance]:
    """Return what a model said, each of several answers by itself; nothing for calls of tools."""
    value = plainly(value)
    if isinstance(value, str) and (events := _events(value)):
        value = events
    if isinstance(value, str) and (spoken := _spoken(value)):
        return [one for one in spoken if one.speaker == "assistant"]
    if isinstance(value, list):
        if (whole := streamed(value)) is not None:
            return [Utterance(speaker="assistant", text=whole)] if whole.strip() else []
        value = [_opened(one) for one in _flat(value)]
        if any(map(is_message, value)):
            return [one for one in utterances(value) if one.speaker == "assistant"]
        if any(isinstance(one, Mapping) for one in value):
            return [said for one in value for said in read_said(one, depth + 1)]
        if all(isinstance(one, str) for one in value):
            # Pieces of one text as it was written, or texts of their own.
            pieces = any(one[:1].isspace() or one[-1:].isspace() for one in value)
            texts = ["".join(value)] if pieces else value
            return [Utterance(speaker="assistant", text=one) for one in texts if one.strip()]
    elif isinstance(value, Mapping) and depth <= _DEEPEST:
        value = _opened(value)
        if is_message(value):
            return [one for one in utterances([value]) if one.speaker == "assistant"]
        if any(value.get(name) for name in _CALLS) and not value.get("content"):
            return []
        if _failed(value):
            return []
        for name in _named(value, _SAID, "text", "answers"):
            if _says(value.get(name)):
                found = read_said(value[name], depth + 1)
                # Of a whole conversation what was said last.
                return found[-1:] if name in LISTS else found
        if (inner := _wrapped(value)) is not None:
            return read_said(inner, depth + 1)
    if isinstance(value, Mapping) and (not value or any(map(_holds_objects, value.values()))):
        # An answer of a service in a form that is not known: the one text that it says.
        said = {one.strip() for one in _texts_said(value)}
        return [Utterance(speaker="assistant", text=one) for one in said] if len(said) == 1 else []
    if isinstance(value, Mapping) and (
        not _OF_TRAFFIC.isdisjoint(value) or all(isinstance(one, bool) for one in value.values())
    ):
        return []
    text = text_of_content(value)
    return [Utterance(speaker="assistant", text=text)] if text.strip() else []


def _holds_objects(value: Any) -> bool:
    return isinstance(value, Mapping) or bool(objects_in(value))


_OF_TRAFFIC = frozenset({"headers", "status_code", "uuid", "event", "properties"})
"""Names in what a program tells of a request or an event, and not in what a model says."""


def _texts_said(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts of several words in any depth of an answer, under names of what is said."""
    if isinstance(value, Mapping):
        for inner, held in value.items():
            yield from _texts_said(held, str(inner))
    elif isinstance(value, list):
        for one in value:
            yield from _texts_said(one, name)
    elif isinstance(value, str) and name in _SAID and has_words(value):
        yield value


def _failed(said: Mapping[str, Any]) -> bool:
    """Return whether a service answered that it could not answer."""
    if any(map(said.get, _ALTERNATIVES)):
        return False
    told = said.get("error") or said.get("error_code") or said.keys() == {"detail"}
    return bool(told) or ("code" in said and isinstance(said.get("message"), str))


def _events(text: str) -> list[Any]:
    """Return what the events of a stream hold that was stored as it came; [] for other texts."""
    if not _SERVER_SENT.match(text):
        return []
    lines = (line[5:].strip() for line in text.splitlines() if line.startswith("data:"))
    found: list[Any] = []
    for line in lines:
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


_SERVER_SENT = re.compile(r"\s*(?:event: ?\w|data: ?[\[{])")


def streamed(pieces: list[Any]) -> str | None:
    """Return the text of the chunks of a stream; "" where it calls a tool or broke off with an
    error, None for a list of anything else.
    """
    told = objects_in(pieces)
    if len(told) == len(pieces) > 1 and all(map(_is_piece, told)):
        return "".join(text_of_content(_piece(one)) for one in told)
    whole = (one["message"] for one in told if isinstance(one.get("message"), Mapping))
    if any(text_of_content(content_of(one)) for one in whole):
        # Whole answers, whatever else stands beside them.
        return None
    if deltas := [one["delta"] for one in told if isinstance(one.get("delta"), Mapping)]:
        # Events of Anthropic and Cohere.
        return "".join(map(piece_in, deltas))
    if not any("delta" in held for one in told for held in objects_in(one.get("choices"))):
        return None
    reader = AnswerReader(1)
    try:
        parts = [part for one in pieces for part in reader.parts(one)]
    except (RefusalError, ValueError, AttributeError):
        return ""
    return "".join(part.content for part in (*parts, *reader.parts(End()), *reader.closing()))


def piece_in(held: Mapping[str, Any]) -> str:
    """Return the text of a piece of a stream, in whatever objects it lies."""
    inner: Any = held
    while isinstance(inner, Mapping):
        inner = first(inner, _PIECES)
    if isinstance(inner, list):
        return "".join(map(piece_in, objects_in(inner)))
    return inner if isinstance(inner, str) else ""


_PIECES = ("delta", "answer", "text", "content", "token", "message", "value", "result")


def _is_piece(one: Mapping[str, Any]) -> bool:
    """Return whether an object is a piece of a stream of Ollama, Qianfan or Gemini."""
    ended = first(one, ("done", "is_end"))
    return isinstance(ended, bool) or bool(objects_in(one.get("candidates")))


def _piece(one: Mapping[str, Any]) -> Any:
    candidates = objects_in(one.get("candidates"))
    said = first(one, ("response", "message", "result"))
    return candidates[0].get("content") if candidates else said


def told_by_tools(value: Any) -> list[str]:
    """Return what tools said in a conversation that came out of a step whole, since its last
    question.
    """
    value = plainly(value)
    if isinstance(value, Mapping):
        value = plainly(first(value, (*LISTS, "output")))
    if not isinstance(value, list) or not any(map(is_message, value)):
        return []
    said = utterances(value)
    asked = [at for at, one in enumerate(said) if one.speaker == "user"]
    since = said[asked[-1] if asked else 0 :]
    return [one.text for one in since if one.speaker == "tool" and one.text.strip()]


def _named(value: Mapping[str, Any], names: Iterable[str], *parts: str) -> list[str]:
    """Return the keys by these names, and then those that columns with such a part may have."""
    return [*(name for name in names if name in value), *(k for k in value if part_of(k) in parts)]


def _spoken(text: str) -> list[Utterance]:
    """Return the messages of a text that names who speaks: "user: Where?"."""
    parts = _SPOKEN.split(text)
    if len(parts) < 2 or parts[0].strip():
        return []
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return utterances([{"role": role, "content": said.strip()} for role, said in pairs])


def _says(value: Any) -> bool:
    return isinstance(value, str | list | Mapping) and bool(value)


def _flat(values: Iterable[Any]) -> list[Any]:
    """Return the entries of a list, and those of the lists in it: batches of one."""
    return [one for each in values for one in (_flat(each) if isinstance(each, list) else [each])]


def _opened(one: Any) -> Any:
    """Return the message in an object of a list: {"message": {...}}, {"message.role": ...}."""
    if not isinstance(one, Mapping) or (
        is_message(one) and not isinstance(one.get("message"), Mapping)
    ):
        return one
    for name in ("message", "content"):
        if isinstance(inner := one.get(name), Mapping) and ("role" in inner or "kwargs" in inner):
            return _opened(inner)
    if (
        isinstance(one.get("kwargs"), Mapping)
        and isinstance(named := one.get("id"), list)
        and named
    ):
        # LangChain's own form, which names the class of a message.
        return {"role": str(named[-1]), **one["kwargs"]}
    if any(str(name).startswith("message.") for name in one):
        return {str(name).removeprefix("message."): held for name, held in one.items()}
    return one


def documents_beside(value: Any) -> list[str]:
    """Return the documents beside a question or an answer."""
    whole = value = plainly(value)
    for _ in range(_DEEPEST):
        if not isinstance(value, Mapping):
            break
        names = _named(value, _DOCUMENTS, "passages")
        if (held := first(value, names)) is not None:
            # An object without a text is what a program keeps for itself.
            told = [one for one in documents_in(plainly(held)) if not one.startswith("{")]
            return told or attached_texts(whole)
        value = plainly(first(value, _AROUND))
    return attached_texts(whole)


def found_in(value: Any) -> list[str]:
    """Return the texts that a search or a tool gave back."""
    value = plainly(value)
    for _ in range(_DEEPEST):
        if not isinstance(value, Mapping):
            break
        names = (*_named(value, _DOCUMENTS, "passages"), "outputs", "output", "result")
        inner = first(value, names)
        if inner is None:
            break
        value = plainly(inner)
    return (attached_texts(value) if isinstance(value, Mapping) else []) or documents_in(value)


def first(held: Any, names: Iterable[str]) -> Any:
    """Return the first of the named values that is there and says something; None without one."""
    if not isinstance(held, Mapping):
        return None
    return next((held[name] for name in names if held.get(name) not in (None, "")), None)


def objects_in(value: Any) -> list[Any]:
    """Return the objects of a list; [] for anything else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
