"""Models behind any server that speaks the OpenAI chat protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any, Literal
from weakref import WeakKeyDictionary

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pipelines.models.base import OPENAI, GenerationRequest
from pipelines.models.hosted import HostedModel, Part, chat_body, prefix_of
from pipelines.models.hosted_errors import ErrorReader, RefusalError
from pipelines.models.limiter import Limiter
from pipelines.remote.address import read_address, usable_key
from pipelines.remote.guard import PublicTransport
from pipelines.types import Language, Usage

__all__ = ["DEFAULT_BASE_URL", "OpenAIModel", "PrefillStyle"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

PrefillStyle = Literal["native", "vllm"]
"""How a server is told to continue a final assistant message: "native" does so by itself
(llama.cpp, Ollama), "vllm" wants `continue_final_message` (vLLM, SGLang). A server that refuses
the extra fields is asked again without them, so "vllm" does no harm elsewhere."""

_CONNECT_SECONDS = 10.0
_NAMED = ("messages", "model", "stream")


class OpenAIModel(HostedModel):
    """A model by its id at an OpenAI-compatible address; one call is one attempt.

    `top_logprobs` (0: none), `prefill`, `structured_output` and `languages` say what the server
    offers; None is the usual: 20, not known to continue a begun answer, constrained output, English
    and Chinese. A begun answer is sent as `prefill_style` wants it unless `prefill` is False.
    `timeout` is in seconds and bounds the wait for the next bytes. `always_stream` streams
    unwatched calls too: a server notices sooner that nobody reads a stream any more, so cancelling
    ends its work at once. `native_n` asks for several texts in one request; where the server gives
    fewer, and without it, each is asked for by itself. `extra_body` is added to every request,
    `reproducible_body` to reproducible ones, which have the server to themselves among the calls
    that share `limiter`.

    `public_only` keeps requests to addresses on the public internet: for servers that visitors
    named, who have no business in the network around this machine.

    Sampling beyond temperature (top-p and the like) is left to the server's defaults. The key, the
    address and the organisation come from the arguments alone, never from the environment; its
    proxy is used except for an address on this machine. Optional fields that a server refuses are
    left out, and the answer is asked for again.

    llama.cpp merges the tokens of a character it wrote in several into one and reports the
    probability of the last of them, which is too high for such a character.
    """

    def __init__(
        self,
        name: str,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        top_logprobs: int | None = None,
        prefill: bool | None = None,
        structured_output: bool | None = None,
        languages: Collection[Language] | None = None,
        streaming: bool = True,
        prefill_style: PrefillStyle = "vllm",
        timeout: float = 120.0,
        always_stream: bool = False,
        native_n: bool = True,
        extra_body: Mapping[str, Any] | None = None,
        reproducible_body: Mapping[str, Any] | None = None,
        limiter: Limiter | None = None,
        public_only: bool = False,
    ) -> None:
        self._model = model
        address = read_address(
            base_url or DEFAULT_BASE_URL,
            endpoint="/chat/completions",
            example="https://example.com/v1",
        )
        self._base_url, self._on_this_machine = address.url, address.on_this_machine
        provider = provider or address.host
        self._key = usable_key(api_key, provider)
        super().__init__(
            name=name,
            provider=provider,
            capabilities=OPENAI.overridden(
                top_logprobs=top_logprobs,
                prefill=prefill,
                structured_output=structured_output,
                languages=languages,
                streaming=streaming,
            ),
            continues=prefill is not False,
            errors=ErrorReader(
                name=name,
                model=model,
                provider=provider,
                host=address.host,
                key=self._key,
                protocol="an OpenAI-compatible server",
                ending="/v1",
                client_errors=(openai.OpenAIError, httpx2.HTTPError),
                refusal=_refusal,
            ),
            limiter=limiter,
            most_texts=None if native_n else 1,
            most_streamed=None if native_n else 1,
            always_stream=always_stream,
        )
        self._prefill_style: PrefillStyle = prefill_style
        self._timeout = timeout
        self._public_only = public_only
        self._extra_body = dict(extra_body or {})
        self._reproducible_body = dict(reproducible_body or {})
        # A connection belongs to the event loop it was opened in.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = (
            WeakKeyDictionary()
        )

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _fields(
        self, request: GenerationRequest, n: int, index: int, refused: Collection[str]
    ) -> dict[str, Any]:
        body = chat_body(
            request,
            model=self._model,
            n=n,
            index=index,
            capabilities=self._capabilities,
            refused=refused,
        )
        extra = dict(self._extra_body)
        if prefix_of(request) and self._prefill_style == "vllm":
            extra |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.reproducible:
            extra |= self._reproducible_body
        if "stream_options" not in refused:
            body["stream_options"] = {"include_usage": True}
        return body | {name: value for name, value in extra.items() if name not in refused}

    async def _whole(self, fields: dict[str, Any]) -> tuple[list[Part], Usage]:
        fields.pop("stream_options", None)
        answer: Any = await self._send(fields)
        choices = answer.choices if isinstance(answer, ChatCompletion) else None
        parts = [
            Part(number, one.message.content or "", _entries(one), one.finish_reason)
            for number, one in enumerate(choices or ())
        ]
        return parts, _usage(answer) or Usage()

    async def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[Part], Usage | None], None]:
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

    def _client(self) -> openai.AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._new_client()
        return client

    def _new_client(self) -> openai.AsyncOpenAI:
        timeout = httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS)
        client = openai.AsyncOpenAI(
            api_key=self._key or "",
            admin_api_key="",
            webhook_secret="",
            base_url=self._base_url,
            timeout=timeout,
            max_retries=0,
            http_client=self._connections(timeout),
        )
        # The client fills these from environment variables even where arguments are given.
        client.organization = client.project = None
        client._custom_headers = {}
        return client

    def _connections(self, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
        # A local server may keep a worker per open connection, and opening one costs nothing there.
        kept = 0 if self._on_this_machine else 20
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=kept)
        # Without TLS there is nothing to verify, and certificates take long to load.
        verify = self._base_url.startswith("https:")
        if self._public_only:
            # Past the proxy of the environment: it stands inside.
            inner = httpx2.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
            return httpx2.AsyncClient(timeout=timeout, transport=PublicTransport(inner))
        return httpx2.AsyncClient(
            timeout=timeout, limits=limits, trust_env=not self._on_this_machine, verify=verify
        )


def _part(choice: Any) -> Part:
    """A piece of a streamed text, without what the model only thought."""
    content = choice.delta.content or ""
    extra = choice.delta.model_extra or {}
    thought = not content and (extra.get("reasoning_content") or extra.get("reasoning"))
    return Part(choice.index, content, () if thought else _entries(choice), choice.finish_reason)


def _entries(choice: Any) -> list[dict[str, Any]]:
    logprobs = choice.logprobs
    return [entry.model_dump(warnings=False) for entry in (logprobs and logprobs.content) or ()]


def _usage(answer: ChatCompletion | ChatCompletionChunk) -> Usage | None:
    usage = answer.usage
    if usage is None:
        return None
    return Usage(
        prompt_tokens=usage.prompt_tokens or 0, completion_tokens=usage.completion_tokens or 0
    )


def _refusal(error: Exception) -> RefusalError | None:
    if isinstance(error, openai.APIStatusError):
        return RefusalError(error.status_code, error.code, error.body, error.response.headers)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        # It came inside a stream that began well.
        code = error.code or ""
        return RefusalError(int(code) if code.isdigit() else 500, code, error.body or error.message)
    return None
