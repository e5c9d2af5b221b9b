"""Models of Alibaba Cloud's DashScope (Model Studio), by its own protocol and client."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from pipelines.errors import CapabilityError
from pipelines.models.address import Address, read_address, usable_key
from pipelines.models.base import Capabilities, GenerationRequest, Model, Watcher
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
from pipelines.models.openai_request import prefix_of
from pipelines.models.reply import ReplyBuilder
from pipelines.types import Generation, Language, Usage

__all__ = ["DEFAULT_BASE_URL", "DashScopeModel"]

DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
"""The endpoint for mainland China; keys of other regions need the address of theirs, such as
https://dashscope-intl.aliyuncs.com/api/v1."""

_ENDPOINT = "/services/aigc/text-generation/generation"
_OTHER_PROTOCOL = "/compatible-mode/v1"
_TOP_LOGPROBS = 5


class DashScopeModel(Model):
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
        self.name = name
        self._model = model
        address = _address(base_url or DEFAULT_BASE_URL)
        self.provider = address.host
        key = usable_key(api_key, self.provider)
        alternatives = _TOP_LOGPROBS if top_logprobs is None else top_logprobs
        self._capabilities = Capabilities(
            languages=frozenset(("en", "zh") if languages is None else languages),
            logprobs=alternatives > 0,
            top_logprobs=alternatives,
            structured_output=structured_output is not False,
            prefill=prefill is True,
        )
        self._continues = prefill is not False
        self._thinking = enable_thinking
        self._gate = gate or CallGate()
        self._refused: set[str] = set()
        self._stream_only = False
        self._errors = DashScopeErrors(
            name=name, model=model, provider=self.provider, host=address.host, key=key
        )
        self._client = None if key is None else DashScopeClient(address, key, timeout)

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
        if prefix_of(request) and not self._continues:
            raise CapabilityError(
                f"{self.name} answers a text that was begun instead of continuing it.",
                remedy="Choose a model that continues, or a method that does not need it.",
                provider=self.provider,
            )
        if self._client is None:
            raise self._errors.missing_key()
        async with self._gate.enter(alone=request.reproducible):
            client = self._client
            together = 1 if request.reproducible else min(request.n, MOST_TEXTS)
            texts = await self._ask(client, request, together, 0, watch)
            missing = range(len(texts), request.n)
            if request.reproducible:
                for index in missing:
                    texts += await self._ask(client, request, 1, index, None)
            elif missing:
                texts += await self._each(client, request, missing)
            return tuple(texts)

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        if self._client is not None:
            await self._client.aclose()

    async def _each(
        self, client: DashScopeClient, request: GenerationRequest, indices: range
    ) -> list[Generation]:
        asked = (self._ask(client, request, 1, index, None) for index in indices)
        tasks = [asyncio.ensure_future(one) for one in asked]
        try:
            return [text for texts in await asyncio.gather(*tasks) for text in texts]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self,
        client: DashScopeClient,
        request: GenerationRequest,
        n: int,
        index: int,
        watch: Watcher | None,
    ) -> list[Generation]:
        """The texts of one request, at most `n`; the first is the request's `index`-th."""
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
            prefix = prefix_of(request)
            replies = [
                ReplyBuilder(logprobs=request.logprobs, prefix=prefix) for _ in range(together)
            ]
            try:
                if streamed:
                    texts = [await self._stream(client, fields, replies[0], watch)]
                else:
                    texts = await self._whole(client, fields, replies)
            except ServiceError as error:
                if not self._gives_way(error, fields, left_out, streamed=streamed):
                    raise self._errors.read(error) from error
                continue
            if request.logprobs and any(
                text.text and not reply.has_pieces
                for text, reply in zip(texts, replies, strict=False)
            ):
                raise self._errors.no_logprobs()
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
