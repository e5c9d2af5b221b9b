"""A run that somebody looks at: the reader that brings what is new, and what is known so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.run.events import Event, TokenWritten
from pipelines.run.live import Subscription
from pipelines.run.trace import Trace
from pipelines.run.view import RunView, fold

__all__ = ["PERIOD", "Watched"]

PERIOD = 0.3
"""Seconds between two looks at a run that goes on."""


@dataclass
class Watched:
    """A run, what is known of it, and the reader that brings what is new."""

    run_id: str
    subscription: Subscription
    view: RunView = field(default_factory=RunView)
    events: list[Event] = field(default_factory=list)

    def pull(self) -> RunView:
        """Take in what happened since the last time."""
        news = self.subscription.drain()
        self.view = fold(news, self.view)
        self.events += [event for event in news if not isinstance(event, TokenWritten)]
        return self.view

    @property
    def trace(self) -> Trace:
        """What was recorded so far."""
        return Trace(events=tuple(self.events))
