"""A language model run on this machine by transformers."""

import asyncio
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from pipelines.errors import failure
from pipelines.models.base import (
    TRANSFORMERS,
    ChoiceRequest,
    GenerationRequest,
    Model,
    Overrides,
    Progress,
    ScoreRequest,
    Watcher,
)
from pipelines.models.local.batcher import Batcher, JobThread
from pipelines.models.local.loading import WeightsSource, find_source
from pipelines.models.local.prompting import Prompt, encode_prompt, encode_reply, first_tokens
from pipelines.models.local.work import (
    DecodingJob,
    PieceStream,
    Probe,
    Scoring,
    Sequence,
    make_token,
)
from pipelines.models.local.zerogpu import ZeroGpuBatcher, is_zerogpu
from pipelines.types import Choice, Generation, Message, Usage

if TYPE_CHECKING:
    from pipelines.models.local.engine import InferenceEngine

T = TypeVar("T")


class LocalModel(Model):
    """Any causal language model that transformers loads, with concurrent callers in one batch.

    `path_or_hub_id` is a folder, a GGUF file or a hub id (see `find_source`). The model is loaded
    at the first call, in its own thread, which tells `progress` how far it is. `dtype` ("float32",
    "bfloat16", "float16") is chosen by the machine when None; `known` is what is known of the model
    besides that.

    Every probability is that of the model's own distribution over the full vocabulary, before
    temperature. In bfloat16 the logits themselves are rounded (to 1/8 at 16); float32 is exact. A
    request with `reproducible` runs in float32 and by itself, and gives the same answer each time
    on the same machine. Sampling draws from the full distribution at the request's temperature;
    the same request, `seed` and `sample` draw the same random numbers whatever else is decoded.
    """

    def __init__(
        self,
        path_or_hub_id: str | Path,
        *,
        name: str | None = None,
        dtype: str | None = None,
        progress: Progress | None = None,
        **known: Unpack[Overrides],
    ) -> None:
        given = Path(path_or_hub_id)
        self.name = name or (given.stem if given.suffix.lower() == ".gguf" else given.name)
        self._given = path_or_hub_id
        self._dtype = dtype
        self._progress = progress
        self._capabilities = TRANSFORMERS.overridden(**known)
        self._batcher: JobThread | None = None
        self._starting = threading.Lock()
        # A fast tokenizer may not be borrowed by two threads at once.
        self._encoding = threading.Lock()

    def load(self) -> None:
        """Load the weights now instead of at the first call; blocks until they are there.

        Raises UnknownModelError, InvalidInputError or, for a hub id, UnreachableError,
        AuthenticationError, RateLimitError or ServerFailedError.
        """
        self._start().ready.result()

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts, together with whatever other callers are writing.

        `watch` is called on the caller's event loop. When it returns True, the first text ends
        with the piece it was given, even if the model has written on meanwhile. Raises
        RefusedRequestError when the messages alone are longer than the model can read; a text
        that reaches the end of the model's context ends there, with finish reason "length".
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        limit = min(request.max_tokens, self._room(engine, len(prompt.ids)))
        pieces = PieceStream(watch) if watch else None
        sequences = [
            Sequence(
                request,
                prompt,
                index,
                limit=limit,
                on_delta=pieces.put if pieces and index == 0 else None,
            )
            for index in range(request.n)
        ]
        if limit < 1:
            return tuple(sequence.result_until((), 0, "length") for sequence in sequences)
        try:
            waits = [
                pieces.follow(sequence) if pieces and index == 0 else _result(sequence)
                for index, sequence in enumerate(sequences)
            ]
            batcher.submit(sequences)
            return tuple(await asyncio.gather(*waits))
        finally:
            for sequence in sequences:
                sequence.future.cancel()

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the probability of each option's first tokens as the beginning of the reply.

        An option gets the sum over the first tokens of all its spellings, with and without a
        space before them; a token with which two options begin counts for neither. `text` is the
        most probable first token of all.
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        with self._encoding:
            heads = {
                option.label: {
                    token
                    for spelling in option.spellings
                    for token in first_tokens(engine.vocabulary, spelling)
                }
                for option in request.options
            }
        every = [token for tokens in heads.values() for token in tokens]
        own = tuple({token for token in every if every.count(token) == 1})
        probe = Probe(prompt=prompt.ids, tokens=own, reproducible=request.reproducible)
        masses, likeliest = await _submitted(batcher, probe)
        values = dict(zip(own, masses, strict=True))
        probabilities = {
            label: min(1.0, sum(values.get(token, 0.0) for token in tokens))
            for label, tokens in heads.items()
        }
        rest = max(0.0, 1.0 - sum(probabilities.values()))
        text = engine.vocabulary.text(likeliest)
        return Choice(probabilities=probabilities, other_mass=rest, source="logprobs", text=text)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return `request.text` as the reply to the messages, token by token, in one forward pass.

        Raises RefusedRequestError when messages and text are longer than the model can read.
        """
        batcher, engine = await self._ready()
        prompt = self._prompt(engine, request.messages)
        with self._encoding:
            reply = encode_reply(engine.vocabulary, request.messages, prompt, request.text)
        self._room(engine, len(prompt.ids) + len(reply))
        outcomes = []
        if reply:
            job = Scoring(
                prompt=prompt.ids,
                reply=tuple(token.id for token in reply),
                top_k=request.top_k,
                reproducible=request.reproducible,
            )
            outcomes = await _submitted(batcher, job)
        return Generation(
            text=request.text,
            tokens=tuple(
                make_token(request.text, token.start, token.end, outcome)
                for token, outcome in zip(reply, outcomes, strict=True)
            ),
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(reply)),
            batch_size=1,
        )

    async def aclose(self) -> None:
        """End the decoding thread and free the weights; a later call loads them again."""
        with self._starting:
            batcher, self._batcher = self._batcher, None
        if batcher is not None:
            await asyncio.to_thread(batcher.close)

    def _start(self) -> JobThread:
        with self._starting:
            if self._batcher is None or self._batcher.finished:
                source = find_source(self._given)
                load = partial(_load, source, self._dtype, self._progress)
                kind = ZeroGpuBatcher if is_zerogpu() else Batcher
                self._batcher = kind(load, name=self.name)
            return self._batcher

    async def _ready(self) -> tuple[JobThread, "InferenceEngine"]:
        batcher = self._start()
        return batcher, await asyncio.wrap_future(batcher.ready)

    def _prompt(self, engine: "InferenceEngine", messages: tuple[Message, ...]) -> Prompt:
        with self._encoding:
            return encode_prompt(engine.vocabulary, messages)

    def _room(self, engine: "InferenceEngine", used: int) -> int:
        """Return how many tokens still fit into the model's context after `used` ones."""
        if engine.context is None:
            return sys.maxsize
        if used > engine.context:
            most = engine.context
            raise failure("computing.too_long", self.name, name=self.name, used=used, most=most)
        return engine.context - used


def _load(
    source: WeightsSource, dtype: str | None, progress: Progress | None, exact: bool
) -> "InferenceEngine":
    # Imported here, in the decoding thread: torch and transformers take seconds.
    from pipelines.models.local.loading import load_engine

    return load_engine(source, dtype="float32" if exact else dtype, progress=progress)


async def _result(job: DecodingJob[T]) -> T:
    return await asyncio.wrap_future(job.future)


async def _submitted(batcher: JobThread, job: DecodingJob[T]) -> T:
    batcher.submit([job])
    return await _result(job)
