"""Models of Alibaba Cloud's DashScope (Model Studio), by its own protocol and client."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import dashscope
import httpx
from dashscope.v2.errors import APIStatusError, DashScopeError

from pipelines.models.base import DASHSCOPE, GenerationRequest
from pipelines.models.hosted import HostedModel, Part, chat_body, prefix_of
from pipelines.models.hosted_errors import ErrorReader, RefusalError
from pipelines.models.limiter import Limiter
from pipelines.remote.address import Address, read_address, usable_key
from pipelines.types import Language, Usage

__all__ = ["DEFAULT_BASE_URL", "DashScopeModel"]

DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
"""The endpoint for mainland China; keys of other regions need the address of theirs, such as
https://dashscope-intl.aliyuncs.com/api/v1."""

_ENDPOINT = "/services/aigc/text-generation/generation"
_MULTIMODAL_ENDPOINT = "/services/aigc/multimodal-generation/generation"
_OTHER_PROTOCOL = "/compatible-mode/v1"
_MOST_TEXTS = 4
_CONNECT_SECONDS = 10.0

_MULTIMODAL = re.compile(r"qwen-?(3\.[5-9]|[4-9])|[-\d]vl\b|omni|qvq", re.I)
"""Models that are probably asked through the multimodal call: Qwen3.5 and later read images."""

_STREAM_ONLY = re.compile(r"non-streaming|only supports? stream|enable the stream|http call", re.I)

# A stream opens with status 200, so that what goes wrong in it is known by its code alone.
_STATUS_BY_CODE = (
    (re.compile(r"invalidapikey"), 401),
    (re.compile(r"accessdenied|unpurchased"), 403),
    (re.compile(r"throttling|limitrequests|ratelimit"), 429),
    (re.compile(r"timeout"), 408),
    (re.compile(r"internalerror|systemerror|internalservererror"), 500),
    (re.compile(r"unavailable|modelservicefailed"), 503),
)


