"""Models behind any server that speaks the OpenAI chat protocol."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pipelines.models.base import Delta, GenerationRequest, Watcher
from pipelines.models.gate import CallGate
from pipelines.models.hosted import HostedModel, assumed
from pipelines.models.openai_errors import ErrorReader
from pipelines.models.openai_request import PrefillStyle, chat_body, objections
from pipelines.models.reply import ReplyBuilder
from pipelines.remote.address import read_address, usable_key
from pipelines.remote.failures import server_words
from pipelines.remote.guard import PublicTransport
from pipelines.types import Generation, Language, Usage

__all__ = ["DEFAULT_BASE_URL", "OpenAIModel", "PrefillStyle"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_CONNECT_SECONDS = 10.0
_TOP_LOGPROBS = 20


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
    that share `gate`.

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
        gate: CallGate | None = None,
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
            capabilities=assumed(
                usual_top_logprobs=_TOP_LOGPROBS,
                top_logprobs=top_logprobs,
                prefill=prefill,
                structured_output=structured_output,
                languages=languages,
                streaming=streaming,
            ),
            continues=prefill is not False,
            errors=ErrorReader(
                name=name, model=model, provider=provider, host=address.host, key=self._key
            ),
            gate=gate,
        )
        self._prefill_style: PrefillStyle = prefill_style
        self._timeout = timeout
        self._public_only = public_only
        self._always_stream = always_stream
        self._native_n = native_n
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

    def _together(self, n: int) -> int:
        return n if self._native_n and "n" not in self._refused else 1

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        streamed = self._capabilities.streaming and (watch is not None or self._always_stream)
        replies = self._replies(request, n)
        if streamed:
            texts = await self._stream(request, index, replies, watch)
        else:
            texts = await self._whole(request, index, replies)
            if watch is not None and texts[0].text:
                watch(Delta(text=texts[0].text, tokens=texts[0].tokens or ()))
        self._check_logprobs(request, texts, replies)
        return texts

    async def _whole(
        self, request: GenerationRequest, index: int, replies: Sequence[ReplyBuilder]
    ) -> list[Generation]:
        with self._errors.reading():
            answer = await self._send(request, len(replies), index, streamed=False)
            choices = answer.choices if isinstance(answer, ChatCompletion) else None
            if not choices:
                raise self._errors.invalid("there is no text in its answer")
            usage, texts = _usage(answer), []
            for choice, reply in zip(choices, replies, strict=False):
                reply.add(choice.message.content or "", _entries(choice))
                reply.close(choice.finish_reason or "stop")
                texts.append(reply.generation(Usage() if texts else usage))
            return texts

    async def _stream(
        self,
        request: GenerationRequest,
        index: int,
        replies: Sequence[ReplyBuilder],
        watch: Watcher | None,
    ) -> list[Generation]:
        usage = Usage()
        with self._errors.reading():
            stream = await self._send(request, len(replies), index, streamed=True)
        async with stream:
            while True:
                with self._errors.reading():
                    try:
                        chunk: ChatCompletionChunk = await stream.__anext__()
                    except StopAsyncIteration:
                        break
                    usage = _usage(chunk) if chunk.usage else usage
                    delta = _take(chunk, replies)
                if delta is not None and watch is not None and watch(delta):
                    return [reply.stopped() for reply in replies]
        first, *others = replies
        if first.finish_reason is None:
            raise self._errors.invalid("its stream broke off")
        with self._errors.reading():
            rest = first.rest()
            done = [first, *(reply for reply in others if reply.finish_reason is not None)]
            texts = [reply.generation(Usage() if reply is not first else usage) for reply in done]
        if rest is not None and watch is not None:
            watch(rest)
        return texts

    async def _send(self, request: GenerationRequest, n: int, index: int, *, streamed: bool) -> Any:
        left_out: set[str] = set()
        # Without a key the client insists on being told that none is meant.
        headers = None if self._key else {"Authorization": openai.omit}
        while True:
            body = chat_body(
                request,
                model=self._model,
                n=n,
                index=index,
                capabilities=self._capabilities,
                prefill_style=self._prefill_style,
                refused=self._refused | left_out,
            )
            extra = dict(self._extra_body)
            if request.reproducible:
                extra |= self._reproducible_body
            if streamed:
                body["stream"] = True
                if "stream_options" not in self._refused:
                    body["stream_options"] = {"include_usage": True}
            for field in ("continue_final_message", "add_generation_prompt"):
                if field in body:
                    extra[field] = body.pop(field)
            try:
                return await self._client().chat.completions.create(
                    **body, extra_body=extra, extra_headers=headers
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                dropped = objections(server_words(error.body), body | extra)
                if not dropped:
                    raise
                # A schema may be refused for what it says, so that the next one is worth a try.
                left_out |= dropped
                self._refused |= dropped - {"response_format"}

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


def _take(chunk: ChatCompletionChunk, replies: Sequence[ReplyBuilder]) -> Delta | None:
    """Add a chunk to its replies; returns what can be shown of the first."""
    shown: Delta | None = None
    for choice in chunk.choices or ():
        if not 0 <= choice.index < len(replies):
            continue
        reply = replies[choice.index]
        content = choice.delta.content or ""
        extra = choice.delta.model_extra or {}
        hidden = not content and (extra.get("reasoning_content") or extra.get("reasoning"))
        delta = reply.add(content, () if hidden else _entries(choice))
        if choice.finish_reason:
            reply.close(choice.finish_reason)
        if choice.index == 0 and delta is not None:
            shown = delta
    return shown


def _entries(choice: Any) -> list[dict[str, Any]]:
    logprobs = choice.logprobs
    return [entry.model_dump(warnings=False) for entry in (logprobs and logprobs.content) or ()]


def _usage(answer: ChatCompletion | ChatCompletionChunk) -> Usage:
    usage = answer.usage
    if usage is None:
        return Usage()
    return Usage(
        prompt_tokens=usage.prompt_tokens or 0, completion_tokens=usage.completion_tokens or 0
    )
