"""What one run may take where a machine is shared."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Limits", "Spent"]

Spent = Literal["time_limit", "token_limit"]
"""What a run was stopped for."""


class Limits(NamedTuple):
    """Seconds a run may go on, and tokens it may have written; None is no limit."""

    seconds: float | None = None
    tokens: int | None = None

    def spent(self, seconds: float, tokens: int) -> Spent | None:
        """What a run of `seconds` with `tokens` written has used up, if anything."""
        if self.seconds is not None and seconds > self.seconds:
            return "time_limit"
        if self.tokens is not None and tokens > self.tokens:
            return "token_limit"
        return None
