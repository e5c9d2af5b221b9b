"""What all models behind a network service share: what is sent, and how the reply is read."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import logging
import re
import sys
import time
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from pipelines.aio import together
from pipelines.base import Choice, Generation, Usage
from pipelines.error_words import phrase
from pipelines.errors import RateLimitError, VeriscopeError, failure
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    Overrides,
    Watcher,
    choose_by_generating,
)
from pipelines.models.replies import ReplyBuilder
from pipelines.remote import (
    CUT_OFF,
    MOST_BYTES,
    Address,
    TooLargeError,
    connection_failure,
    later,
    not_again,
    retry_after,
    server_words,
    showable,
    usable_key,
)

# From what a model service said, or failed to say, to the project's typed errors.

_NO_SUCH_MODEL = re.compile(r"(not|n't|no) (exist|found|such)|unknown model|model_not_found", re.I)
_NO_MODEL_CODE = re.compile(r"modelnot(found|exist)|invalidmodel")
_NO_CREDIT = re.compile(r"arrearage|billoverdue|insufficientquota|freetier|insufficientbalance")
_BILLING = re.compile(r"billing|good standing|overdue|free tier", re.I)
_INSPECTION = re.compile(r"datainspection")
_TOO_LONG = re.compile(r"range of input length|context.{0,9} length|maximum context|too long", re.I)
_WRONG_PATH = re.compile(r"url error|invalid url", re.I)
LOG_PROBABILITIES = re.compile(r"logprobs|log.?probabilit", re.I)
"""How a service names them when it gives none."""


class RefusalError(Exception):
    """The service answered with an error.

    `status` is an HTTP status, `code` the service's own code in lower case without underscores,
    `body` what it said, in any of the shapes in use.
    """

    def __init__(
        self, status: int, code: str | None, body: object, headers: Mapping[str, Any] | None = None
    ) -> None:
        self.status = status
        self.code = re.sub(r"[^a-z.]", "", str(code or "").lower())
        self.words = server_words(body)
        self.headers = {name.lower(): text for name, text in (headers or {}).items()}
        super().__init__(f"status {status}, {self.code}")

    @property
    def is_inspection(self) -> bool:
        """Whether the service's inspection of content stopped the text."""
        return _INSPECTION.search(self.code) is not None

    @property
    def is_about_path(self) -> bool:
        """Whether the service says that the model is not asked at this endpoint."""
        return self.status == 400 and _WRONG_PATH.search(self.words) is not None

    @property
    def is_about_model(self) -> bool:
        """Whether the service does not know the model."""
        return _NO_MODEL_CODE.search(self.code) is not None or (
            self.status in (400, 404, 422)
            and "model" in self.words.lower()
            and _NO_SUCH_MODEL.search(self.words) is not None
        )

    @property
    def is_about_fields(self) -> bool:
        """Whether it may be a field of the request that the service objects to."""
        return self.status in (400, 422) and not self.is_inspection


