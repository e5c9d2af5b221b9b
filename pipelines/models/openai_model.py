"""Models behind any server that speaks the OpenAI chat protocol."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2
import openai
from openai.types.chat import ChatCompletion

from pipelines.errors import AuthenticationError, CapabilityError, InvalidInputError
from pipelines.models.base import Capabilities, GenerationRequest, Model, Watcher
from pipelines.models.gate import CallGate
from pipelines.models.openai_errors import ErrorReader, server_words
from pipelines.models.reply import ReplyBuilder
from pipelines.types import Generation, Usage

__all__ = ["ASSUMED", "DEFAULT_BASE_URL", "OpenAIModel", "PrefillStyle", "sampling_seed"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

PrefillStyle = Literal["native", "vllm"]
"""How a server is told to continue a final assistant message: "native" does so by itself
(llama.cpp, Ollama), "vllm" wants `continue_final_message` (vLLM, SGLang). A server that refuses
the extra fields is asked again without them, so "vllm" does no harm elsewhere."""

ASSUMED = Capabilities(
    languages=frozenset({"en", "zh"}),
    logprobs=True,
    top_logprobs=20,
    structured_output=True,
    streaming=True,
)
"""What a server is taken to offer until the capability probe has looked."""

# Fields a server may refuse without the request losing its meaning: the answer is asked for again
# without them, and they are left out from then on.
_DISPENSABLE = (
    "stream_options",
    "seed",
    "n",
    "response_format",
    "continue_final_message",
    "add_generation_prompt",
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class OpenAIModel(Model):
    """A model by its id at an OpenAI-compatible address; one call is one attempt.

    `capabilities` is what the server is taken to offer, `prefill` aside, which follows from
    `prefill_style` (None: a final assistant message cannot be continued). `timeout` is in seconds
    and bounds the wait for the next bytes. `always_stream` streams unwatched calls too, so that
    cancelling ends the work at once on servers that look for a lost reader only then. `native_n`
    asks for several texts in one request; where the server gives fewer, and without it, each is
    asked for by itself. `reproducible_body` is added to reproducible requests, which run alone
    among the calls that share `gate`; `extra_body` to all.

    Sampling beyond temperature (top-p and the like) is left to the server's defaults. The key, the
    address, the organisation and further headers come from the arguments alone, never from the
    environment; a proxy of the environment is used except for an address on this machine.

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
        capabilities: Capabilities = ASSUMED,
        prefill_style: PrefillStyle | None = None,
        timeout: float = 120.0,
        always_stream: bool = False,
        native_n: bool = True,
        extra_body: Mapping[str, Any] | None = None,
        reproducible_body: Mapping[str, Any] | None = None,
        gate: CallGate | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._base_url, host, self._local = _address(base_url or DEFAULT_BASE_URL)
        self.provider = provider or host
        self._key = _usable_key(api_key, self.provider)
        self._capabilities = capabilities.model_copy(update={"prefill": prefill_style is not None})
        self._prefill_style = prefill_style
        self._timeout = timeout
        self._always_stream = always_stream and capabilities.streaming
        self._native_n = native_n
        self._extra_body = dict(extra_body or {})
        self._reproducible_body = dict(reproducible_body or {})
        self._gate = gate or CallGate()
        self._refused: set[str] = set()
        self._errors = ErrorReader(
            name=name, model=model, provider=self.provider, host=host, key=self._key
        )
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = (
            WeakKeyDictionary()
        )

    @property
    def capabilities(self) -> Capabilities:
        """What this model is taken to offer."""
        return self._capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; raises CapabilityError where log-probabilities stay away."""
        if request.logprobs and not self._capabilities.logprobs:
            raise self._errors.no_logprobs()
        if _prefix(request) and self._prefill_style is None:
            raise CapabilityError(
                f"{self.name} answers a text that was begun instead of continuing it.",
                remedy="Choose a model that continues, or a method that does not need it.",
                provider=self.provider,
            )
        async with self._gate.enter(alone=request.reproducible):
            if request.reproducible:
                texts = [
                    (await self._ask(request, 1, index, None if index else watch))[0]
                    for index in range(request.n)
                ]
                return tuple(texts)
            together = self._native_n and "n" not in self._refused
            texts = list(await self._ask(request, request.n if together else 1, 0, watch))
            texts += await self._each(request, range(len(texts), request.n))
            return tuple(texts[: request.n])

    async def _each(self, request: GenerationRequest, indices: range) -> list[Generation]:
        tasks = [asyncio.ensure_future(self._ask(request, 1, index, None)) for index in indices]
        try:
            return [texts[0] for texts in await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> tuple[Generation, ...]:
        """One request for `n` texts, the first of which is sample `index`."""
        streamed = self._always_stream or (watch is not None and self._capabilities.streaming)
        body = self._body(request, n, index, streamed)
        replies = [
            ReplyBuilder(logprobs=request.logprobs, prefix=_prefix(request)) for _ in range(n)
        ]
        try:
            if streamed:
                texts = await self._stream(body, replies, watch)
            else:
                texts = await self._whole(body, replies)
                if watch is not None and texts[0].text:
                    watch(_as_delta(texts[0]))
        except Exception as error:
            raise self._errors.read(error) from error
        if request.logprobs and any(t.text and not r.has_pieces for t, r in zip(texts, replies)):
            raise self._errors.no_logprobs()
        return texts
