"""Models of Alibaba Cloud's DashScope (Model Studio), by its own protocol and client."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Unpack

import dashscope
import httpx
from dashscope.v2.errors import APIStatusError, DashScopeError

from pipelines.base import Usage
from pipelines.models.base import DASHSCOPE, DASHSCOPE_URL, GenerationRequest, Overrides
from pipelines.models.chunks import texts_of
from pipelines.models.dialects import RefusalError
from pipelines.models.entries import listed_entries
from pipelines.models.hosted import CONNECT_SECONDS, LONGEST_SECONDS, HostedModel, prefix_of
from pipelines.models.replies import ReplyPart, usage_of
from pipelines.remote import HEADERS, Address, bounded, read_address

_ENDPOINT = "/services/aigc/text-generation/generation"
_MULTIMODAL_ENDPOINT = "/services/aigc/multimodal-generation/generation"
_OTHER_PROTOCOL = "/compatible-mode/v1"

_MULTIMODAL = re.compile(r"qwen-?(3\.[5-9]|[4-9])|[-\d]vl\b|omni|qvq", re.I)
"""Models that are probably asked through the multimodal call: Qwen3.5 and later read images."""

# A stream opens with status 200, so that what goes wrong in it is known by its code alone.
_STATUS_BY_CODE = (
    (re.compile(r"invalidapikey"), 401),
    (re.compile(r"accessdenied|unpurchased"), 403),
    (re.compile(r"throttling|limitrequests|ratelimit"), 429),
    (re.compile(r"timeout"), 408),
    (re.compile(r"internalerror|systemerror|internalservererror"), 500),
    (re.compile(r"unavailable|modelservicefailed"), 503),
)


class DashScopeModel(HostedModel[dashscope.AsyncClient]):
    """A text model by its id at DashScope; one call is one attempt.

    `known` says what the model offers; the usual is: 5 alternatives, the most the service reports,
    not known to continue a begun answer, constrained output, English and Chinese.

    The service answers each model at one endpoint only, its text call or its multimodal call
    (Qwen3.5 and later, models that see or hear). Which of them is guessed from the model's id and
    corrected by the service's refusal.

    Models that can think are told not to; what one thinks all the same is no part of its text. One
    that answers only in a stream is streamed; then the answer is asked for again. The key and the
    address come from the arguments alone and go with each call. A reply stopped by the service's
    content inspection after it had begun ends with the finish reason "filter".

    Sampling beyond temperature (top-p and the like) is left to the service's defaults.
    """

    _usual = DASHSCOPE
    _protocol = "DashScope does"
    _ending = "/api/v1"
    _max_texts = 4
    _max_streamed = 1

    def __init__(
        self,
        *,
        name: str,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
        longest: float = LONGEST_SECONDS,
        **known: Unpack[Overrides],
    ) -> None:
        address = _address(base_url or DASHSCOPE_URL)
        super().__init__(
            name, model, address, api_key, known=known, timeout=timeout, longest=longest
        )
        self._multimodal = _MULTIMODAL.search(model) is not None

    def _fields(self, request: GenerationRequest, n: int, index: int) -> dict[str, Any]:
        fields = super()._fields(request, n, index)
        fields["enable_thinking"] = False
        if self._multimodal:
            for turn in fields["messages"]:
                turn["content"] = [{"text": turn["content"]}]
        if prefix_of(request):
            fields["messages"][-1]["partial"] = True
        return fields

    async def _whole(self, fields: dict[str, Any]) -> tuple[list[ReplyPart], Usage]:
        answer = await self._create(fields)
        parts = [_part(number, one, one.message) for number, one in enumerate(answer.choices)]
        return parts, _usage(answer) or Usage()

    async def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        answer = await self._create(fields | {"stream": True})
        try:
            async with aclosing(aiter(answer)) as chunks:
                async for chunk in chunks:
                    parts = [_part(choice.index, choice, choice.delta) for choice in chunk.choices]
                    yield parts, _usage(chunk)
        finally:
            await answer.aclose()

    async def _create(self, fields: dict[str, Any]) -> Any:
        if self._key is None:
            raise self._errors.failure("no_key", told="")
        client = self._client()
        multimodal = isinstance(fields["messages"][0]["content"], list)
        endpoint = client.multimodal.chat if multimodal else client.chat.completions
        return await endpoint.create(**fields, api_key=self._key)

    @staticmethod
    def _client_errors() -> tuple[type[Exception], ...]:
        return DashScopeError, httpx.HTTPError

    @staticmethod
    def _refusal(error: Exception) -> RefusalError | None:
        if not isinstance(error, DashScopeError) or (
            not isinstance(error, APIStatusError) and error.code is None
        ):
            return None
        refusal = RefusalError(error.status_code or 400, error.code, error.message, error.headers)
        by_code = (status for pattern, status in _STATUS_BY_CODE if pattern.search(refusal.code))
        # In an answer with status 200 an error is about the request unless its code tells.
        refusal.status = next(by_code, 400 if refusal.status == 200 else refusal.status)
        return refusal

    def _new_client(self) -> dashscope.AsyncClient:
        connections = httpx.AsyncClient(
            timeout=httpx.Timeout(self._timeout, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            headers=HEADERS,
            event_hooks={"response": [bounded]},
            trust_env=not self._address.on_this_machine,
            verify=self._address.encrypted,
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

    async def _close(self, client: dashscope.AsyncClient) -> None:
        await client.transport.http_client.aclose()

    def _adapts(self, refusal: RefusalError, fields: dict[str, Any], left_out: set[Any]) -> bool:
        """Ask at the other endpoint."""
        if refusal.is_about_path and "path" not in left_out:
            left_out.add("path")
            self._multimodal = not isinstance(fields["messages"][0]["content"], list)
            return True
        return False


def _part(number: int, choice: Any, message: Any) -> ReplyPart:
    """Return a text or a piece of one, and what was only thought beside it."""
    texts = texts_of(message.content or None)
    if choice.finish_reason == "tool_calls":
        raise ValueError("A tool is called instead of an answer.")
    # The service spells out that there is no reason yet.
    reason = None if choice.finish_reason in (None, "", "null") else choice.finish_reason
    return ReplyPart(
        number,
        texts.said,
        listed_entries(getattr(choice, "logprobs", None)),
        reason,
        message.reasoning_content or texts.thought,
    )


def _usage(answer: Any) -> Usage | None:
    usage = answer.usage
    if usage is None:
        return None
    details = getattr(usage, "output_tokens_details", None)
    thought = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return usage_of(
        getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None), thought
    )


def _address(url: str) -> Address:
    address = read_address(url, endpoint=_ENDPOINT, example=DASHSCOPE_URL)
    address = address._replace(url=address.url.removesuffix(_MULTIMODAL_ENDPOINT))
    if address.url.endswith(_OTHER_PROTOCOL):
        # The service shows both addresses side by side, and this one is copied more often.
        return address._replace(url=address.url.removesuffix(_OTHER_PROTOCOL) + "/api/v1")
    return address