@dataclass(frozen=True, kw_only=True)
class ErrorReader:
    """Words failures for one model. The key never appears in an error, even if it is echoed.

    `facts` are what the words of failures name: `name`, `model` and `host`, the `protocol` that the
    service is taken to speak, the `ending` of its addresses. `client_errors` are what the client
    raises, and `refusal` finds in one of them what the service answered, None where it did not.
    """

    provider: str
    key: str | None = field(repr=False)
    facts: Mapping[str, str]
    client_errors: tuple[type[Exception], ...]
    refusal: Callable[[Exception], RefusalError | None]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the client raises, or what a misshapen reply causes, into a typed error.

        What the service answered is raised as a `RefusalError`: the caller may know how to do
        without what the service objects to; `refused` words it otherwise.
        """
        try:
            yield
        except self.client_errors as error:
            refusal = self.refusal(error)
            if refusal is not None:
                # Not `from error`: what the service said may echo the key.
                raise refusal from None
            raise self._connection(error) from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self.failure("invalid", what=phrase("detail.unreadable_answer")) from error

    def failure(self, kind: str, /, **facts: object) -> VeriscopeError:
        """Return the error of this kind ("service.KIND" in assets/errors.toml) for this model."""
        return failure(f"service.{kind}", self.provider, **self.facts, **facts)

    def refused(self, refusal: RefusalError) -> VeriscopeError:
        """Return the typed error for what the service answered."""
        words = showable(refusal.words, self.key)
        wait = retry_after(refusal.headers)
        error = self.failure(
            self._kind(refusal, words),
            told=phrase("detail.after_colon", words=words) if words else "",
            status=refusal.status,
            when=later(wait),
        )
        if isinstance(error, RateLimitError):
            error.retry_after = wait
        return error

    def _kind(self, refusal: RefusalError, words: str) -> str:
        status, code = refusal.status, refusal.code
        if refusal.is_inspection:
            return "inspection"
        if _NO_CREDIT.search(code) or (status in (400, 429) and _BILLING.search(words)):
            return "no_credit"
        if status in (401, 403):
            return "no_key" if self.key is None else "wrong_key"
        if status == 429:
            return "slow_down"
        if status == 408:
            return "gave_up"
        if status >= 500:
            return "failed"
        if refusal.is_about_model:
            return "unknown_model"
        if LOG_PROBABILITIES.search(words):
            return "no_logprobs"
        if status in (400, 413) and _TOO_LONG.search(words):
            return "too_long"
        if refusal.is_about_path:
            return "wrong_path"
        return "no_completions" if status == 404 or status < 400 else "refused"

    def _connection(self, error: Exception) -> VeriscopeError:
        if isinstance(error.__cause__ or error, TooLargeError):
            return not_again(self.failure("too_large", most=MOST_BYTES // 1_000_000))
        kind = connection_failure(error)
        if kind is None:
            return self.failure("invalid", what=CUT_OFF)
        found = self.failure(kind, words=showable(str(error.__cause__ or error), self.key))
        return not_again(found) if kind == "timeout" else found


# How many calls may be under way at once at something that callers share, and who is next.

PATIENCE = 0.5
"""Seconds that a call waits behind later ones for each further call its work needs."""


class Limiter:
    """`slots` calls at a time, None for any number; those whose work is short are let in first.

    `effort` says how many calls the work needs that a call belongs to. Of one effort it is first
    come, first served. A call is overtaken only by those that come within `PATIENCE` seconds times
    the difference of their efforts, so that every call has its turn.

    An exclusive call waits until no other is under way and then has all slots, so that nothing
    shares its batches. The limit holds among the callers of one event loop: calls from different
    loops do not see each other. `slots` may be changed meanwhile. `clock` gives seconds.

    >>> async with limiter.slot(exclusive=request.reproducible, effort=20):
    ...     reply = await model.generate(request)
    """

    def __init__(
        self, slots: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.slots = slots
        self._clock = clock
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    @property
    def busy(self) -> int:
        """Calls under way in the running event loop."""
        return self._queue().busy

    @asynccontextmanager
    async def slot(self, *, exclusive: bool = False, effort: int = 1) -> AsyncIterator[None]:
        """Wait for a slot and hold it inside the `async with` block."""
        queue = self._queue()
        await queue.take(self._clock() + effort * PATIENCE, exclusive)
        try:
            yield
        finally:
            queue.give_back()

    def _queue(self) -> _Queue:
        return self._queues.setdefault(asyncio.get_running_loop(), _Queue(self))


class _Waiting(NamedTuple):
    """A call that waits. All grow older at the same rate, so that their order never changes."""

    due: float
    arrival: int
    turn: asyncio.Future[None]
    exclusive: bool


class _Queue:
    """The calls of one event loop, those under way counted and those waiting in order."""

    def __init__(self, limiter: Limiter) -> None:
        self.busy = 0
        self._limiter = limiter
        self._exclusive = False
        self._arrivals = count()
        self._waiting: list[_Waiting] = []

    async def take(self, due: float, exclusive: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, _Waiting(due, next(self._arrivals), turn, exclusive))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._admit()
            else:
                self.give_back()
            raise

    def give_back(self) -> None:
        self.busy -= 1
        # An exclusive call runs alone, so the call that ends while it runs is that call.
        self._exclusive = False
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            if not first.turn.done():
                slots = self._limiter.slots
                full = slots is not None and self.busy >= slots
                if self._exclusive or full or (first.exclusive and self.busy):
                    return
                self.busy += 1
                self._exclusive = first.exclusive
                first.turn.set_result(None)
            heapq.heappop(self._waiting)


CONNECT_SECONDS = 10.0
"""How long a connection may take to be made."""

LONGEST_SECONDS = 300.0
"""How long a call may take, from when it is sent to its last character."""

CHARACTERS_PER_TOKEN = 20
CHARACTERS_AROUND = 2000
"""A reply has at most 20 characters for every token that it may have, and 2000 more. A token of an
English text has 4 or 5 on average; words of a vocabulary are seldom longer than 20."""

_MAX_ALTERNATIVES = 20
_DISPENSABLE = (
    "stream_options",
    "seed",
    "n",
    "response_format",
    "continue_final_message",
    "add_generation_prompt",
    "enable_thinking",
    "partial",
    "logprobs",
    "top_logprobs",
)
_TOGETHER = ({"continue_final_message", "add_generation_prompt"}, {"logprobs", "top_logprobs"})
"""Fields that must be left out together."""

_LOG_PROBABILITIES = {"logprobs", "top_logprobs"}
_WORTH_A_TRY = {"response_format", *_LOG_PROBABILITIES}
"""A schema, or a number of alternatives, may be refused where the next one is not."""

# Of at most four digits: more are no number of alternatives.
_NUMBER = re.compile(r"(?<![\w.-])\d{1,4}(?![\w-]|\.\d)")

_logger = logging.getLogger(__name__)

Client = TypeVar("Client")


class ReplyPart(NamedTuple):
    """A piece of text `number` (from 0) of a reply, without what the model only thought.

    `entries` are those of its tokens in OpenAI's form; `finish_reason` is None until it has ended.
    """

    number: int
    content: str
    entries: Sequence[Mapping[str, Any]]
    finish_reason: str | None


class HostedModel(Model, Generic[Client]):
    """A model whose texts come from a service, through a `Client` for each event loop.

    A begun answer is sent unless the model is `known` not to continue it. `timeout` is in seconds
    and bounds the wait for the next bytes; `longest` bounds the whole call, all texts of its
    request together. A text that becomes longer than its `max_tokens` can be is cut. The key comes
    from the argument alone. Reproducible requests have the service to themselves among the calls
    that share `limiter`, and ask for one text at a time. Optional fields that the service refuses
    are left out from then on, and the answer is asked for again. So are log-probabilities: a text
    without them is worth more than none. They are left out of the one request, and from then on
    when they were refused twice in a row. Where only their number is refused, fewer are asked for.
    """

    _max_texts: int | None = None
    """The largest number of texts that one request may ask for, None for any number; what is
    missing then is asked for one by one."""

    _max_streamed: int | None = None
    """The same for a stream."""

    _always_stream: bool = False
    """Whether unwatched calls are streamed too."""

    _usual: ClassVar[Capabilities]
    """What a model of the service can do, as far as nothing else is known."""

    _protocol: ClassVar[str]
    """What the service is taken to speak, for messages."""

    _ending: ClassVar[str]
    """How the service's addresses end, for messages."""

    _client_errors: ClassVar[tuple[type[Exception], ...]]
    """What the client raises."""

    def __init__(
        self,
        name: str,
        model: str,
        address: Address,
        api_key: str | None,
        *,
        known: Overrides,
        timeout: float,
        longest: float = LONGEST_SECONDS,
        provider: str | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self.name = name
        self.provider = provider or address.host
        self._model = model
        self._address = address
        self._key = usable_key(api_key, self.provider)
        self._capabilities = self._usual.overridden(**known)
        self._continues = known.get("prefill") is not False
        self._timeout = timeout
        self._longest = longest
        self._errors = ErrorReader(
            provider=self.provider,
            key=self._key,
            facts={
                "name": name,
                "model": model,
                "host": address.host,
                "protocol": self._protocol,
                "ending": self._ending,
            },
            client_errors=(*self._client_errors, TooLargeError),
            refusal=self._refusal,
        )
        self._limiter = limiter or Limiter()
        self._refused: set[str] = set()
        """Fields of a request that the service turned out not to take."""
        self._most_alternatives = sys.maxsize
        """To a token, as far as the service told."""
        self._refused_alternatives: int | None = None
        """For how many the service last refused log-probabilities; None when it did not."""
        # A connection belongs to the event loop it was opened in.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; without tokens where log-probabilities stay away.

        Raises CapabilityError where the model is known to give none.
        """
        if request.logprobs and not self._capabilities.logprobs:
            raise self._errors.failure("no_logprobs")
        if prefix_of(request) and not self._continues:
            raise self._errors.failure("no_continuing")
        shown = None if watch is None else partial(_show_without_key, watch, self._key)
        async with self._limiter.slot(exclusive=request.reproducible):
            try:
                async with asyncio.timeout(self._longest):
                    texts = await self._texts(request, shown)
                    return tuple(_without_key(one, self._key) for one in texts)
            except TimeoutError as error:
                raise not_again(self._errors.failure("timeout")) from error

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Choose as every model does, but by its text where the service refuses
        log-probabilities.
        """
        return await choose_by_generating(self, request, by_text="logprobs" in self._refused)

    async def _texts(self, request: GenerationRequest, watch: Watcher | None) -> list[Generation]:
        """Return all texts of a request, in one request of the service or in several."""
        first = 1 if request.reproducible else request.n
        texts = await self._ask(request, first, 0, watch)
        missing = range(len(texts), request.n)
        if request.reproducible:
            for index in missing:
                texts += await self._ask(request, 1, index, None)
        elif missing:
            more = await together(*(self._ask(request, 1, index, None) for index in missing))
            texts += [text for texts in more for text in texts]
        return texts

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await self._close(client)

    def _client(self) -> Client:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = self._new_client()
        return self._clients[loop]

    @staticmethod
    @abstractmethod
    def _refusal(error: Exception) -> RefusalError | None:
        """Return what the service answered, None where the client failed by itself."""

    @abstractmethod
    def _new_client(self) -> Client:
        """Return a client for the running event loop."""

    @abstractmethod
    async def _close(self, client: Client) -> None:
        """Close a client's connections."""

    def _fields(self, request: GenerationRequest, n: int, index: int) -> dict[str, Any]:
        """Return the fields of a request for `n` texts, of which `index` is the first."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if n > 1:
            body["n"] = n
        if request.temperature > 0:
            body["seed"] = sampling_seed(request, index)
        if request.stop:
            body["stop"] = list(request.stop)
        if request.logprobs:
            limit = self._capabilities.top_logprobs or _MAX_ALTERNATIVES
            body["logprobs"] = True
            # Zero alternatives means "none at all" to some servers, llama.cpp among them.
            body["top_logprobs"] = max(1, min(request.top_k, limit, self._most_alternatives))
        if request.json_schema is not None and self._capabilities.structured_output:
            form: dict[str, Any] = {"name": "reply", "schema": dict(request.json_schema)}
            if _is_closed(request.json_schema):
                # OpenAI guarantees the schema only in strict mode, and refuses loose schemas there.
                form["strict"] = True
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    @abstractmethod
    async def _whole(self, fields: dict[str, Any]) -> tuple[list[ReplyPart], Usage]:
        """Return the texts in one piece; raises what the client raises."""

    @abstractmethod
    def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        """Return the texts in pieces, and the tokens used so far where the service tells."""

    def _adapts(
        self, refusal: RefusalError, fields: dict[str, Any], left_out: set[str], streamed: bool
    ) -> bool:
        """Return whether to ask again in another way; `left_out` holds for this request alone."""
        return False

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        """Return the texts of one request, at most `n`; the first is the request's `index`-th."""
        left_out: set[str] = set()
        while True:
            streamed = watch is not None or self._always_stream
            refused = self._refused | left_out
            limit = (self._max_streamed if streamed else self._max_texts) or n
            count = 1 if "n" in refused else min(n, limit)
            fields = _without(self._fields(request, count, index), refused)
            prefix = prefix_of(request)
            most = longest_text(request)
            replies = [
                ReplyBuilder(logprobs=request.logprobs, prefix=prefix, most=most)
                for _ in range(count)
            ]
            try:
                if streamed:
                    texts = await self._read_stream(fields, replies, watch)
                else:
                    texts = await self._read_whole(fields, replies)
            except RefusalError as refusal:
                begun = any(reply.begun for reply in replies)
                if begun or not self._gives_way(refusal, fields, left_out, streamed):
                    raise self._errors.refused(refusal) from refusal
                continue
            if "logprobs" in fields:
                self._refused_alternatives = None
            return texts

    def _gives_way(
        self, refusal: RefusalError, fields: dict[str, Any], left_out: set[str], streamed: bool
    ) -> bool:
        """Return whether the request is worth asking again, without what the service objects to."""
        if not refusal.is_about_fields:
            return False
        if self._adapts(refusal, fields, left_out, streamed):
            return True
        dropped = objections(refusal.words, fields)
        if "logprobs" in dropped:
            sent = fields.get("top_logprobs") or 0
            if fewer := fewer_alternatives(refusal.words, sent):
                self._most_alternatives = fewer
                return True
            if self._refused_alternatives == sent:
                self._refused |= dropped & _LOG_PROBABILITIES
                words = showable(refusal.words, self._key)
                _logger.warning("%s refuses log-probabilities: %s", self.name, words)
            self._refused_alternatives = sent
        left_out |= dropped
        self._refused |= dropped - _WORTH_A_TRY
        return bool(dropped)

    async def _read_whole(
        self, fields: dict[str, Any], replies: Sequence[ReplyBuilder]
    ) -> list[Generation]:
        with self._errors.reading():
            parts, usage = await self._whole(fields)
            if not parts:
                raise self._errors.failure("invalid", what=phrase("detail.no_text_in_answer"))
            texts: list[Generation] = []
            for part, reply in zip(parts, replies, strict=False):
                reply.add(part.content, part.entries)
                reply.close(part.finish_reason or "stop")
                texts.append(reply.generation(Usage() if texts else usage))
        return texts

    async def _read_stream(
        self, fields: dict[str, Any], replies: Sequence[ReplyBuilder], watch: Watcher | None
    ) -> list[Generation]:
        first, *others = replies
        usage: Usage | None = None
        async with aclosing(self._stream(fields)) as pieces:
            while True:
                shown: Delta | None = None
                if first.is_full:
                    # It goes on past the limit that it was given.
                    break
                try:
                    with self._errors.reading():
                        piece = await anext(pieces, None)
                        if piece is None:
                            break
                        parts, counted = piece
                        usage = counted or usage
                        shown = _take(parts, replies)
                except RefusalError as refusal:
                    if not (first.begun and refusal.is_inspection):
                        raise
                    first.close("content_filter")
                    break
                if shown is not None and watch is not None and watch(shown):
                    return [reply.stopped(usage) for reply in replies]
        if first.finish_reason is None:
            raise self._errors.failure("invalid", what=phrase("detail.stream_broke_off"))
        with self._errors.reading():
            rest = first.rest()
            done = [first, *(reply for reply in others if reply.finish_reason is not None)]
            counts = [usage or Usage(), *(Usage() for _ in others)]
            texts = [reply.generation(used) for reply, used in zip(done, counts, strict=False)]
        if rest is not None and watch is not None:
            watch(rest)
        return texts


_SHORTEST_KEY = 12
"""Characters; what is shorter ("none", "EMPTY") is no secret, and may be a word of a text."""


def _hidden(text: str, key: str | None) -> str:
    return text if key is None or len(key) < _SHORTEST_KEY else text.replace(key, "[key]")


def _without_key(generation: Generation, key: str | None) -> Generation:
    """Return a text in which the service does not repeat the key that it was sent: it is stored."""
    text = _hidden(generation.text, key)
    if text == generation.text:
        return generation
    # The tokens are those of the text that was sent.
    return generation.model_copy(update={"text": text, "tokens": None})


def _show_without_key(watch: Watcher, key: str | None, delta: Delta) -> bool | None:
    text = _hidden(delta.text, key)
    if text != delta.text:
        delta = delta.model_copy(update={"text": text, "tokens": ()})
    return watch(delta)


def _without(fields: Mapping[str, Any], refused: set[str]) -> dict[str, Any]:
    """Return `fields` without those that the service does not take, of a request or of a
    message.
    """
    body = {field: value for field, value in fields.items() if field not in refused}
    if "max_tokens" in refused:
        body["max_completion_tokens"] = fields["max_tokens"]
    body["messages"] = [
        {field: value for field, value in turn.items() if field not in refused}
        for turn in fields["messages"]
    ]
    return body


def _take(parts: Iterable[ReplyPart], replies: Sequence[ReplyBuilder]) -> Delta | None:
    """Add what arrived to its replies; returns what can be shown of the first."""
    shown: Delta | None = None
    for part in parts:
        if not 0 <= part.number < len(replies):
            continue
        delta = replies[part.number].add(part.content, part.entries)
        if part.finish_reason:
            replies[part.number].close(part.finish_reason)
        if part.number == 0 and delta is not None:
            shown = delta
    return shown


def prefix_of(request: GenerationRequest) -> str:
    """Return the begun text that the model is to continue, empty when there is none."""
    last = request.messages[-1] if request.messages else None
    return last.content if last is not None and last.role == "assistant" else ""


def longest_text(request: GenerationRequest) -> int:
    """Return how many characters a reply to `request` may have at the most, its thinking
    included.
    """
    return len(prefix_of(request)) + CHARACTERS_AROUND + CHARACTERS_PER_TOKEN * request.max_tokens


def sampling_seed(request: GenerationRequest, index: int) -> int:
    """Return a seed in [0, 2**31) of the `index`-th text: differs by seed, sample, index and
    question.
    """
    draw = (request.sample or 0) * request.n + index
    turns = "\x00".join(f"{turn.role}\x01{turn.content}" for turn in request.messages)
    digest = hashlib.sha256(f"{request.seed}/{draw}/{turns}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _is_closed(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if schema.get("type") == "object" or properties is not None:
            names = set(properties or ())
            if schema.get("additionalProperties") is not False:
                return False
            if set(schema.get("required") or ()) != names:
                return False
        return all(_is_closed(part) for part in schema.values())
    return not isinstance(schema, list) or all(_is_closed(part) for part in schema)


def objections(words: str, body: Mapping[str, Any]) -> set[str]:
    """Return the fields of `body` that a refusal names and the request can do without.

    "max_tokens" among them stands for its newer name `max_completion_tokens`. Log-probabilities
    may also be named in words.
    """
    if "max_tokens" in body and "max_completion_tokens" in words:
        return {"max_tokens"}
    sent = {*body, *(field for turn in body.get("messages") or () for field in turn)}
    named = {field for field in _DISPENSABLE if field in sent and _names(words, field)}
    if LOG_PROBABILITIES.search(words):
        named |= {"logprobs"} & sent
    for fields in _TOGETHER:
        named |= fields & sent if named & fields else set()
    return named


def fewer_alternatives(words: str, sent: int) -> int | None:
    """Return the largest number below `sent`, from 1, that a refusal names as what it would take.

    Numbers that are part of a name or of a longer number, such as "qwen-7b" or "2.5", are none.
    """
    named = [int(number) for number in _NUMBER.findall(words)]
    return max((number for number in named if 1 <= number < sent), default=None)


def _names(words: str, field: str) -> bool:
    # A single letter counts only where it stands for a parameter: prose is full of them.
    pattern = rf"(['\"`]|parameters?\.){field}\b" if len(field) == 1 else rf"(?<!\w){field}(?!\w)"
    return re.search(pattern, words) is not None
