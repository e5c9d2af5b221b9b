"""Models behind any server that speaks the OpenAI chat protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Unpack

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pipelines.base import Usage
from pipelines.models.base import OPENAI, GenerationRequest, Overrides
from pipelines.models.hosted import (
    CONNECT_SECONDS,
    LONGEST_SECONDS,
    HostedModel,
    Limiter,
    RefusalError,
    ReplyPart,
    prefix_of,
)
from pipelines.models.replies import usage_of
from pipelines.remote import HEADERS, OPENAI_URL, PublicTransport, bounded, read_address

_NAMED = ("messages", "model", "stream")


class OpenAIModel(HostedModel[openai.AsyncOpenAI]):
    """A model by its id at an OpenAI-compatible address; one call is one attempt.

    `known` says what the server offers; the usual is: 20 alternatives, not known to continue a
    begun answer, constrained output, English and Chinese. Several texts are asked for in one
    request; where the server gives fewer, each is asked for by itself.

    `llama_cpp` says that the server is llama.cpp on this machine. It continues a final assistant
    message without being told, and every text is a request of its own. Unwatched calls are streamed
    too: a server notices sooner that nobody reads a stream any more, so cancelling ends its work at
    once. Reproducible requests do without its cache: a prompt found there is computed in other
    batches, with other rounding.

    `public_only` keeps requests to addresses on the public internet: for servers that visitors
    named, who have no business in the network around this machine.

    Sampling beyond temperature (top-p and the like) is left to the server's defaults. The key, the
    address and the organisation come from the arguments alone, never from the environment; its
    proxy is used except for an address on this machine.

    llama.cpp merges the tokens of a character it wrote in several into one and reports the
    probability of the last of them, which is too high for such a character.
    """

    _usual = OPENAI
    _protocol = "an OpenAI-compatible server"
    _ending = "/v1"
    _client_errors = (openai.OpenAIError, httpx2.HTTPError)

    def __init__(
        self,
        name: str,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        timeout: float = 120.0,
        longest: float = LONGEST_SECONDS,
        limiter: Limiter | None = None,
        llama_cpp: bool = False,
        public_only: bool = False,
        **known: Unpack[Overrides],
    ) -> None:
        address = read_address(
            base_url or OPENAI_URL,
            endpoint="/chat/completions",
            example="https://example.com/v1",
        )
        super().__init__(
            name,
            model,
            address,
            api_key,
            known=known,
            timeout=timeout,
            longest=longest,
            provider=provider,
            limiter=limiter,
        )
        self._llama_cpp = self._always_stream = llama_cpp
        if llama_cpp:
            self._max_texts = self._max_streamed = 1
        self._public_only = public_only

    def _fields(self, request: GenerationRequest, n: int, index: int) -> dict[str, Any]:
        body = super()._fields(request, n, index) | {"stream_options": {"include_usage": True}}
        if prefix_of(request) and not self._llama_cpp:
            # vLLM and SGLang want to be told. A server that refuses this is asked without it.
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.reproducible and self._llama_cpp:
            body["cache_prompt"] = False
        return body

    async def _whole(self, fields: dict[str, Any]) -> tuple[list[ReplyPart], Usage]:
        fields.pop("stream_options", None)
        answer: Any = await self._send(fields)
        choices = answer.choices if isinstance(answer, ChatCompletion) else None
        parts = [
            ReplyPart(
                number,
                choice.message.content or "",
                _entries(choice),
                _reason(choice.message, choice),
            )
            for number, choice in enumerate(choices or ())
        ]
        return parts, _usage(answer) or Usage()

    async def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        async with await self._send(fields | {"stream": True}) as chunks:
            async for chunk in chunks:
                yield [_part(choice) for choice in chunk.choices or ()], _usage(chunk)

    async def _send(self, fields: Mapping[str, Any]) -> Any:
        # Servers know fields that the client has no name for: all but these are given apart.
        named: Any = {name: fields[name] for name in _NAMED if name in fields}
        rest = {name: value for name, value in fields.items() if name not in _NAMED}
        # Without a key the client insists on being told that none is meant.
        headers = None if self._key else {"Authorization": openai.omit}
        return await self._client().chat.completions.create(
            **named, extra_body=rest, extra_headers=headers
        )

    @staticmethod
    def _refusal(error: Exception) -> RefusalError | None:
        if isinstance(error, openai.APIStatusError):
            return RefusalError(error.status_code, error.code, error.body, error.response.headers)
        if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
            # It came inside a stream that began well.
            code = error.code or ""
            status = int(code) if code.isdigit() else 500
            return RefusalError(status, code, error.body or error.message)
        return None

    def _new_client(self) -> openai.AsyncOpenAI:
        timeout = httpx2.Timeout(self._timeout, connect=CONNECT_SECONDS)
        client = openai.AsyncOpenAI(
            api_key=self._key or "",
            admin_api_key="",
            webhook_secret="",
            base_url=self._address.url,
            timeout=timeout,
            max_retries=0,
            http_client=self._connections(timeout),
        )
        # The client fills these from environment variables even where arguments are given.
        client.organization = client.project = None
        client._custom_headers = {}
        return client

    async def _close(self, client: openai.AsyncOpenAI) -> None:
        await client.close()

    def _connections(self, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
        hooks = {"response": [bounded]}
        # A local server may keep a worker per open connection, and opening one costs nothing there.
        kept = 0 if self._address.on_this_machine else 20
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=kept)
        if self._public_only:
            # Past the proxy of the environment: it stands inside.
            inner = httpx2.AsyncHTTPTransport(
                verify=self._address.encrypted, limits=limits, trust_env=False
            )
            return httpx2.AsyncClient(
                timeout=timeout,
                headers=HEADERS,
                transport=PublicTransport(inner),
                event_hooks=hooks,
            )
        return httpx2.AsyncClient(
            timeout=timeout,
            limits=limits,
            headers=HEADERS,
            event_hooks=hooks,
            trust_env=not self._address.on_this_machine,
            verify=self._address.encrypted,
        )


def _part(choice: Any) -> ReplyPart:
    """Return a piece of a streamed text, without what the model only thought."""
    content = choice.delta.content or ""
    extra = choice.delta.model_extra or {}
    thought = not content and (extra.get("reasoning_content") or extra.get("reasoning"))
    entries = () if thought else _entries(choice)
    return ReplyPart(choice.index, content, entries, _reason(choice.delta, choice))


def _reason(message: Any, choice: Any) -> str | None:
    """Return why the text has ended; the service's own refusal counts as its filter's.

    Raises ValueError for the call of a tool: none was offered.
    """
    if message.tool_calls or choice.finish_reason in ("tool_calls", "function_call"):
        raise ValueError("A tool is called instead of an answer.")
    return "content_filter" if message.refusal else choice.finish_reason


def _entries(choice: Any) -> Sequence[dict[str, Any]]:
    """Return the token entries of a choice; none where they are not what the protocol promises."""
    try:
        return [entry.model_dump(warnings=False) for entry in choice.logprobs.content or ()]
    except (AttributeError, TypeError):
        return ()


def _usage(answer: ChatCompletion | ChatCompletionChunk) -> Usage | None:
    usage = answer.usage
    if usage is None:
        return None
    return usage_of(
        getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    )
