"""A queue for runs where many visitors share a small machine."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pipelines.errors import failure

_REMEMBERED = 20
"""How many of the last runs the expected wait is computed from."""


class Turn(NamedTuple):
    """A position in the queue: how many are before it, and the seconds that may take.

    `before` is 0 for the next one, and None after admission. `wait` is None while nothing is known
    of how long runs take here.
    """

    before: int | None
    wait: float | None = None


@dataclass(eq=False)
class Ticket:
    """One visitor's request for a run; made by `Admission.slot`."""

    visitor: str
    address: str | None = None
    admitted: asyncio.Event = field(default_factory=asyncio.Event)
    begun: float = 0.0


@dataclass
class Admission:
    """At most `slots` runs at once and `max_queue` that wait; of one visitor `per_visitor` of each.

    Of those that wait, `per_address` come from one address.

    Runs begin in the order of asking, but a visitor who has as many runs as allowed is skipped
    until one of them ends. All methods belong to one event loop.
    """

    slots: int
    per_visitor: int = 1
    max_queue: int = 100
    per_address: int = 100
    clock: Callable[[], float] = time.monotonic
    _queue: list[Ticket] = field(default_factory=list, init=False)
    _running: set[Ticket] = field(default_factory=set, init=False)
    _durations: deque[float] = field(default_factory=partial(deque, maxlen=_REMEMBERED), init=False)

    @asynccontextmanager
    async def slot(self, visitor: str, address: str | None = None) -> AsyncIterator[Ticket]:
        """Wait in the queue, and hold a slot from when `admitted` is set to the end of the block.

        Leaving early gives it up. Raises BusyError where the queue is full, or the address is in it
        as often as allowed (None for one that does not count), and QueuedAlreadyError where the
        visitor is.
        """
        if len(self._queue) >= self.max_queue:
            raise failure("asking.long_queue", waiting=self.max_queue)
        if sum(waiting.visitor == visitor for waiting in self._queue) >= self.per_visitor:
            raise failure("asking.queued_already", most=self.per_visitor)
        from_there = sum(waiting.address == address for waiting in self._queue)
        if address is not None and from_there >= self.per_address:
            raise failure("asking.address_queue", waiting=self.per_address)
        ticket = Ticket(visitor, address)
        self._queue.append(ticket)
        self._admit()
        try:
            yield ticket
        finally:
            if ticket in self._running:
                self._running.remove(ticket)
                self._durations.append(self.clock() - ticket.begun)
            else:
                self._queue.remove(ticket)
            self._admit()

    def turn(self, ticket: Ticket) -> Turn:
        """Return the position of `ticket` now."""
        if ticket not in self._queue:
            return Turn(None, 0.0)
        before = self._queue.index(ticket)
        if not self._durations:
            return Turn(before)
        usual = sum(self._durations) / len(self._durations)
        now = self.clock()
        # What is under way will be over sooner than what has yet to begin.
        left = sorted(max(0.0, usual - (now - running.begun)) for running in self._running)
        free = (left or [0.0])[: self.slots]
        for _ in range(before):
            first = free.index(min(free))
            free[first] += usual
        return Turn(before, min(free))

    def _admit(self) -> None:
        """Admit those who may run, the first in the queue first."""
        running = Counter(ticket.visitor for ticket in self._running)
        for ticket in list(self._queue):
            if len(self._running) == self.slots:
                return
            if running[ticket.visitor] < self.per_visitor:
                self._queue.remove(ticket)
                self._running.add(ticket)
                running[ticket.visitor] += 1
                ticket.begun = self.clock()
                ticket.admitted.set()
