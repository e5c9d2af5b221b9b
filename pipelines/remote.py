"""What all services reached over a network share: addresses, keys, and what they say went wrong."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx
import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from pipelines.error_words import Phrase, phrase
from pipelines.errors import RateLimitError, VeriscopeError, failure

# Where a service is asked and with what key: what people paste, checked before its use.

OPENAI_URL = "https://api.openai.com/v1"
"""The address of OpenAI."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Address(NamedTuple):
    """A base URL without a slash at its end, its host and port for messages, and where it is."""

    url: str
    host: str
    on_this_machine: bool

    @property
    def encrypted(self) -> bool:
        """Whether there is a certificate to verify: certificates take long to load."""
        return self.url.startswith("https:")


_MODEL_SERVER = phrase("server.model")


def read_address(
    url: str,
    *,
    example: str,
    endpoint: str = "",
    what: Phrase = _MODEL_SERVER,
    placeholder: str = "",
) -> Address:
    """Return the address of `what` in `url`, from which a pasted `endpoint` at its end is cut.

    Raises InvalidInputError for anything but a plain http(s) address, such as `example`. Braces
    are refused except for `placeholder`.
    """
    url = url.strip().rstrip("/").removesuffix(endpoint)
    filled = url.replace(placeholder, "x") if placeholder else url
    try:
        # What the client refuses is refused here, not by the first call.
        httpx2.URL(filled)
        (urlsplit(filled).hostname or "").encode("idna")
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, httpx2.InvalidURL):
        parts, host, port = urlsplit(""), None, None
    plain = host and "@" not in parts.netloc and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not plain or re.search(r"[{\s]", filled):
        raise failure("address.not_web", what=what, example=example)
    return Address(url, f"{host}:{port}" if port else str(host), host in _LOOPBACK)


def usable_key(key: str | None, provider: str) -> str | None:
    """Return `key` without space around it, None if empty; AuthenticationError for no key."""
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise failure("address.bad_key", provider)
    return key or None


# Keeps the size of what a service sends within bounds, packed and unpacked.

MOST_BYTES = 8_000_000
"""Of one answer, unpacked. A long text with all alternatives of its tokens takes a tenth of it."""

HEADERS = {"Accept-Encoding": "gzip"}
"""What a client asks for, because nothing else is unpacked here."""

_GZIP = zlib.MAX_WBITS | 16


class TooLargeError(Exception):
    """A service sent more than `MOST_BYTES` in one answer."""


async def bounded(response: httpx.Response | httpx2.Response) -> None:
    """Bound a response, as a response hook of a client: reading more than `MOST_BYTES` raises
    TooLargeError.

    What is packed is unpacked here: a few kilobytes may hold gigabytes. DecodingError of the
    response's library where that fails.
    """
    one = isinstance(response, httpx.Response)
    kind: Any = _Counted if one else _Counted2
    broken = httpx.DecodingError if one else httpx2.DecodingError
    packed = response.headers.pop("content-encoding", "identity").strip().lower()
    response.stream = kind(response.stream, packed, broken)


