"""What callers hand to the decoding thread: texts to write, places to look at, texts to score."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

from pipelines.models.base import Delta, GenerationRequest
from pipelines.models.local.prompting import Prompt
from pipelines.models.local.sampling import Outcome
from pipelines.models.local.transcript import Transcript
from pipelines.models.local.vocabulary import Vocabulary
from pipelines.types import FinishReason, Generation, Token, Usage

__all__ = ["Job", "Order", "Probe", "Scoring", "Sequence", "sampling_key"]


T = TypeVar("T")


class Order(NamedTuple):
    """A job without its future, which another process can be given.

    `tokens` is the most it writes. Of a job that is `watched` the pieces are wanted as well.
    """

    make: Callable[..., Job[Any]]
    tokens: int = 1
    writes: bool = False
    watched: bool = False

    def job(self, vocabulary: Vocabulary, on_delta: Callable[[Delta, int], None]) -> Job[Any]:
        """The job anew."""
        if not self.writes:
            return self.make()
        return self.make(vocabulary=vocabulary, on_delta=on_delta if self.watched else None)


class Job(ABC, Generic[T]):
    """Something to compute. Cancelling `future` takes it out before the next step."""

    def __init__(self, prompt: tuple[int, ...], *, reproducible: bool) -> None:
        self.prompt = prompt
        self.reproducible = reproducible
        self.future: Future[T] = Future()

    @abstractmethod
    def order(self) -> Order:
        """This job, to be done elsewhere."""


class Probe(Job[tuple[list[float], int]]):
    """The probability of each of `tokens` as the next one, and the most probable of all."""

    def __init__(
        self, prompt: tuple[int, ...], tokens: tuple[int, ...], *, reproducible: bool
    ) -> None:
        super().__init__(prompt, reproducible=reproducible)
        self.tokens = tokens

    def order(self) -> Order:
        """This look, to be taken elsewhere."""
        return Order(partial(Probe, self.prompt, self.tokens, reproducible=self.reproducible))


class Scoring(Job[list[Outcome]]):
    """What the model thinks of every token of `reply`."""

    def __init__(
        self, prompt: tuple[int, ...], reply: tuple[int, ...], top_k: int, *, reproducible: bool
    ) -> None:
        super().__init__(prompt, reproducible=reproducible)
        self.reply = reply
        self.top_k = top_k

    def order(self) -> Order:
        """This text, to be scored elsewhere."""
        again = partial(
            Scoring, self.prompt, self.reply, self.top_k, reproducible=self.reproducible
        )
        return Order(again)


def sampling_key(request: GenerationRequest, prompt: Prompt, index: int) -> str:
    """What the random numbers of text `index` of a request depend on.

    The prompt is part of it: different questions under one seed would otherwise be answered with
    the same random numbers, and their answers would agree more than chance allows. Text i of a
    request with n texts and sample s is draw s * n + i.
    """
    ids = sha256(repr(prompt.ids).encode()).hexdigest()
    return f"{request.seed}/{(request.sample or 0) * request.n + index}/{ids}"


class Sequence(Job[Generation]):
    """A text being written.

    `on_delta` is called in the decoding thread with each new piece and the number of tokens so
    far. `batch_size` is the largest
    number of sequences that were decoded together with this one, itself included.
    """

    def __init__(
        self,
        request: GenerationRequest,
        prompt: Prompt,
        index: int,
        vocabulary: Vocabulary,
        *,
        limit: int,
        on_delta: Callable[[Delta, int], None] | None = None,
    ) -> None:
        super().__init__(prompt.ids, reproducible=request.reproducible)
        self.temperature = request.temperature
        self.top_k = request.top_k if request.logprobs else None
        self.batch_size = 1
        self.written: list[int] = []
        self._limit = limit
        self._reason: FinishReason = "stop"
        self._vocabulary = vocabulary
        self._random = random.Random(sampling_key(request, prompt, index))
        self._on_delta = on_delta
        self._order = partial(Sequence, request, prompt, index, limit=limit)
        self._transcript = Transcript(
            vocabulary, (*request.stop, *prompt.stop), drops_space=prompt.drops_space
        )

    def order(self) -> Order:
        """This text, to be written elsewhere, from its beginning."""
        watched = self._on_delta is not None
        return Order(self._order, self._limit, writes=True, watched=watched)

    def hand_on(self, delta: Delta, written: int) -> None:
        """Show a piece that was written elsewhere."""
        if self._on_delta is not None:
            self._on_delta(delta, written)

    def uniform(self) -> float:
        """The random number in [0, 1) for the next token, from this sequence's own generator."""
        return self._random.random() if self.temperature > 0 else 0.0

    def accept(self, token: int, outcome: Outcome | None, stop_ids: frozenset[int]) -> bool:
        """Take the next token; True when the text is complete (then call `result`)."""
        self.written.append(token)
        if token in stop_ids:
            return self._end("stop")
        piece = self._vocabulary.piece(token)
        if piece is not None:
            self._transcript.add(piece, outcome)
        if self._transcript.stopped:
            return self._end("stop")
        if len(self.written) >= self._limit:
            return self._end("length")
        self._show()
        return False

    def result(self) -> Generation:
        """The finished text."""
        transcript = self._transcript
        return self._generation(transcript.text, transcript.tokens, len(self.written), self._reason)

    def result_until(
        self, deltas: Iterable[Delta], written: int, reason: FinishReason
    ) -> Generation:
        """The text cut short from outside: these pieces, of `written` tokens."""
        pieces = list(deltas)
        tokens = [token for piece in pieces for token in piece.tokens]
        return self._generation("".join(p.text for p in pieces), tokens, written, reason)

    def _generation(
        self, text: str, tokens: list[Token], written: int, reason: FinishReason
    ) -> Generation:
        return Generation(
            text=text,
            tokens=None if self.top_k is None else tuple(tokens),
            usage=Usage(prompt_tokens=len(self.prompt), completion_tokens=written),
            finish_reason=reason,
            batch_size=self.batch_size,
        )

    def _end(self, reason: FinishReason) -> bool:
        self._reason = reason
        self._transcript.finish()
        self._show(everything=True)
        return True

    def _show(self, *, everything: bool = False) -> None:
        if self._on_delta is not None:
            delta = self._transcript.take(everything=everything)
            if delta is not None:
                self._on_delta(delta, len(self.written))
