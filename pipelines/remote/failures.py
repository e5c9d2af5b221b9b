"""What a service said when it failed, in words that may be shown, and how long it asks to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pipelines.error_words import Phrase, phrase

_MAX_CHARACTERS = 240

CUT_OFF = phrase("detail.cut_off")
"""What happened when `connection_failure` has no name for it."""

# The classes of httpx and httpx2, on which the clients are built, and of the clients themselves.
_CONNECTIONS = {
    "no_connection": {"ConnectError", "ConnectTimeout", "ProxyError"},
    "timeout": {"APITimeoutError", "TimeoutException"},
    "redirected": {"TooManyRedirects"},
    "unsendable": {"UnsupportedProtocol", "LocalProtocolError"},
}


def showable(words: str, key: str | None) -> str:
    """Return `words` on one line, at most 240 characters, without `key` or what looks like one."""
    if key:
        words = words.replace(key, "[key]")
    # Providers echo keys in part ("sk-12ab****89yz"), which is more than a log should hold.
    words = re.sub(r"\b(sk|hf|gsk|key)[-_][\w*.-]{6,}", "[key]", " ".join(words.split()))
    words = words if len(words) <= _MAX_CHARACTERS else words[: _MAX_CHARACTERS - 1] + "…"
    return words.rstrip(".")


def later(wait: float | None) -> Phrase:
    """Return when to try again: in so many seconds, or at some time."""
    if wait is None:
        return phrase("detail.later")
    return phrase("detail.in_seconds", seconds=wait)


def connection_failure(error: BaseException) -> str | None:
    """Return which failure in assets/errors.toml a client's error is, None for a cut connection."""
    chain = (error, error.__cause__ or error)
    names = {kind.__name__ for cause in chain for kind in type(cause).__mro__}
    return next((kind for kind, classes in _CONNECTIONS.items() if names & classes), None)


def server_words(body: object) -> str:
    """Return what a server said is wrong, from any of the shapes in use; an HTML page says
    nothing.
    """
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body
    if isinstance(body, Mapping):
        for key in ("message", "detail", "error", "msg"):
            words = server_words(body.get(key))
            if words:
                return words
    if isinstance(body, list):
        return "; ".join(filter(None, map(server_words, body)))
    return ""


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Return seconds to wait by `Retry-After` (seconds or an HTTP date) or `retry-after-ms`.

    A date is compared with the server's own clock where it sent one.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        return wait if 0 <= wait < float("inf") else None
    until, now = _date(headers.get("retry-after")), _date(headers.get("date"))
    return None if until is None else max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