class _Unpacker:
    """Unpacks gzip, which may have several members one after the other (RFC 1952, section 2.2)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    @property
    def is_complete(self) -> bool:
        """Whether the last member has ended, or none has begun."""
        return self._member.eof or not self._begun

    def parts(self, packed: bytes) -> Iterator[bytes]:
        """Yield what is in `packed`; more than `MOST_BYTES` of a member raises TooLargeError."""
        while packed:
            if self._member.eof:
                # Zeros may fill up a block behind the end.
                packed = packed.lstrip(b"\0")
                if not packed:
                    return
                self._member = zlib.decompressobj(_GZIP)
            self._begun = True
            yield self._member.decompress(packed, MOST_BYTES + 1)
            if self._member.unconsumed_tail:
                raise TooLargeError
            packed = self._member.unused_data


class _Counting:
    """A stream of bytes, unpacked, as long as there are not too many."""

    def __init__(self, inner: Any, packed: str, broken: type[Exception]) -> None:
        self._inner = inner
        self._packed = packed
        self._broken = broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed not in ("identity", "gzip", "x-gzip"):
            raise self._broken("The answer is packed in a way that was not asked for.")
        unpacker = None if self._packed == "identity" else _Unpacker()
        received = size = 0
        async for chunk in self._inner:
            # Packed, an answer may be long and hold nothing.
            received += len(chunk)
            if received > MOST_BYTES:
                raise TooLargeError
            try:
                for data in unpacker.parts(chunk) if unpacker else (chunk,):
                    size += len(data)
                    if size > MOST_BYTES:
                        raise TooLargeError
                    if data:
                        yield data
            except zlib.error:
                raise self._broken("The answer is packed, and cannot be unpacked.") from None
        if unpacker and not unpacker.is_complete:
            raise self._broken("The answer is packed, and its end is missing.")

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(_Counting, httpx.AsyncByteStream):
    """One of httpx."""


class _Counted2(_Counting, httpx2.AsyncByteStream):
    """One of httpx2."""


# What a service said when it failed, in words that may be shown, and how long it asks to wait.

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


_SAYING = (
    "message", "errormessage", "msg", "errormsg", "errordescription", "detail", "details",
    "description", "error", "errors", "reason", "title", "invalidparams",
)  # fmt: skip
"""Keys under which servers say what is wrong, the most telling first."""


def server_words(body: object) -> str:
    """Return what a server said is wrong, in any usual shape; an HTML page says nothing."""
    if isinstance(body, str):
        if body.lstrip().startswith("<"):
            told = re.search(r"<(message)>([^<]+)</\1>", body, re.IGNORECASE)
            return "" if told is None else told[2].strip()
        return body
    if isinstance(body, Mapping):
        said = {re.sub(r"[\W_]", "", str(key)).casefold(): body[key] for key in reversed(body)}
        words = next(filter(None, (server_words(said.get(key)) for key in _SAYING)), "")
        # Under other keys: what is said in more than one word.
        return words or "; ".join(
            text for one in body.values() if " " in (text := server_words(one).strip())
        )
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


# Keeps requests to addresses that visitors chose out of this machine's own network.

_NAT64 = IPv6Network("64:ff9b::/96")

_UNICAST = IPv6Network("2000::/3")
"""The only IPv6 addresses that are given out for use on the internet (IANA)."""

_SPECIAL = tuple(
    map(
        ip_network,
        (
            # Protocol assignments, some of which count as global: a cloud's metadata is among them.
            "192.0.0.0/24",
            "192.88.99.0/24",
            # Where a cloud's machines talk to their host, at an address of the internet.
            "168.63.129.16/32",
            # Protocol assignments with Teredo, relays to IPv4 (6to4), documentation.
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
        ),
    )
)
"""Addresses that are no plain unicast ones, though the standard library takes some for global."""


def is_public(address: str) -> bool:
    """Return whether an IP address is a plain unicast one, which anybody on the internet can reach.

    An IPv6 address that stands for an IPv4 one, mapped or by the well-known prefix of NAT64, counts
    as that one. Every other way to write or to carry an IPv4 address in an IPv6 one is refused.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        found = _inside(found) or found
    if isinstance(found, IPv6Address) and found not in _UNICAST:
        return False
    special = any(found.version == one.version and found in one for one in _SPECIAL)
    return found.is_global and not found.is_multicast and not found.is_reserved and not special


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that `address` stands for, if it is of a kind that does."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


async def public_address(host: str, port: int) -> str:
    """Return the address to connect to for `host`.

    Raises httpx2.ConnectError if it has none, or any that is not public: a name with
    public and private addresses is an attack.
    """
    try:
        found = await resolve(host, port)
    except OSError:
        found = []
    if not found:
        raise httpx2.ConnectError(f"{host} has no address.")
    if not all(map(is_public, found)):
        raise httpx2.ConnectError(f"{host} is not an address on the public internet.")
    return found[0]


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that `host` has."""
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


class PublicTransport(httpx2.AsyncBaseTransport):
    """Connects to public addresses only, and to the very address that was checked.

    A name that is checked and then resolved again may lead to another address the second time
    (DNS rebinding). Redirects are checked as well, each as a request of its own.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`, whose host has been replaced by its address."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        address = await public_address(host, port)
        # The name stays in the Host header, and is what the certificate is checked against.
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


# The one way to try again what a service may do at a later attempt.

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

_JITTER = 0.25


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how soon to try again: doubling pauses with jitter, or as the server says.

    `attempts` counts the first one too. `pause` is seconds before the second attempt, `longest` the
    longest single pause; a server that asks for more than that is not tried again. A pause differs
    by up to a quarter from the computed one, so that clients that failed together do not return
    together. `sleep` does the waiting.
    """

    attempts: int = 4
    pause: float = 0.5
    longest: float = 30.0
    sleep: Sleep = asyncio.sleep

    async def run(self, call: Callable[[int], Awaitable[T]]) -> T:
        """Return what `call(attempt)` returns, attempts counted from 1.

        Raises what the last attempt raised: a `VeriscopeError` that is not retryable, one after
        which no attempt is left, or any other exception at once.
        """
        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=retry_if_exception(self._may_pass),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                return await call(attempt.retry_state.attempt_number)
        raise AssertionError("the last attempt returns or raises")

    def _may_pass(self, error: BaseException) -> bool:
        asked = _asked_wait(error)
        return (
            isinstance(error, VeriscopeError)
            and error.retryable
            and (asked is None or asked <= self.longest)
        )

    def _wait(self, state: RetryCallState) -> float:
        """Return seconds before the next attempt."""
        asked = _asked_wait(state.outcome.exception() if state.outcome else None)
        if asked is not None:
            return asked
        doubled = self.pause * 2 ** (state.attempt_number - 1)
        return min(self.longest, doubled * random.uniform(1 - _JITTER, 1 + _JITTER))


def not_again(error: VeriscopeError) -> VeriscopeError:
    """Return `error`, after which the call is not tried again, although others of its class are."""
    error.retryable = False
    return error


def _asked_wait(error: BaseException | None) -> float | None:
    return error.retry_after if isinstance(error, RateLimitError) else None
