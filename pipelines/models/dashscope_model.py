"""Models of Alibaba Cloud's DashScope (Model Studio), by its own protocol and client."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.dashscope_client import DashScopeClient
from pipelines.models.dashscope_errors import DashScopeErrors, ServiceError, check
from pipelines.models.dashscope_request import (
    MOST_TEXTS,
    call_fields,
    objections,
    read_parts,
    wants_stream,
)
from pipelines.models.gate import CallGate
from pipelines.models.hosted import HostedModel, assumed
from pipelines.models.reply import ReplyBuilder
from pipelines.remote.address import Address, read_address, usable_key
from pipelines.types import Generation, Language, Usage

__all__ = ["DEFAULT_BASE_URL", "DashScopeModel"]

DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
"""The endpoint for mainland China; keys of other regions need the address of theirs, such as
https://dashscope-intl.aliyuncs.com/api/v1."""

_ENDPOINT = "/services/aigc/text-generation/generation"
_OTHER_PROTOCOL = "/compatible-mode/v1"
_TOP_LOGPROBS = 5


class DashScopeModel(HostedModel):
    """A text model by its id at DashScope; one call is one attempt.

    `top_logprobs` (0: none), `prefill`, `structured_output` and `languages` say what the model
    offers; None is the usual: 5, the most the service reports, not known to continue a begun
    answer, constrained output, English and Chinese. A begun answer is marked as one to go on from
    unless `prefill` is False. `timeout` is in seconds, for a whole reply or the next part of a
    streamed one.

    Models that can think are told not to unless `enable_thinking`; what one thinks all the same is
    no part of its text. Optional fields that a model refuses are left out, and one that answers
    only in a stream is streamed; then the answer is asked for again. The key and the address come
    from the arguments alone. A reply stopped by the service's content inspection after it had begun
    ends with the finish reason "filter".

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
        gate: CallGate | None = None,
    ) -> None:
        self._model = model
        address = _address(base_url or DEFAULT_BASE_URL)
        key = usable_key(api_key, address.host)
        self._errors: DashScopeErrors
        super().__init__(
            name=name,
            provider=address.host,
            capabilities=assumed(
                usual_top_logprobs=_TOP_LOGPROBS,
                top_logprobs=top_logprobs,
                prefill=prefill,
                structured_output=structured_output,
                languages=languages,
            ),
            continues=prefill is not False,
            errors=DashScopeErrors(
                name=name, model=model, provider=address.host, host=address.host, key=key
            ),
            gate=gate,
        )
        self._thinking = enable_thinking
        self._stream_only = False
        self._client = None if key is None else DashScopeClient(address, key, timeout)

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        if self._client is not None:
            await self._client.aclose()

    def _together(self, n: int) -> int:
        return min(n, MOST_TEXTS)

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        client = self._client
        if client is None:
            raise self._errors.missing_key()
        left_out: set[str] = set()
        while True:
            streamed = watch is not None or self._stream_only
            refused = self._refused | left_out
            together = 1 if streamed or "n" in refused else n
            fields = call_fields(
                request,
                model=self._model,
                n=together,
                index=index,
                capabilities=self._capabilities,
                continues=self._continues,
                thinking=self._thinking,
                refused=refused,
            )
            replies = self._replies(request, together)
            try:
                if streamed:
                    texts = [await self._stream(client, fields, replies[0], watch)]
                else:
                    texts = await self._whole(client, fields, replies)
            except ServiceError as error:
                if not self._gives_way(error, fields, left_out, streamed=streamed):
                    raise self._errors.read(error) from error
                continue
            self._check_logprobs(request, texts, replies)
            return texts

    def _gives_way(
        self, error: ServiceError, fields: Mapping[str, Any], left_out: set[str], *, streamed: bool
    ) -> bool:
        """Whether the request is worth asking again, without what the service objects to."""
        if not error.is_about_fields:
            return False
        if not streamed and wants_stream(error.words):
            self._stream_only = True
            return True
        dropped = objections(error.words, fields)
        # A schema may be refused for what it says, so that the next one is worth a try.
        left_out |= dropped
        self._refused |= dropped - {"response_format"}
        return bool(dropped)

    async def _whole(
        self, client: DashScopeClient, fields: dict[str, Any], replies: list[ReplyBuilder]
    ) -> list[Generation]:
        with self._errors.reading():
            parts, usage = read_parts(check(await client.ask(**fields)))
            if not parts:
                raise self._errors.invalid("there is no text in its answer")
            texts: list[Generation] = []
            for part, reply in zip(parts, replies, strict=False):
                reply.add(part.content, part.entries)
                reply.close(part.finish_reason or "stop")
                texts.append(reply.generation(Usage() if texts else usage))
            return texts

    async def _stream(
        self,
        client: DashScopeClient,
        fields: dict[str, Any],
        reply: ReplyBuilder,
        watch: Watcher | None,
    ) -> Generation:
        usage = Usage()
        begun = False
        async with client.stream(**fields) as answers:
            while True:
                with self._errors.reading():
                    try:
                        answer = await anext(answers, None)
                        if answer is None:
                            break
                        parts, usage = read_parts(check(answer))
                    except ServiceError as error:
                        if not (begun and error.is_inspection):
                            raise
                        reply.close("content_filter")
                        break
                    delta = None
                    for part in parts[:1]:
                        begun = begun or bool(part.content)
                        delta = reply.add(part.content, part.entries)
                        if part.finish_reason:
                            reply.close(part.finish_reason)
                if delta is not None and watch is not None and watch(delta):
                    return reply.stopped().model_copy(update={"usage": usage})
        if reply.finish_reason is None:
            raise self._errors.invalid("its stream broke off")
        with self._errors.reading():
            rest, text = reply.rest(), reply.generation(usage)
        if rest is not None and watch is not None:
            watch(rest)
        return text


def _address(url: str) -> Address:
    address = read_address(url, endpoint=_ENDPOINT, example=DEFAULT_BASE_URL)
    if address.url.endswith(_OTHER_PROTOCOL):
        # The service shows both addresses side by side, and this one is copied more often.
        return address._replace(url=address.url.removesuffix(_OTHER_PROTOCOL) + "/api/v1")
    return address
