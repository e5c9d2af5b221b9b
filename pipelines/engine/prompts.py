"""Which methods use a prompt, and the values that a recorded run filled it with.

The values are read back from the requests of the run, by the shape of the prompt. So runs need not
record the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import Template

from pipelines.engine.prompt_shape import Shape
from pipelines.errors import failure
from pipelines.methods.registry import METHODS, get_method
from pipelines.models.base import ChoiceRequest, GenerationRequest, Model
from pipelines.prompts import Prompts, Wording, checked_text, load_prompts, worded
from pipelines.run.events import ModelCalled
from pipelines.run.trace import Trace
from pipelines.types import Choice, Generation, Message

MOST_TEXT = 40_000
"""Characters of a message that is read back; a longer one is passed over."""

CALIBRATED = {"drad": "direct", "haarag": "slm", "slm": "slm"}
"""Methods with numbers that were calibrated with the shipped texts of a prompt file: which file."""


def files_of(method: str) -> list[Prompts]:
    """The prompt files of a method, in its order; raises InvalidInputError for no method."""
    return list(dict.fromkeys(get_method(method).prompts))


def users_of(file: str) -> list[str]:
    """The methods that use a prompt file, in the order in which methods are listed."""
    return [
        name for name, method in METHODS.items() if file in {one.name for one in method.prompts}
    ]


def uncalibrated(methods: Iterable[str], wording: Wording) -> list[str]:
    """Those of `methods` with calibrated numbers that do not apply to this wording."""
    return [name for name in methods if CALIBRATED.get(name) in wording]


@dataclass(frozen=True)
class Filled:
    """A prompt as a recorded run filled it.

    It stands in message `at` of the request of `call`, as `text`; `values` are those of its
    placeholders.
    """

    call: ModelCalled
    at: int
    text: str
    values: Mapping[str, str]

    @property
    def message(self) -> Message:
        """The message that it stands in."""
        return _messages(self.call)[self.at]


def filled_in(trace: Trace, file: str, language: str, key: str) -> Filled | None:
    """The last request of a run that a prompt is in, whole or as a part of another prompt of its
    file; None where the run did not use it, or it cannot be told from other texts."""
    with worded(trace.header.spec.prompts):
        prompts = load_prompts(file)
        texts = {one: prompts.text(language, one) for one in prompts.keys(language)}
    wanted = _shapes(key, texts)
    others = [Shape(text) for one, text in texts.items() if one != key]
    wordy = [shape for shape in others if shape.begins_with_words]
    own_words = len(Template.pattern.sub("", texts[key]).strip())
    places = [
        (call, at, message.content)
        for call in reversed(_calls(trace, file))
        for at, message in reversed(list(enumerate(_messages(call))))
        if message.role != "assistant" and len(message.content) <= MOST_TEXT
    ]
    for call, at, content in places:
        if own_words < _FEWEST_WORDS and _fits(wordy, content):
            # Every text fits a prompt that is a placeholder alone.
            continue
        # Beside another prompt of the file, it is surely the file's.
        if _is_among(_messages(call), at, wordy) and (found := _first(wanted, content)) is not None:
            return Filled(call, at, content, found)
    # Without placeholders only the very same text fits.
    telling = own_words >= _ENOUGH_WORDS or not Template(texts[key]).get_identifiers()
    for call, at, content in places if telling else ():
        if (found := _first(wanted, content)) is not None:
            return Filled(call, at, content, found)
    for call, at, content in places if own_words >= _FEWEST_WORDS else ():
        for text in _parts(content, others):
            if (found := _first(wanted, text)) is not None:
                return Filled(call, at, text, found)
        if (end := _at_the_end(texts[key], content)) is not None:
            return Filled(call, at, *end)
    return None


def _calls(trace: Trace, file: str) -> list[ModelCalled]:
    """The calls of the methods that use the file, in their order."""
    users = set(users_of(file))
    names = [one.name for one in trace.header.spec.methods if one.name in users]
    found = (event for name in names for event in trace.of_method(name))
    calls = {event.seq: event for event in found if isinstance(event, ModelCalled)}
    return [calls[seq] for seq in sorted(calls)]


def fill(file: str, language: str, key: str, text: str, values: Mapping[str, str]) -> str:
    """`text`, checked as a text of this prompt, filled with `values`; raises InvalidInputError."""
    checked = checked_text(file, language, key, text)
    return Template(checked).substitute(values).strip()


def asked_again(found: Filled, filled: str) -> GenerationRequest | ChoiceRequest:
    """The recorded request with `filled` in place of what the prompt was filled with.

    Raises InvalidInputError where the request was of another kind.
    """
    request = found.call.request
    if not isinstance(request, GenerationRequest | ChoiceRequest):
        raise failure("prompts.not_asked")
    messages = list(request.messages)
    old = messages[found.at]
    content = old.content.replace(found.text, filled, 1)
    messages[found.at] = old.model_copy(update={"content": content})
    return request.model_copy(update={"messages": tuple(messages)})


async def ask_model(
    model: Model, request: GenerationRequest | ChoiceRequest
) -> Generation | Choice:
    """What `model` says to the request; one text, however many the run asked for.

    Raises what the model raises.
    """
    if isinstance(request, ChoiceRequest):
        return await model.choose(request)
    (first, *_) = await model.generate(request.model_copy(update={"n": 1}))
    return first


def recorded_reply(found: Filled) -> Generation | Choice | None:
    """What the model of the run said to it; None where the call failed."""
    call = found.call
    if call.choice is not None:
        return call.choice
    return call.generations[0] if call.generations else None


def _messages(call: ModelCalled) -> tuple[Message, ...]:
    request = call.request
    return request.messages if isinstance(request, GenerationRequest | ChoiceRequest) else ()


def _parts(content: str, shapes: list[Shape]) -> Iterator[str]:
    """The parts of `content`, as far as other prompts show them: their values, and the
    lines of these, and again the same of what is found."""
    known = {content}
    left = [content]
    while left:
        text = left.pop()
        for shape in shapes:
            for value in (shape.fit(text) or {}).values():
                for part in (value, *value.splitlines()):
                    if part and part not in known:
                        known.add(part)
                        left.append(part)
                        yield part
        if len(known) > _MOST_PARTS:
            return


_MOST_PARTS = 500


def _first(shapes: list[Shape], text: str) -> dict[str, str] | None:
    """The values with which the first of the shapes fits the text."""
    for shape in shapes:
        if (found := shape.fit(text)) is not None:
            return {name: value for name, value in found.items() if "__" not in name}
    return None


def _shapes(key: str, texts: Mapping[str, str]) -> list[Shape]:
    """What fits the prompt `key`: first with each prompt inside that a placeholder is named after,
    which tells better where a value ends."""
    inside = {name: text for name, text in texts.items() if name != key}
    names = set(Template(texts[key]).get_identifiers()) & inside.keys()
    alone = Shape(texts[key])
    return [Shape(texts[key], {name: inside[name] for name in names}), alone] if names else [alone]


def _is_among(messages: tuple[Message, ...], at: int, others: list[Shape]) -> bool:
    """Whether another message of the request is a prompt of the same file."""
    return any(
        _fits(others, message.content)
        for number, message in enumerate(messages)
        if number != at and len(message.content) <= MOST_TEXT
    )


def _fits(shapes: list[Shape], text: str) -> bool:
    return any(shape.fit(text) is not None for shape in shapes)


def _at_the_end(text: str, content: str) -> tuple[str, dict[str, str]] | None:
    """The prompt where it ends a message that something else begins, and its values."""
    begins = text.strip().partition("$")[0]
    if len(begins) < _FEWEST_WORDS or len(content) > MOST_TEXT:
        return None
    at = content.rfind(begins)
    found = Shape(text).fit(content[at:]) if at > 0 else None
    return None if found is None else (content[at:], found)


_FEWEST_WORDS = 4
_ENOUGH_WORDS = 24
"""Characters of a prompt's own: with fewer, texts of other prompts may look like it."""
