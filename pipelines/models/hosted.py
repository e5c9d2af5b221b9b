"""What all models behind a network service share: several texts for one request, and refusals."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence

from pipelines.errors import CapabilityError
from pipelines.models.base import Capabilities, GenerationRequest, Model, Watcher
from pipelines.models.gate import CallGate
from pipelines.models.openai_errors import ErrorReader
from pipelines.models.openai_request import prefix_of
from pipelines.models.reply import ReplyBuilder
from pipelines.types import Generation, Language

__all__ = ["HostedModel", "assumed"]


def assumed(
    *,
    usual_top_logprobs: int,
    top_logprobs: int | None,
    prefill: bool | None,
    structured_output: bool | None,
    languages: Collection[Language] | None,
    streaming: bool = True,
) -> Capabilities:
    """What a service is taken to offer where nothing (None) is known: see `OpenAIModel`."""
    alternatives = usual_top_logprobs if top_logprobs is None else top_logprobs
    return Capabilities(
        languages=frozenset(("en", "zh") if languages is None else languages),
        logprobs=alternatives > 0,
        top_logprobs=alternatives,
        structured_output=structured_output is not False,
        streaming=streaming,
        prefill=prefill is True,
    )


class HostedModel(Model):
    """A model whose texts come from a service.

    `continues` says whether a begun answer may be sent. Reproducible requests have the service to
    themselves among the calls that share `gate`, and ask for one text at a time.
    """

    def __init__(
        self,
        *,
        name: str,
        provider: str,
        capabilities: Capabilities,
        continues: bool,
        errors: ErrorReader,
        gate: CallGate | None,
    ) -> None:
        self.name = name
        self.provider = provider
        self._capabilities = capabilities
        self._continues = continues
        self._errors = errors
        self._gate = gate or CallGate()
        self._refused: set[str] = set()
        """Fields of a request that the service turned out not to take."""

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
        async with self._gate.enter(alone=request.reproducible):
            first = 1 if request.reproducible else self._together(request.n)
            texts = await self._ask(request, first, 0, watch)
            missing = range(len(texts), request.n)
            if request.reproducible:
                for index in missing:
                    texts += await self._ask(request, 1, index, None)
            elif missing:
                texts += await self._each(request, missing)
            return tuple(texts)

    @abstractmethod
    def _together(self, n: int) -> int:
        """How many of `n` texts to ask for in one request; the service may give fewer."""

    @abstractmethod
    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        """The texts of one request, at most `n`; the first is the request's `index`-th."""

    def _replies(self, request: GenerationRequest, n: int) -> list[ReplyBuilder]:
        """What `n` texts are put together in."""
        prefix = prefix_of(request)
        return [ReplyBuilder(logprobs=request.logprobs, prefix=prefix) for _ in range(n)]

    def _check_logprobs(
        self,
        request: GenerationRequest,
        texts: Iterable[Generation],
        replies: Iterable[ReplyBuilder],
    ) -> None:
        """Raise CapabilityError when log-probabilities were wanted and a text has none."""
        if request.logprobs and any(
            text.text and not reply.has_pieces for text, reply in zip(texts, replies, strict=False)
        ):
            raise self._errors.no_logprobs()

    async def _each(self, request: GenerationRequest, indices: Sequence[int]) -> list[Generation]:
        tasks = [asyncio.ensure_future(self._ask(request, 1, index, None)) for index in indices]
        try:
            return [text for texts in await asyncio.gather(*tasks) for text in texts]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
