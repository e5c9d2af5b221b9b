"""What is sent to an OpenAI-compatible server, and what can be left out when it objects."""

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from pipelines.models.base import Capabilities, GenerationRequest

__all__ = ["PrefillStyle", "chat_body", "objections", "prefix_of", "sampling_seed"]

PrefillStyle = Literal["native", "vllm"]
"""How a server is told to continue a final assistant message: "native" does so by itself
(llama.cpp, Ollama), "vllm" wants `continue_final_message` (vLLM, SGLang). A server that refuses
the extra fields is asked again without them, so "vllm" does no harm elsewhere."""

_MAX_ALTERNATIVES = 20
_DISPENSABLE = (
    "stream_options",
    "seed",
    "n",
    "response_format",
    "continue_final_message",
    "add_generation_prompt",
)


def prefix_of(request: GenerationRequest) -> str:
    """The begun text that the model is to continue, empty when there is none."""
    last = request.messages[-1] if request.messages else None
    return last.content if last is not None and last.role == "assistant" else ""


def sampling_seed(request: GenerationRequest, index: int) -> int:
    """Seed in [0, 2**31) of the `index`-th text: differs by seed, sample, index and question."""
    place = (request.sample or 0) * request.n + index
    turns = "\x00".join(f"{turn.role}\x01{turn.content}" for turn in request.messages)
    digest = hashlib.sha256(f"{request.seed}/{place}/{turns}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def chat_body(
    request: GenerationRequest,
    *,
    model: str,
    n: int,
    index: int,
    capabilities: Capabilities,
    prefill_style: PrefillStyle | None,
    refused: Collection[str],
) -> dict[str, Any]:
    """The fields of a chat completion request for `n` texts, of which `index` is the first.

    `refused` names fields this server does not take; "max_tokens" among them stands for its newer
    name `max_completion_tokens`.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        "temperature": request.temperature,
    }
    longest = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
    body[longest] = request.max_tokens
    if n > 1:
        body["n"] = n
    if request.temperature > 0:
        body["seed"] = sampling_seed(request, index)
    if request.stop:
        body["stop"] = list(request.stop)
    if request.logprobs:
        limit = capabilities.top_logprobs or _MAX_ALTERNATIVES
        body["logprobs"] = True
        # Zero alternatives means "none at all" to some servers, llama.cpp among them.
        body["top_logprobs"] = max(1, min(request.top_k, limit))
    if request.json_schema is not None and capabilities.structured_output:
        body["response_format"] = _response_format(request.json_schema)
    if prefix_of(request) and prefill_style == "vllm":
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return {field: value for field, value in body.items() if field not in refused}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = {"name": "reply", "schema": dict(schema)}
    if _is_closed(schema):
        # OpenAI guarantees the schema only in strict mode, and refuses loose schemas there.
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}


def _is_closed(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if schema.get("type") == "object" or properties is not None:
            names = set(properties or ())
            if schema.get("additionalProperties") is not False:
                return False
            if set(schema.get("required") or ()) != names:
                return False
        return all(_is_closed(part) for part in schema.values())
    return not isinstance(schema, list) or all(_is_closed(part) for part in schema)


def objections(words: str, body: Mapping[str, Any]) -> set[str]:
    """The fields of `body` that a refusal names and the request can do without.

    Log-probabilities are never among them: a caller that asked for them needs them.
    """
    if "max_tokens" in body and "max_completion_tokens" in words:
        return {"max_tokens"}
    named = {field for field in _DISPENSABLE if field in body and _names(words, field)}
    continuing = {"continue_final_message", "add_generation_prompt"}
    return named | (continuing & body.keys() if named & continuing else set())


def _names(words: str, field: str) -> bool:
    # A single letter counts only in quotes: prose is full of them.
    pattern = rf"['\"`]{field}['\"`]" if len(field) == 1 else rf"(?<!\w){field}(?!\w)"
    return re.search(pattern, words) is not None
