"""The limits of a run, or of several together, and what was used of them.

Every call of a model asks here before it is made, whichever method makes it. A call that could
pass a limit is not made. So calls never pass their limit, and neither do tokens and money as far
as they can be known beforehand: what a call reads is estimated from its characters, and what it
writes is at most what it asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from pipelines.base import Frozen, Generation
from pipelines.errors import LimitReached
from pipelines.models.base import ChoiceRequest, ModelRequest, ScoreRequest, SimilarityRequest
from pipelines.models.providers import Currency, Price

CHARACTERS_PER_TOKEN = 4
"""Characters that are counted as one token where a model reports none: about right for English."""

_BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 that are counted as one token before a call is made. The estimate must not be too
low, or a limit would be passed: a Chinese character has three bytes."""

_ROUNDING = 1e-9
"""How far a sum of money may pass its limit, as a part of it: sums of fractions are not exact."""

_TURNS = 20
"""Turns of the event loop that a refusal waits while no call is running."""

LimitName = Literal["calls", "tokens", "seconds", "money"]
LIMIT_NAMES: tuple[LimitName, ...] = get_args(LimitName)


class RunLimits(Frozen):
    """The most that all methods of a run may use together; None is no limit.

    `calls` (at least 1) are those that reach a model, including judges and failed attempts;
    `tokens` (at least 1) are those read and written; `seconds` (above 0) count from the start of
    the run; `money` (0 or more) is in `currency`. Replies from the cache count as nothing.

    `times` (at least 1) ends a run that takes more than so many times the calls or the tokens that
    were expected, where something was expected: a model that ignores what it is asked for may make
    a method ask on and on.
    """

    calls: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    money: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    currency: Currency = "USD"
    times: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = 2.0

    @property
    def names(self) -> tuple[LimitName, ...]:
        """Those that are set."""
        return tuple(name for name in LIMIT_NAMES if getattr(self, name) is not None)


LEAST_CALLS, LEAST_TOKENS = 40, 20_000
"""What a run may take whatever was expected of it: an estimate of little is easily wrong by far."""


class ExpectedUsage(NamedTuple):
    """The calls and tokens that a run is expected to take."""

    calls: float
    tokens: float


class UsageTotals(NamedTuple):
    """Calls, tokens read and written, and money by currency."""

    calls: int = 0
    read: float = 0.0
    written: float = 0.0
    money: Mapping[str, float] = {}

    @property
    def tokens(self) -> float:
        """Tokens read and written."""
        return self.read + self.written

    def plus(self, other: UsageTotals) -> UsageTotals:
        """Return both together."""
        units = {**self.money, **other.money}
        return UsageTotals(
            calls=self.calls + other.calls,
            read=self.read + other.read,
            written=self.written + other.written,
            money={one: self.money.get(one, 0.0) + other.money.get(one, 0.0) for one in units},
        )


class TokenCount(NamedTuple):
    """Tokens of a call."""

    read: float
    written: float


def tokens_of(
    request: ModelRequest | SimilarityRequest,
    generations: Sequence[Generation],
    *,
    by_characters: bool = False,
) -> TokenCount:
    """Return the tokens of an answered call: as reported, else (or `by_characters`) estimated.

    A closed choice reports none: its prompt is estimated, and one token is written.
    """
    if isinstance(request, SimilarityRequest):
        return TokenCount(0.0, 0.0)
    prompt = sum(len(message.content) for message in request.messages) / CHARACTERS_PER_TOKEN
    if isinstance(request, ChoiceRequest):
        return TokenCount(prompt, 1.0)
    read = written = 0.0
    for one in generations:
        counted = one.usage.prompt_tokens, one.usage.completion_tokens
        if by_characters or not any(counted):
            counted = prompt, (len(one.text) + len(one.thinking)) / CHARACTERS_PER_TOKEN
        read, written = read + counted[0], written + counted[1]
    return TokenCount(read, written)


def most_tokens(request: ModelRequest) -> TokenCount:
    """Return the most tokens that a call can use, estimated before it is made: read from the bytes
    of its texts, written from what it asks for.
    """
    texts = [message.content for message in request.messages]
    if isinstance(request, ScoreRequest):
        texts.append(request.text)
    read = sum(len(text.encode("utf-8", "replace")) for text in texts) / _BYTES_PER_TOKEN
    if isinstance(request, ChoiceRequest):
        return TokenCount(read, 1.0)
    if isinstance(request, ScoreRequest):
        return TokenCount(read, 0.0)
    return TokenCount(read * request.n, float(request.max_tokens * request.n))


Settle = Callable[[Sequence[Generation]], None]
"""Called with the replies to an admitted call."""


