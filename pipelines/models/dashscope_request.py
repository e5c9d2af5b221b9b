"""What is sent to DashScope, what can be left out when it objects, and the parts of its replies."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from dashscope.api_entities.dashscope_response import GenerationResponse

from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.models.openai_request import chat_body, prefix_of
from pipelines.types import Usage

__all__ = ["MOST_TEXTS", "Part", "call_fields", "objections", "read_parts", "wants_stream"]

MOST_TEXTS = 4
"""The largest number of texts that one request may ask for."""

_DISPENSABLE = ("enable_thinking", "seed", "n", "response_format", "partial")
_STREAM_ONLY = re.compile(r"non-streaming|only supports? stream|enable the stream|http call", re.I)


class Part(NamedTuple):
    """A piece of one text: what is new in it, its token entries, and why it ended, if it did."""

    content: str
    entries: list[dict[str, Any]]
    finish_reason: str | None


def call_fields(
    request: GenerationRequest,
    *,
    model: str,
    n: int,
    index: int,
    capabilities: Capabilities,
    continues: bool,
    thinking: bool,
    refused: Collection[str],
) -> dict[str, Any]:
    """The fields of a call for `n` texts, of which `index` is the first.

    `continues` marks a final assistant message as one to go on from; `refused` names fields that
    this model does not take.
    """
    fields = chat_body(
        request,
        model=model,
        n=n,
        index=index,
        capabilities=capabilities,
        prefill_style=None,
        refused=refused,
    )
    fields["result_format"] = "message"
    if "enable_thinking" not in refused:
        fields["enable_thinking"] = thinking
    if continues and prefix_of(request) and "partial" not in refused:
        fields["messages"][-1]["partial"] = True
    return fields


def objections(words: str, fields: Mapping[str, Any]) -> set[str]:
    """The fields that a refusal names and the request can do without.

    Log-probabilities are never among them: a caller that asked for them needs them.
    """
    sent = set(fields)
    if any("partial" in turn for turn in fields["messages"]):
        sent.add("partial")
    return {field for field in _DISPENSABLE if field in sent and _names(words, field)}


def wants_stream(words: str) -> bool:
    """Whether a refusal says that the model answers in a stream only, as most that think do."""
    return _STREAM_ONLY.search(words) is not None


def _names(words: str, field: str) -> bool:
    # A single letter counts only where it stands for a parameter: prose is full of them.
    pattern = rf"(['\"`]|parameters?\.){field}\b" if len(field) == 1 else rf"(?<!\w){field}(?!\w)"
    return re.search(pattern, words) is not None


def read_parts(answer: GenerationResponse) -> tuple[list[Part], Usage]:
    """The parts in one message of the service, one for each text, and the tokens used so far.

    What a model thought before it wrote is left out, with its token entries. Raises TypeError,
    KeyError, ValueError or AttributeError when the message is not what the protocol promises.
    """
    usage = Usage(
        prompt_tokens=answer.usage.input_tokens or 0,
        completion_tokens=answer.usage.output_tokens or 0,
    )
    output = answer.output
    if output.choices is None and output.text is not None:
        # Older models know no other form.
        return [Part(output.text, [], _reason(output.finish_reason))], usage
    return [_part(choice) for choice in output.choices or ()], usage


def _part(choice: Mapping[str, Any]) -> Part:
    message = choice["message"]
    content = message["content"] or ""
    thought = not content and bool(message.get("reasoning_content"))
    logprobs = choice.get("logprobs") or {}
    entries = () if thought else logprobs.get("content") or ()
    return Part(content, list(entries), _reason(choice.get("finish_reason")))


def _reason(said: str | None) -> str | None:
    # The service spells out that there is none yet.
    return None if said in (None, "", "null") else said
