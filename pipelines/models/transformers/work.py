"""What callers give to the decoding thread, and the texts that grow there.

Texts to write, prompts whose next token is looked at, texts to score; what the model thought of
each token; and the pieces of a text on their way back to the caller's event loop.
"""

from __future__ import annotations

import asyncio
import random
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from collections.abc import Sequence as ListOf
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

from pipelines.base import Alternative, FinishReason, Generation, Token, Usage
from pipelines.models.base import Delta, GenerationRequest, Watcher
from pipelines.models.replies import VisibleText
from pipelines.models.transformers.prompting import Prompt
from pipelines.text.alignment import token_spans
from pipelines.text.thinking import thinking_of

T = TypeVar("T")

PASS_TOKENS = 8192
"""Most tokens, padding included, read in one pass: bounds the memory of activations."""


class Wish(NamedTuple):
    """How a row's next token is chosen, and how many alternatives told: None measures nothing.

    Temperature 0 takes the most probable token, the first of equals. Above it, the token is drawn
    from softmax(logits / temperature) over the whole vocabulary by inverting its cumulative
    distribution at `uniform` in [0, 1), so that a draw does not depend on the other rows.
    """

    temperature: float = 0.0
    uniform: float = 0.0
    top_k: int | None = None


class Measured(NamedTuple):
    """What the model thought of a token: from log_softmax of its logits, before temperature.

    `logprob` is the token's, `entropy` (nats) is H = -sum p ln p over the whole vocabulary, and
    `best` are the most probable tokens with their log-probabilities.
    """

    logprob: float
    entropy: float
    best: tuple[tuple[int, ...], tuple[float, ...]]

    def only(self, count: int) -> Measured:
        """Return it with as many alternatives as its own row asked for."""
        tokens, logprobs = self.best
        return self._replace(best=(tokens[:count], logprobs[:count]))


class Shortlist(NamedTuple):
    """The best tokens of a position with their log-probabilities, as numbers until they are shown.

    `named` gives a token's text.
    """

    named: Callable[[int], str]
    tokens: ListOf[int]
    logprobs: ListOf[float]

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return them as people read them."""
        return tuple(
            Alternative(text=self.named(token), logprob=logprob)
            for token, logprob in zip(self.tokens, self.logprobs, strict=True)
        )


class TokenScore(NamedTuple):
    """A token's log-probability, the entropy (nats) of its position, the best tokens there.

    They come most probable first; the token itself is among them when it is probable enough.
    """

    logprob: float
    entropy: float
    best: Shortlist | tuple[Alternative, ...] = ()

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The best tokens of the position."""
        return self.best.alternatives() if isinstance(self.best, Shortlist) else self.best


def make_token(text: str, start: int, end: int, outcome: TokenScore) -> Token:
    """Return the token at `[start, end)` of `text`, with its entropy over the full vocabulary."""
    return Token(
        text=text[start:end],
        start=start,
        end=end,
        logprob=outcome.logprob,
        entropy=outcome.entropy,
        alternatives=outcome.alternatives,
    )