class DashScopeModel(HostedModel):
    """A text model by its id at DashScope; one call is one attempt.

    `top_logprobs` (0: none), `prefill`, `structured_output` and `languages` say what the model
    offers; None is the usual: 5, the most the service reports, not known to continue a begun
    answer, constrained output, English and Chinese. A begun answer is marked as one to go on from
    unless `prefill` is False. `timeout` is in seconds and bounds the wait for the next bytes.

    The service answers each model in one place only, at its text call or its multimodal call
    (Qwen3.5 and later, models that see or hear). Which of them is guessed from the model's id and
    corrected by the service's refusal.

    Models that can think are told not to unless `enable_thinking`; what one thinks all the same is
    no part of its text. Optional fields that a model refuses are left out, and one that answers
    only in a stream is streamed; then the answer is asked for again. The key and the address come
    from the arguments alone and go with each call. A reply stopped by the service's content
    inspection after it had begun ends with the finish reason "filter".

    Sampling beyond temperature (top-p and the like) is left to the service's defaults.
    """

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        top_logprobs: int | None = None,
        prefill: bool | None = None,
        structured_output: bool | None = None,
        languages: Collection[Language] | None = None,
        enable_thinking: bool = False,
        timeout: float = 120.0,
        limiter: Limiter | None = None,
    ) -> None:
        self._model = model
        self._address = _address(base_url or DEFAULT_BASE_URL)
        self._key = usable_key(api_key, self._address.host)
        super().__init__(
            name=name,
            provider=self._address.host,
            capabilities=DASHSCOPE.overridden(
                top_logprobs=top_logprobs,
                prefill=prefill,
                structured_output=structured_output,
                languages=languages,
            ),
            continues=prefill is not False,
            errors=ErrorReader(
                name=name,
                model=model,
                provider=self._address.host,
                host=self._address.host,
                key=self._key,
                protocol="DashScope does",
                ending="/api/v1",
                client_errors=(DashScopeError, httpx.HTTPError),
                refusal=_refusal,
            ),
            limiter=limiter,
            most_texts=_MOST_TEXTS,
            most_streamed=1,
        )
        self._thinking = enable_thinking
        self._timeout = timeout
        self._multimodal = _MULTIMODAL.search(model) is not None
        # A connection belongs to the event loop it was opened in.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dashscope.AsyncClient] = (
            WeakKeyDictionary()
        )

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.transport.http_client.aclose()

    def _fields(
        self, request: GenerationRequest, n: int, index: int, refused: Collection[str]
    ) -> dict[str, Any]:
        fields = chat_body(
            request,
            model=self._model,
            n=n,
            index=index,
            capabilities=self._capabilities,
            refused=refused,
        )
        if "enable_thinking" not in refused:
            fields["enable_thinking"] = self._thinking
        if self._multimodal:
            for turn in fields["messages"]:
                turn["content"] = [{"text": turn["content"]}]
        if prefix_of(request) and "partial" not in refused:
            fields["messages"][-1]["partial"] = True
        return fields

    async def _whole(self, fields: dict[str, Any]) -> tuple[list[Part], Usage]:
        answer = await self._create(fields)
        parts = [_part(number, one, one.message) for number, one in enumerate(answer.choices)]
        return parts, _usage(answer) or Usage()

    async def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[Part], Usage | None], None]:
        answer = await self._create(fields | {"stream": True})
        try:
            async with aclosing(aiter(answer)) as chunks:
                async for chunk in chunks:
                    parts = [_part(one.index, one, one.delta) for one in chunk.choices]
                    yield parts, _usage(chunk)
        finally:
            await answer.aclose()

    async def _create(self, fields: dict[str, Any]) -> Any:
        if self._key is None:
            raise self._errors.no_key()
        client = self._client()
        multimodal = isinstance(fields["messages"][0]["content"], list)
        place = client.multimodal.chat if multimodal else client.chat.completions
        return await place.create(**fields, api_key=self._key)

    def _client(self) -> dashscope.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._new_client()
        return client

    def _new_client(self) -> dashscope.AsyncClient:
        connections = httpx.AsyncClient(
            timeout=httpx.Timeout(self._timeout, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=not self._address.on_this_machine,
            # Without TLS there is nothing to verify, and certificates take long to load.
            verify=self._address.url.startswith("https:"),
        )
        # Every setting is given: what is not, the client looks for in files and the environment.
        return dashscope.AsyncClient(
            api_key=self._key,
            base_url=self._address.url,
            workspace="",
            region="cn-beijing",
            protocol="native",
            timeout=self._timeout,
            max_retries=0,
            config_path=os.devnull,
            http_client=connections,
        )

    def _adapts(
        self,
        refusal: RefusalError,
        fields: Mapping[str, Any],
        left_out: set[str],
        *,
        streamed: bool,
    ) -> bool:
        """Stream to a model that answers no other way; ask in the other of the two places."""
        if not streamed and _STREAM_ONLY.search(refusal.words):
            self._always_stream = True
            return True
        if refusal.is_about_path and "path" not in left_out:
            left_out.add("path")
            self._multimodal = not isinstance(fields["messages"][0]["content"], list)
            return True
        return False


def _part(number: int, choice: Any, message: Any) -> Part:
    """A text or a piece of one, without what the model only thought."""
    content = message.content or ""
    thought = not content and bool(message.reasoning_content)
    logprobs = getattr(choice, "logprobs", None) or {}
    entries = () if thought else logprobs.get("content") or ()
    # The service spells out that there is no reason yet.
    reason = None if choice.finish_reason in (None, "", "null") else choice.finish_reason
    return Part(number, content, entries, reason)


def _usage(answer: Any) -> Usage | None:
    usage = answer.usage
    if usage is None:
        return None
    return Usage(prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens)


def _refusal(error: Exception) -> RefusalError | None:
    """What the service answered; None where the client failed by itself."""
    if not isinstance(error, DashScopeError) or (
        not isinstance(error, APIStatusError) and error.code is None
    ):
        return None
    refusal = RefusalError(error.status_code or 400, error.code, error.message, error.headers)
    by_code = (status for pattern, status in _STATUS_BY_CODE if pattern.search(refusal.code))
    # An error in an answer that came with status 200 is about the request unless its code tells.
    refusal.status = next(by_code, 400 if refusal.status == 200 else refusal.status)
    return refusal


def _address(url: str) -> Address:
    address = read_address(url, endpoint=_ENDPOINT, example=DEFAULT_BASE_URL)
    address = address._replace(url=address.url.removesuffix(_MULTIMODAL_ENDPOINT))
    if address.url.endswith(_OTHER_PROTOCOL):
        # The service shows both addresses side by side, and this one is copied more often.
        return address._replace(url=address.url.removesuffix(_OTHER_PROTOCOL) + "/api/v1")
    return address
