"""Lets runs begin in turn where many visitors share a small machine."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from pipelines.errors import BusyError

__all__ = ["Admission", "Ticket", "Turn"]

_REMEMBERED = 20
"""How many of the last runs the expected wait is judged by."""


class Turn(NamedTuple):
    """Where somebody stands: how many are before them, and the seconds that may take.

    `before` is 0 for who is next, and None for who has been admitted. `wait` is None while nothing
    is known of how long runs take here.
    """

    before: int | None
    wait: float | None = None


class Ticket:
    """A place in the queue; made by `Admission.ask`."""

    def __init__(self, visitor: str) -> None:
        self.visitor = visitor
        self.admitted = asyncio.Event()
        self.begun = 0.0


class Admission:
    """A queue with places: at most `places` runs at once, `each` of one visitor, `waiting` in line.

    In the order of asking, but for visitors who have as many runs as they may: they are passed over
    until one of theirs ends. All methods belong to one event loop.
    """

    def __init__(
        self,
        places: int,
        each: int = 1,
        waiting: int = 100,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._each = each
        self._waiting = waiting
        self._clock = clock
        self._line: deque[Ticket] = deque()
        self._inside: set[Ticket] = set()
        self._took: deque[float] = deque(maxlen=_REMEMBERED)

    @asynccontextmanager
    async def place(self, visitor: str) -> AsyncIterator[Ticket]:
        """Stand in line, and hold a place from when `admitted` is set to the end of the block.

        Leaving early gives the place up. Raises BusyError where the line is as long as it may be,
        or the visitor stands in it as often as they may.
        """
        ticket = self._ask(visitor)
        try:
            yield ticket
        finally:
            self._leave(ticket)

    def turn(self, ticket: Ticket) -> Turn:
        """Where `ticket` stands now."""
        if ticket not in self._line:
            return Turn(None, 0.0)
        before = self._line.index(ticket)
        if not self._took:
            return Turn(before)
        usual = sum(self._took) / len(self._took)
        now = self._clock()
        # What is under way will be over sooner than what has yet to begin.
        left = sorted(max(0.0, usual - (now - one.begun)) for one in self._inside)
        free = (left or [0.0])[: self._places]
        for _ in range(before):
            first = free.index(min(free))
            free[first] += usual
        return Turn(before, min(free))

    def _ask(self, visitor: str) -> Ticket:
        if len(self._line) >= self._waiting:
            raise BusyError(
                f"{self._waiting} visitors are waiting already.",
                remedy="Try again in a few minutes, or run your own copy.",
            )
        if sum(one.visitor == visitor for one in self._line) >= self._each:
            raise BusyError(
                "You are in the queue already.",
                remedy="Wait for your turn, or stop the run that waits.",
            )
        ticket = Ticket(visitor)
        self._line.append(ticket)
        self._admit()
        return ticket

    def _leave(self, ticket: Ticket) -> None:
        if ticket in self._inside:
            self._inside.remove(ticket)
            self._took.append(self._clock() - ticket.begun)
        else:
            self._line.remove(ticket)
        self._admit()

    def _admit(self) -> None:
        """Let in whoever may come, the first in line first."""
        held = Counter(one.visitor for one in self._inside)
        for ticket in list(self._line):
            if len(self._inside) == self._places:
                return
            if held[ticket.visitor] < self._each:
                self._line.remove(ticket)
                self._inside.add(ticket)
                held[ticket.visitor] += 1
                ticket.begun = self._clock()
                ticket.admitted.set()