class Transcript:
    """Joins the pieces of tokens to text, finds stop strings, and says what may be shown.

    A piece may end inside a character. Its token waits until the character is whole, and so does
    text that may turn out to be the beginning of a stop string, so that nothing shown is ever
    taken back. `text` ends before the stop string.
    """

    def __init__(self, stop: ListOf[str], *, drops_space: bool = False) -> None:
        self.text = ""
        self.stopped = False
        self._stop = tuple(filter(None, stop))
        self._reach = max(map(len, self._stop), default=0)
        self._drops_space = drops_space
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._waiting: list[tuple[bytes, TokenScore | None]] = []
        self._places: list[tuple[int, int, TokenScore]] = []
        self._made: list[Token] = []
        self._decoded = 0
        self._shown = 0
        self._shown_tokens = 0

    @property
    def tokens(self) -> list[Token]:
        """The tokens of the text that have their places, made when they are asked for."""
        return self._tokens_until(len(self._places))

    def _tokens_until(self, count: int) -> list[Token]:
        fresh = self._places[len(self._made) : count]
        self._made += [make_token(self.text, *place) for place in fresh]
        return self._made[:count]

    def add(self, piece: bytes, outcome: TokenScore | None = None) -> None:
        """Append a token's bytes; `stopped` is True once a stop string is complete."""
        if self._drops_space and piece:
            piece, self._drops_space = piece.removeprefix(b" "), False
        before = len(self.text)
        self.text += self._decoder.decode(piece)
        self._waiting.append((piece, outcome))
        if not self._decoder.getstate()[0]:
            self._place_tokens()
        since = max(0, before - self._reach + 1)
        starts = [self.text.find(string, since) for string in self._stop]
        if found := [start for start in starts if start >= 0]:
            self._cut(min(found))

    def finish(self) -> None:
        """End the text: bytes of an unfinished character become U+FFFD."""
        self.text += self._decoder.decode(b"", final=True)
        self._place_tokens()

    def take(self, *, everything: bool = False) -> Delta | None:
        """Return the text that can be shown and was not yet; with `everything`, all of it."""
        safe = self._decoded - (0 if everything else self._possible_stop())
        count = end = 0
        for _, end, _ in self._places[self._shown_tokens :]:
            if end > safe:
                safe = self._places[self._shown_tokens + count - 1][1] if count else self._shown
                break
            count += 1
        safe = max(safe, self._shown)
        before, self._shown_tokens = self._shown_tokens, self._shown_tokens + count
        fresh = self._tokens_until(self._shown_tokens)[before:]
        delta = Delta(text=self.text[self._shown : safe], tokens=tuple(fresh))
        self._shown = safe
        return delta if delta.text or delta.tokens else None

    def _place_tokens(self) -> None:
        """Give the waiting tokens their offsets; the text must end with a whole character."""
        spans = token_spans([piece for piece, _ in self._waiting])
        for (_, outcome), (start, end) in zip(self._waiting, spans, strict=True):
            if outcome is not None:
                self._places.append((start + self._decoded, end + self._decoded, outcome))
        self._waiting.clear()
        self._decoded = len(self.text)

    def _possible_stop(self) -> int:
        """Return the length of the longest ending of the text that begins a stop string."""
        tail = self.text[max(0, self._decoded - self._reach) : self._decoded]
        lengths = (
            size
            for stop in self._stop
            for size in range(1, len(stop))
            if tail.endswith(stop[:size])
        )
        return max(lengths, default=0)

    def _cut(self, end: int) -> None:
        self.finish()
        self.stopped = True
        self.text, self._decoded = self.text[:end], end
        # What was shown, and made for that, ends before.
        self._places = [
            (start, min(over, end), score) for start, over, score in self._places if start < end
        ]


_OF_THE_CALLER = ("future", "context", "on_delta")


@dataclass(eq=False, kw_only=True)
class DecodingJob(Generic[T]):
    """Something to compute. Cancelling `future` takes it out before the next step.

    `context` is that of the caller. A copy, in this process or another, has a future of its own.
    """

    prompt: tuple[int, ...]
    reproducible: bool
    future: Future[T] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)

    @property
    def read(self) -> tuple[int, ...]:
        """What has to be read first."""
        return self.prompt

    @property
    def columns(self) -> int:
        """Places in a cache that it takes at most."""
        return len(self.prompt)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but what belongs to the caller."""
        return {name: kept for name, kept in vars(self).items() if name not in _OF_THE_CALLER}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the job with another future."""
        vars(self).update(state, future=Future(), context=copy_context(), on_delta=None)


@dataclass(eq=False, kw_only=True)
class Probe(DecodingJob[tuple[list[float], int]]):
    """The probability of each of `tokens` as the next one, and the most probable of all."""

    tokens: tuple[int, ...]


@dataclass(eq=False, kw_only=True)
class Scoring(DecodingJob[list[TokenScore]]):
    """What the model thinks of every token of `reply`."""

    reply: tuple[int, ...]
    top_k: int

    @property
    def columns(self) -> int:
        """Places in a cache that it takes at most."""
        return len(self.prompt) + len(self.reply)


