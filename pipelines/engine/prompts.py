"""Which methods use a prompt, and the values that a recorded run filled it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Template

from pipelines.errors import failure
from pipelines.methods.registry import METHODS, get_method
from pipelines.models.base import ChoiceRequest, GenerationRequest, Model
from pipelines.prompts import Prompts, Wording, checked_text, load_prompts
from pipelines.run.events import ModelCalled
from pipelines.run.trace import Trace
from pipelines.types import Choice, FilledPrompt, Generation, Message

CALIBRATED = {"drad": "direct", "haarag": "slm", "slm": "slm"}
"""Methods with numbers that were calibrated with the shipped texts of a prompt file: which file."""


def files_of(method: str) -> list[Prompts]:
    """Return the prompt files of a method, in its order; raises InvalidInputError for no method."""
    return list(dict.fromkeys(get_method(method).prompts))


def users_of(file: str) -> list[str]:
    """Return the methods that use a prompt file, in the order in which methods are listed."""
    return [
        name for name, method in METHODS.items() if file in {one.name for one in method.prompts}
    ]


def uncalibrated(methods: Iterable[str], wording: Wording) -> list[str]:
    """Return those of `methods` with calibrated numbers that do not apply to this wording."""
    return [name for name in methods if CALIBRATED.get(name) in wording]


@dataclass(frozen=True)
class SentPrompt:
    """A prompt as a recorded run sent it: `part` of message `at` of the request of `call`."""

    call: ModelCalled
    at: int
    part: FilledPrompt

    @property
    def message(self) -> Message:
        """The message that it stands in."""
        return _messages(self.call)[self.at]

    @property
    def text(self) -> str:
        """The filled prompt, without what stands around it in its message."""
        return self.message.content[self.part.start : self.part.end]

    @property
    def values(self) -> dict[str, str]:
        """The value of each of its placeholders."""
        return self.part.texts(self.message.content)


def sent_in(trace: Trace, file: str, language: str, key: str) -> SentPrompt | None:
    """Return the last request of a run that a prompt is in, whole or as a part of another prompt.

    None where the run did not use it, did not record it, or recorded it with other placeholders
    than it has now.
    """
    wanted, needed = (file, language, key), set(load_prompts(file).placeholders(language, key))
    for call in reversed(_calls(trace)):
        for at, message in reversed(list(enumerate(_messages(call)))):
            for part in message.filled:
                if (part.file, part.language, part.key) == wanted and needed <= part.values.keys():
                    return SentPrompt(call, at, part)
    return None


def _calls(trace: Trace) -> list[ModelCalled]:
    return [event for event in trace.events if isinstance(event, ModelCalled)]


def fill(file: str, language: str, key: str, text: str, values: Mapping[str, str]) -> str:
    """Return `text`, checked as a text of this prompt, filled with `values`; raises
    InvalidInputError.
    """
    checked = checked_text(file, language, key, text)
    return Template(checked).substitute(values).strip()


def asked_again(found: SentPrompt, text: str) -> GenerationRequest | ChoiceRequest:
    """Return the recorded request with `text` in place of the prompt, filled with the same values.

    It takes its place wherever the request has it, in demonstrations and for each passage of a
    list. Raises InvalidInputError where the text cannot be filled, or the request was of another
    kind.
    """
    request = found.call.request
    if not isinstance(request, GenerationRequest | ChoiceRequest):
        raise failure("prompts.not_asked")
    messages = tuple(_reworded(one, found.part, text) for one in request.messages)
    return request.model_copy(update={"messages": messages})


def _reworded(message: Message, prompt: FilledPrompt, text: str) -> Message:
    """Return the message with `text`, filled, wherever it has `prompt`."""
    content = message.content
    wanted = (prompt.file, prompt.language, prompt.key)
    # From the end, so that the places before stay what they are.
    for part in sorted(message.filled, key=lambda one: one.start, reverse=True):
        same = (part.file, part.language, part.key) == wanted
        if same and part.values.keys() >= prompt.values.keys():
            filled = fill(*wanted, text, part.texts(message.content))
            content = content[: part.start] + filled + content[part.end :]
    return Message(role=message.role, content=content)


async def ask_model(
    model: Model, request: GenerationRequest | ChoiceRequest
) -> Generation | Choice:
    """Return what `model` says to the request; one text, however many the run asked for.

    Raises what the model raises.
    """
    if isinstance(request, ChoiceRequest):
        return await model.choose(request)
    (first, *_) = await model.generate(request.model_copy(update={"n": 1}))
    return first


def recorded_reply(found: SentPrompt) -> Generation | Choice | None:
    """Return what the model of the run said to it; None where the call failed."""
    call = found.call
    if call.choice is not None:
        return call.choice
    return call.generations[0] if call.generations else None


def _messages(call: ModelCalled) -> tuple[Message, ...]:
    request = call.request
    return request.messages if isinstance(request, GenerationRequest | ChoiceRequest) else ()
