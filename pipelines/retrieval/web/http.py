"""One HTTP client for all web searches, bounded in time, size, number and redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2

from pipelines.errors import InvalidInputError, RateLimitError, VeriscopeError
from pipelines.retrieval.web.errors import ErrorReader

__all__ = ["LONGEST_REPLY", "Reply", "Sleep", "WebClient"]

LONGEST_REPLY = 2**20
"""Bytes of an answer, decompressed, that are read before it is given up."""

_AT_ONCE = 4
_ATTEMPTS = 3
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MAX_REDIRECTS = 3
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class Reply(NamedTuple):
    """An answer with a status of success."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Connections(NamedTuple):
    client: httpx2.AsyncClient
    places: asyncio.Semaphore


class WebClient:
    """Asks one service, at most four requests at a time; cancelling a task ends its request.

    A failure that may pass (`retryable`) is tried again up to twice, after 1 and then 2 seconds or
    as long as the service asks for, if that is no more than 30; `sleep` does the waiting. `timeout`
    is in seconds and bounds one attempt as a whole. No cookies are kept. With a `key` redirects are
    not followed, as the key would travel along; without, at most three are. The environment's proxy
    is used except for an address on this machine.
    """

    def __init__(
        self,
        service: str,
        base_url: str,
        *,
        key: str | None = None,
        user_agent: str,
        timeout: float = 20.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        host, self._on_this_machine = _address(base_url)
        self.errors = ErrorReader(service=service, host=host, key=key)
        self._base_url = base_url
        self._follow = key is None
        self._headers = {"user-agent": user_agent}
        self._timeout = timeout
        self._sleep = sleep
        # A connection belongs to the event loop it was opened in, and so does a semaphore.
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = (
            WeakKeyDictionary()
        )

    async def ask(
        self,
        method: Literal["GET", "POST"],
        url: str,
        read: Callable[[Reply], T],
        **content: Any,
    ) -> T:
        """What `read` makes of the answer; a ValueError it raises means a malformed one.

        `content` is what httpx2 takes: `params`, `data`, `json`, `headers`. Raises the typed errors
        of `ErrorReader` and whatever typed error `read` raises.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                reply = await self._send(method, url, content)
                try:
                    return read(reply)
                except ValueError as error:
                    raise self.errors.invalid("its answer could not be read") from error
            except VeriscopeError as error:
                pause = _pause_after(attempt, error)
                if pause is None:
                    raise
            await self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop; another search opens new ones."""
        opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.client.aclose()

    async def _send(self, method: str, url: str, content: Mapping[str, Any]) -> Reply:
        client, places = self._connections()
        async with places:
            try:
                async with (
                    asyncio.timeout(self._timeout),
                    client.stream(method, url, **content) as response,
                ):
                    body = await self._body(response)
            except TimeoutError as error:
                raise self.errors.timeout() from error
            except httpx2.HTTPError as error:
                raise self.errors.unsent(error) from error
        if not 200 <= response.status_code < 300:
            raise self.errors.status(response.status_code, response.headers, body)
        return Reply(response.status_code, response.headers, body)

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > LONGEST_REPLY:
                raise self.errors.invalid(f"its answer is longer than {LONGEST_REPLY // 1024} KiB")
        return bytes(body)

    def _connections(self) -> _Connections:
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            opened = _Connections(self._new_client(), asyncio.Semaphore(_AT_ONCE))
            self._opened[loop] = opened
        return opened

    def _new_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=self._headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS),
            follow_redirects=self._follow,
            max_redirects=_MAX_REDIRECTS,
            trust_env=not self._on_this_machine,
            # Without TLS there is nothing to verify, and certificates take long to load.
            verify=self._base_url.startswith("https:"),
        )


def _pause_after(attempt: int, error: VeriscopeError) -> float | None:
    """Seconds to wait after a failed attempt (from 1), or None to give up."""
    if not error.retryable or attempt == _ATTEMPTS:
        return None
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        return error.retry_after if error.retry_after <= _LONGEST_PAUSE_SECONDS else None
    return _PAUSE_SECONDS * 2 ** (attempt - 1)


def _address(url: str) -> tuple[str, bool]:
    """The host for messages, and whether that is this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query:
        raise InvalidInputError(
            "The address of the search service is not a web address.",
            remedy="Enter it like https://example.com, without a key in it.",
        )
    return f"{host}:{port}" if port else host, host in _LOOPBACK