class TokenSequence(DecodingJob[Generation]):
    """Text `index` of a request, being written; `limit` is the most tokens it may have.

    `on_delta`, of a sequence that is `watched`, is called in the decoding thread with each new
    piece and the number of tokens so far. `batch_size` is the largest number of sequences that were
    decoded together with this one, itself included.
    """

    def __init__(
        self,
        request: GenerationRequest,
        prompt: Prompt,
        index: int,
        *,
        limit: int,
        on_delta: Callable[[Delta, int], None] | None = None,
    ) -> None:
        super().__init__(prompt=prompt.ids, reproducible=request.reproducible)
        self.temperature = request.temperature
        self.top_k = request.top_k if request.logprobs else None
        self.limit = limit
        self.watched = on_delta is not None
        self.on_delta = on_delta
        self.batch_size = 1
        self.written: list[int] = []
        self._reason: FinishReason = "stop"
        # With the prompt: different questions under one seed would otherwise be answered with the
        # same random numbers, and their answers would agree more than chance allows.
        ids = sha256(repr(prompt.ids).encode()).hexdigest()
        draw = (request.sample or 0) * request.n + index
        self._random = random.Random(f"{request.seed}/{draw}/{ids}")
        self._uniform: float | None = None
        self.marks = prompt.marks
        self._transcript = Transcript((*request.stop, *prompt.stop), drops_space=prompt.drops_space)

    def uniform(self) -> float:
        """Return this sequence's random number in [0, 1), the same until the token is taken."""
        if self._uniform is None:
            self._uniform = self._random.random() if self.temperature > 0 else 0.0
        return self._uniform

    @property
    def read(self) -> tuple[int, ...]:
        """What has to be read before the next token: the prompt, and what was written."""
        return (*self.prompt, *self.written)

    @property
    def columns(self) -> int:
        """Places in a cache that it takes at most."""
        return len(self.prompt) + self.limit

    def accept(
        self, token: int, piece: bytes | None, outcome: TokenScore | None, *, ends: bool
    ) -> bool:
        """Take the next token, which stands for `piece`; True when the text is complete.

        `ends` says that the token is none of the text but its end. Call `result` then.
        """
        self.written.append(token)
        self._uniform = None
        if piece is not None and not ends:
            self._transcript.add(piece, outcome)
        over = ends or self._transcript.stopped
        complete = over or len(self.written) >= self.limit
        if complete:
            self._reason = "stop" if over else "length"
            self._transcript.finish()
        if self.on_delta is not None:
            delta = self._transcript.take(everything=complete)
            if delta is not None:
                self.on_delta(delta, len(self.written))
        return complete

    def result(self) -> Generation:
        """Return the finished text."""
        transcript = self._transcript
        return self._generation(transcript.text, transcript.tokens, len(self.written), self._reason)

    def result_until(
        self, deltas: Iterable[Delta], written: int, reason: FinishReason
    ) -> Generation:
        """Return the text cut short from outside: these pieces, of `written` tokens."""
        pieces = list(deltas)
        tokens = [token for piece in pieces for token in piece.tokens]
        return self._generation("".join(p.text for p in pieces), tokens, written, reason)

    def result_shown(self, shown: VisibleText, written: int) -> Generation:
        """Return the text as far as a watcher saw it, who wants no more."""
        found = self._generation(shown.shown, shown.tokens, written, "watcher", clean=True)
        return found

    def _generation(
        self,
        text: str,
        tokens: ListOf[Token],
        written: int,
        reason: FinishReason,
        *,
        clean: bool = False,
    ) -> Generation:
        """Return the text apart from what the model thought; of a `clean` one nothing is taken."""
        view, cut = VisibleText(self.marks), reason == "length"
        answer, kept = (text, tuple(tokens)) if clean else view.of(text, tokens, over=True, cut=cut)
        thinking = ""
        if answer != text:
            thinking = thinking_of(text, view.spans(text, over=True, cut=cut), self.marks)
        return Generation(
            text=answer,
            tokens=None if self.top_k is None else kept,
            usage=Usage(
                prompt_tokens=len(self.prompt),
                completion_tokens=written,
                thinking_tokens=len(tokens) - len(kept or ()),
            ),
            finish_reason=reason,
            batch_size=self.batch_size,
            thinking=thinking,
        )


class PieceStream:
    """Shows a watcher each piece, on the event loop this was made on."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[Delta, int] | None] = asyncio.Queue()

    def put(self, delta: Delta, written: int) -> None:
        """Put `delta`, called in the decoding thread: it ends after `written` tokens."""
        self._post((delta, written))

    def _post(self, item: tuple[Delta, int] | None) -> None:
        with suppress(RuntimeError):  # the loop is closed and nobody is left to see it
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    async def follow(self, sequence: TokenSequence) -> Generation:
        """Wait for the sequence, or end it where the watcher returns True; it sees no thinking."""
        sequence.future.add_done_callback(lambda _: self._post(None))
        text, tokens, shown = "", list[Token](), VisibleText(sequence.marks)
        while (item := await self._queue.get()) is not None:
            delta, written = item
            text += delta.text
            tokens += delta.tokens
            if self._tell(shown, *shown.of(text, tokens)):
                sequence.future.cancel()
                return sequence.result_shown(shown, written)
        found = sequence.future.result()
        self._tell(shown, found.text, found.tokens)
        return found

    def _tell(self, shown: VisibleText, text: str, tokens: ListOf[Token] | None) -> bool:
        """Show what is new of a text; return whether the watcher wants no more."""
        while (delta := shown.show(text, tokens)) is not None:
            if self._watch(delta):
                return True
        return False
