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
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
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
    Concession,
    Delta,
    GenerationRequest,
    Model,
    Overrides,
    Watcher,
    choose_by_generating,
)
from pipelines.models.dialects import (
    FORMS,
    LOG_PROBABILITIES,
    RefusalError,
    bounded_length,
    fewer_alternatives,
    form_guessed,
    form_objected_to,
    is_unsupported,
    objections,
    ordered,
    spoken,
    takes_more,
)
from pipelines.models.replies import ReplyBuilder, ReplyPart
from pipelines.remote import (
    CUT_OFF,
    MOST_BYTES,
    Address,
    TooLargeError,
    connection_failure,
    later,
    not_again,
    retry_after,
    showable,
    usable_key,
)
from pipelines.text.thinking import NO_MARKS, Marks

# From what a model service said, or failed to say, to the project's typed errors.

_NO_CREDIT = re.compile(r"arrearage|billoverdue|insufficientquota|freetier|insufficientbalance")
_BILLING = re.compile(r"billing|good standing|overdue|free tier", re.I)


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
        return failure(f"service.{kind}", self.provider, **{"tried": "", **self.facts, **facts})

    def refused(self, refusal: RefusalError, tried: Sequence[Concession] = ()) -> VeriscopeError:
        """Return the typed error for the service's answer; its remedy names what was `tried`."""
        words = showable(refusal.words, self.key)
        if not words and refusal.named:
            words = showable(refusal.named, self.key)
        wait = retry_after(refusal.headers)
        ways = [phrase(f"concession.{one}") for one in tried]
        error = self.failure(
            self._kind(refusal, words),
            told=phrase("detail.after_colon", words=words) if words else "",
            status=refusal.status,
            when=later(wait),
            tried=phrase("detail.tried", ways=ways) if ways else "",
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
        if refusal.is_too_long:
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
_LOG_PROBABILITIES: set[Concession] = {"logprobs", "top_logprobs"}

_THINKING_ROOM = 2048
"""Tokens that a model may think in, beside those of its text, once it left none for the text."""

_LEAST_ROOM = 32
"""Tokens of a request from which on a text is expected beside the thinking."""

_MOST_FEWEST = 64
"""The largest smallest length of a text that a service may want."""

_REMEMBERED = 512
"""Draws of a model whose ids are remembered."""

_logger = logging.getLogger(__name__)

Client = TypeVar("Client")


class HostedModel(Model, Generic[Client]):
    """A model whose texts come from a service, through a `Client` for each event loop.

    A begun answer is sent unless the model is `known` not to continue it. `timeout` is in seconds
    and bounds the wait for the next bytes; `longest` bounds the whole call, all texts of its
    request together. A text that becomes longer than its `max_tokens` can be is cut. The key comes
    from the argument alone. Reproducible requests have the service to themselves among the calls
    that share `limiter`, and ask for one text at a time.

    What the service does not take is given up once, kept among the `concessions` of its
    capabilities, and the answer is asked for again (`dialects`). So are log-probabilities: a text
    without them is worth more than none. They are left out of the one request, and from then on
    when they were refused twice in a row; so is a schema, unless the service says that it takes
    none. Where only their number is refused, fewer are asked for. Thinking is no part of a text. A
    draw that the service gave before, by its id and its words, is marked as `repeated`.
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
            client_errors=(*self._client_errors(), TooLargeError),
            refusal=self._refusal,
        )
        self._limiter = limiter or Limiter()
        self._made: set[Concession] = set(self._capabilities.concessions)
        self._most_alternatives = sys.maxsize
        """To a token, as far as the service told."""
        self._fewest_tokens, self._most_tokens = 1, sys.maxsize
        """Of a text, as far as the service told."""
        self._refused_alternatives: int | None = None
        """For how many the service last refused log-probabilities; None when it did not."""
        self._schema_refused = False
        """Whether the last request with a schema was refused for it."""
        self._marks: Marks | None = None
        """What the model's template declares around its thinking; None while nobody asked."""
        self._drawn: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        """The texts of draws by the service's ids."""
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
        """Choose as every model does, but by text where log-probabilities are refused."""
        return await choose_by_generating(self, request, by_text="logprobs" in self._made)

    @property
    def capabilities(self) -> Capabilities:
        """What this model can do, with what its service turned out not to take."""
        made = ordered(self._made)
        if made == self._capabilities.concessions:
            return self._capabilities
        return self._capabilities.model_copy(update={"concessions": made})

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
    def _client_errors() -> tuple[type[Exception], ...]:
        """Return what the client raises."""

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
            "max_tokens": self._length_of(request),
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

    def _length_of(self, request: GenerationRequest) -> int:
        """Return how many tokens are asked for, room for thinking included."""
        room = _THINKING_ROOM if "room_to_think" in self._made else 0
        return max(self._fewest_tokens, min(request.max_tokens + room, self._most_tokens))

    @abstractmethod
    async def _whole(self, fields: dict[str, Any]) -> tuple[list[ReplyPart], Usage]:
        """Return the texts in one piece; raises what the client raises."""

    @abstractmethod
    def _stream(
        self, fields: dict[str, Any]
    ) -> AsyncGenerator[tuple[list[ReplyPart], Usage | None], None]:
        """Return the texts in pieces, and the tokens used so far where the service tells."""

    def _adapts(self, refusal: RefusalError, fields: dict[str, Any], left_out: set[Any]) -> bool:
        """Return whether to ask again in this protocol; `left_out` holds for this request alone."""
        return False

    async def _ask(
        self, request: GenerationRequest, n: int, index: int, watch: Watcher | None
    ) -> list[Generation]:
        """Return the texts of one request, at most `n`; the first is the request's `index`-th."""
        left_out: set[Concession] = set()
        tried: list[Concession] = []
        while True:
            made = self._made | left_out
            wanted = watch is not None or self._always_stream or "stream_only" in made
            streamed = wanted and "no_stream" not in made
            limit = (self._max_streamed if streamed else self._max_texts) or n
            count = 1 if "n" in made else min(n, limit)
            fields = spoken(self._fields(request, count, index), made)
            most = longest_text(request, self._length_of(request))
            replies = [
                ReplyBuilder(
                    logprobs=request.logprobs,
                    prefix=prefix_of(request),
                    most=most,
                    marks=self._marks or NO_MARKS,
                    stop=request.stop if "stop" in made else (),
                )
                for _ in range(count)
            ]
            try:
                if streamed:
                    texts = await self._read_stream(fields, replies, watch)
                else:
                    texts = await self._read_whole(fields, replies, watch)
            except RefusalError as refusal:
                begun = any(reply.begun for reply in replies)
                if begun or not self._gives_way(refusal, fields, made, left_out, streamed):
                    raise self._errors.refused(refusal, ordered(tried)) from refusal
                tried += (self._made | left_out) - made
                continue
            self._made |= left_out & FORMS
            if "logprobs" in fields:
                self._refused_alternatives = None
            if "response_format" in fields:
                self._schema_refused = False
            if self._thought_only(request, texts):
                self._made.add("room_to_think")
                continue
            return self._without_repeats(request, texts, replies)

    def _thought_only(self, request: GenerationRequest, texts: Sequence[Generation]) -> bool:
        """Return whether the model used up all its tokens for thinking, for the first time."""
        first = texts[0]
        return (
            "room_to_think" not in self._made
            and request.max_tokens >= _LEAST_ROOM
            and first.finish_reason == "length"
            and not first.text.strip()
            and bool(first.thinking or first.usage.thinking_tokens)
        )

    def _without_repeats(
        self, request: GenerationRequest, texts: list[Generation], replies: Sequence[ReplyBuilder]
    ) -> list[Generation]:
        """Return the texts, marked where the service answered a draw with an earlier one.

        A service that gives different texts the same id has none that tells.
        """
        name = next((reply.id for reply in replies if reply.id), "")
        if not name:
            return texts
        written = tuple(text.text for text in texts)
        known = self._drawn.setdefault(name, written)
        same = known is not written and known == written and any(map(str.strip, written))
        if same and request.temperature > 0:
            self._made.add("cached_samples")
            return [text.model_copy(update={"repeated": True}) for text in texts]
        if known != written:
            self._drawn[name] = ()
        while len(self._drawn) > _REMEMBERED:
            self._drawn.popitem(last=False)
        return texts

    def _gives_way(
        self,
        refusal: RefusalError,
        fields: dict[str, Any],
        made: Set[Concession],
        left_out: set[Concession],
        streamed: bool,
    ) -> bool:
        """Return whether the request is worth asking again, in a way that the service takes.

        `made` are the concessions with which it was sent: meanwhile another that was refused may
        have made more.
        """
        if not refusal.may_be_about_form or refusal.is_inspection:
            return False
        if self._adapts(refusal, fields, left_out):
            return True
        form = form_objected_to(refusal, fields, made, streamed=streamed)
        if form is not None:
            self._made.add(form)
            return True
        if not refusal.is_about_fields or refusal.is_too_long:
            return False
        if self._bounds(refusal, fields):
            return True
        dropped = objections(refusal.words, fields, refusal.named)
        if "temperature" in dropped and takes_more(refusal.words) and fields["temperature"] == 0:
            dropped.remove("temperature")
            dropped.add("temperature_above_zero")
        if "logprobs" in dropped:
            sent = fields.get("top_logprobs") or 0
            if self._refused_alternatives == sent:
                self._made |= dropped & _LOG_PROBABILITIES
                words = showable(refusal.words, self._key)
                _logger.warning("%s refuses log-probabilities: %s", self.name, words)
            self._refused_alternatives = sent
        new = dropped - made
        for_now = set(_LOG_PROBABILITIES) if "logprobs" in new else set()
        if "response_format" in new:
            if not (self._schema_refused or is_unsupported(refusal.words)):
                for_now.add("response_format")
            self._schema_refused = True
        left_out |= new
        self._made |= new - for_now
        if not new:
            guess = form_guessed(refusal, fields, made, streamed=streamed)
            if guess is not None:
                new.add(guess)
                left_out.add(guess)
        return bool(new)

    def _bounds(self, refusal: RefusalError, fields: Mapping[str, Any]) -> bool:
        """Return whether the service names how many tokens or alternatives it would take."""
        words = f"{refusal.words} {refusal.named}"
        sent = fields.get("top_logprobs")
        if sent and LOG_PROBABILITIES.search(words):
            if fewer := fewer_alternatives(refusal.words, sent):
                self._most_alternatives = fewer
                return True
            return False
        length = fields.get("max_tokens") or fields.get("max_completion_tokens")
        if length and re.search(r"max_\w*tokens|maxtokens|max_new_tokens", words, re.I):
            bound = bounded_length(refusal.words, length)
            if bound and bound < length and bound < self._most_tokens:
                self._most_tokens = bound
                return True
            if bound and bound > length and self._fewest_tokens < bound <= _MOST_FEWEST:
                self._fewest_tokens = bound
                return True
        return False

    async def _read_whole(
        self, fields: dict[str, Any], replies: Sequence[ReplyBuilder], watch: Watcher | None
    ) -> list[Generation]:
        with self._errors.reading():
            parts, usage = await self._whole(fields)
            if not parts:
                raise self._errors.failure("invalid", what=phrase("detail.no_text_in_answer"))
            texts: list[Generation] = []
            for part, reply in zip(parts, replies, strict=False):
                reply.take(part)
                reply.close(part.finish_reason or "stop")
            await self._learn_marks(replies)
            for _, reply in zip(parts, replies, strict=False):
                texts.append(reply.generation(Usage() if texts else usage))
        if watch is not None and texts[0].text:
            # The service gives no streams: the text comes all at once.
            watch(Delta(text=texts[0].text, tokens=texts[0].tokens or ()))
        return texts

    async def _learn_marks(self, replies: Sequence[ReplyBuilder]) -> None:
        """Ask once what the model's template declares, if a reply may think in unknown marks."""
        if self._marks is not None or not any(reply.is_doubtful for reply in replies):
            return
        self._marks = await self._declared_marks()
        for reply in replies:
            reply.declare(self._marks)

    async def _declared_marks(self) -> Marks:
        """Return the marks around thinking that the service can tell of its model."""
        return NO_MARKS

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
            await self._learn_marks(replies)
            rest = first.rest()
            done = [first, *(reply for reply in others if reply.finish_reason is not None)]
            counts = [usage or Usage(), *(Usage() for _ in others)]
            texts = [reply.generation(used) for reply, used in zip(done, counts, strict=False)]
        if watch is not None:
            for delta in rest:
                watch(delta)
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


def _take(parts: Iterable[ReplyPart], replies: Sequence[ReplyBuilder]) -> Delta | None:
    """Add what arrived to its replies; returns what can be shown of the first."""
    shown: Delta | None = None
    for part in parts:
        if not 0 <= part.number < len(replies):
            continue
        delta = replies[part.number].take(part)
        if part.finish_reason:
            replies[part.number].close(part.finish_reason)
        if part.number == 0 and delta is not None:
            shown = delta
    return shown


def prefix_of(request: GenerationRequest) -> str:
    """Return the begun text that the model is to continue, empty when there is none."""
    last = request.messages[-1] if request.messages else None
    return last.content if last is not None and last.role == "assistant" else ""


def longest_text(request: GenerationRequest, tokens: int | None = None) -> int:
    """Return how many characters a reply to `request` may have at the most, its thinking
    included; `tokens` is how many are asked for, where these are not those of the request.
    """
    most = request.max_tokens if tokens is None else tokens
    return len(prefix_of(request)) + CHARACTERS_AROUND + CHARACTERS_PER_TOKEN * most


def sampling_seed(request: GenerationRequest, index: int) -> int:
    """Return a seed in [0, 2**31) of the `index`-th text, by seed, sample, index and question."""
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