@dataclass(eq=False)
class Ledger:
    """Counts what the calls of one run use, and refuses a call that could pass a limit.

    `prices` are those of the models by role, for a million tokens; a role without one costs
    nothing. A call that could pass a limit while others are running waits for them to end, because
    they may use less than was reserved for them. After the first refusal every further call is
    refused. Use it on one event loop; `spent` and `reached` may be read in any thread.

    `within` is that of several runs together: it has to admit each call too, at the prices of the
    run that makes it. `expected` is what the run is expected to take, None where nobody knows.
    """

    limits: RunLimits = field(default_factory=RunLimits)
    prices: Mapping[str, Price] = field(default_factory=dict)
    within: Ledger | None = None
    expected: ExpectedUsage | None = None
    reached: LimitName | None = field(default=None, init=False)
    spent: UsageTotals = field(default=UsageTotals(), init=False)
    _surpassed: bool = field(default=False, init=False)
    """Whether it is what was expected that was passed, and no limit."""
    _held: list[UsageTotals] = field(default_factory=list, init=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, init=False)

    @asynccontextmanager
    async def admitted(
        self, role: str, request: ModelRequest, *, writes: bool = True
    ) -> AsyncIterator[Settle]:
        """Reserve what one call can use; the block makes the call and gives its replies to the
        function that it receives.

        A failed attempt counts as one call without tokens. `writes` is False for models that only
        judge, whose tokens are not counted. Raises LimitReached before the block begins.
        """
        most = self._taken(role, most_tokens(request)) if writes else UsageTotals(calls=1)
        # A call that is refused takes nothing.
        took = UsageTotals()

        def settle(generations: Sequence[Generation]) -> None:
            nonlocal took
            if writes:
                took = self._taken(role, tokens_of(request, generations))

        async with self._reserved(most, lambda: took):
            took = UsageTotals(calls=1)
            yield settle

    @asynccontextmanager
    async def _reserved(
        self, most: UsageTotals, took: Callable[[], UsageTotals]
    ) -> AsyncIterator[None]:
        """Hold `most` back while the block lasts, and count what it `took` at its end."""
        await self._make_room(most)
        self._held.append(most)
        whole = nullcontext() if self.within is None else self.within._reserved(most, took)
        try:
            async with whole:
                yield
        finally:
            self._held.remove(most)
            self.spent = self.spent.plus(took())
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)

    @asynccontextmanager
    async def within_time(self, now: float) -> AsyncIterator[None]:
        """Cancel the block at the run's time limit, begun `now` s ago; raises LimitReached then."""
        most = self.limits.seconds
        clock = asyncio.timeout(None if most is None else max(0.0, most - now))
        try:
            async with clock:
                yield
        except TimeoutError:
            if not clock.expired():
                raise
            raise self._refusal("seconds") from None

    def late(self, now: float) -> LimitReached | None:
        """Return the time limit's error if reached `now` seconds after the start, else None."""
        most = self.limits.seconds
        return None if most is None or now < most else self._refusal("seconds")

    async def _make_room(self, most: UsageTotals) -> None:
        quiet = 0
        while (name := self.reached or self._passed(most)) is not None:
            if not self._held:
                # First let the callers record the replies that have just come.
                if quiet == _TURNS:
                    raise self._refusal(name)
                quiet += 1
                await asyncio.sleep(0)
                continue
            quiet = 0
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _passed(self, most: UsageTotals) -> LimitName | None:
        """Return the first limit that the run could pass with a call that takes `most`."""
        limits = self.limits
        if not limits.names and self.expected is None:
            return None
        total = self.spent.plus(most)
        for held in self._held:
            total = total.plus(held)
        if limits.calls is not None and total.calls > limits.calls:
            return "calls"
        if limits.tokens is not None and most.tokens and total.tokens > limits.tokens:
            return "tokens"
        if limits.money is not None and most.money:
            # Other currencies are refused before a run begins.
            amount = sum(total.money.values())
            if amount > limits.money * (1 + _ROUNDING):
                return "money"
        if (name := self._more_than_expected(total.calls)) is not None:
            self._surpassed = True
        return name

    def _more_than_expected(self, calls: int) -> LimitName | None:
        """Return of what the run takes too many times what was expected, with so many `calls`.

        Tokens count when they are spent: a call mostly takes less than it may.
        """
        if self.expected is None or self.limits.times is None:
            return None
        if calls > max(LEAST_CALLS, self.expected.calls * self.limits.times):
            return "calls"
        most = max(LEAST_TOKENS, self.expected.tokens * self.limits.times)
        return "tokens" if self.spent.tokens > most else None

    def _taken(self, role: str, tokens: TokenCount) -> UsageTotals:
        price = self.prices.get(role)
        money: dict[str, float] = {}
        if price is not None:
            amount = (price.read * tokens.read + price.written * tokens.written) / 1e6
            # A price of 0 passes no limit.
            money = {price.currency: amount} if amount else {}
        return UsageTotals(1, tokens.read, tokens.written, money)

    def _refusal(self, name: LimitName) -> LimitReached:
        if self.reached is None:
            self.reached = name
        if self._surpassed and self.expected is not None:
            expected = getattr(self.expected, self.reached)
            key = {"calls": "limit.calls_expected", "tokens": "limit.tokens_expected"}
            return LimitReached.of(
                key[self.reached],
                expected=f"{expected:,.0f}",
                used=f"{getattr(self.spent, self.reached):,.0f}",
            )
        most = getattr(self.limits, self.reached)
        return LimitReached.of(
            f"limit.{self.reached}", most=f"{most:,.10g}", used=f"{self.spent.tokens:,.0f}"
        )
