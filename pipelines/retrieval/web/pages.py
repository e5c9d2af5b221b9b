"""Pages and files fetched from addresses that people give, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2

from pipelines.errors import failure
from pipelines.remote.bounded import HEADERS, MOST_BYTES, TooLargeError, bounded
from pipelines.remote.failures import connection_failure
from pipelines.remote.guard import PublicTransport
from pipelines.retrieval.reading.parsed import RefusedError
from pipelines.retrieval.web.base import USER_AGENT

MAX_PAGE = MOST_BYTES
"""Bytes of what is fetched from one address."""

MAX_ADDRESSES = 200
"""Addresses that are added at once."""

SECONDS = 30.0
"""How long fetching may take, redirects and all."""

_REDIRECTS = 5
_LONGEST = 2000


class Page(NamedTuple):
    """What an address gave; `url` is where it came from after redirects."""

    url: str
    data: bytes


def read_addresses(text: str) -> list[str]:
    """Return the addresses of a list, one a line, each once; empty lines and those with # are
    left out.

    Raises InvalidInputError, which names the line that is none.
    """
    found: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        try:
            parts = urlsplit(line)
            # A name or a password for the site would be kept with the collection.
            usable = parts.scheme in ("http", "https") and parts.hostname
            usable = usable and "@" not in parts.netloc
        except ValueError:
            usable = False
        if not usable or len(line) > _LONGEST or not line.isprintable() or " " in line:
            raise failure("library.no_address", line=line[:200])
        found.append(line)
    found = list(dict.fromkeys(found))
    if len(found) > MAX_ADDRESSES:
        raise failure("library.too_many_addresses", count=len(found), most=MAX_ADDRESSES)
    return found


async def fetch(url: str, *, public_only: bool, seconds: float = SECONDS) -> Page:
    """Return what is at `url`. With `public_only` it must be on the public internet, after
    redirects too.

    Raises RefusedError with the reason "address" or "too_large".
    """
    try:
        async with asyncio.timeout(seconds), _client(public_only) as client:
            reply = await client.get(url)
            data = reply.content
    except TooLargeError:
        raise RefusedError("too_large", most=MAX_PAGE // 1_000_000) from None
    except TimeoutError:
        raise RefusedError("address", said=f"no answer within {seconds:.0f} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        kind = connection_failure(error)
        raise RefusedError("address", said=_words(kind, error)) from None
    if reply.status_code != 200:
        raise RefusedError("address", said=f"status {reply.status_code}")
    return Page(str(reply.url), data)


def _client(public_only: bool) -> httpx2.AsyncClient:
    headers: Sequence[tuple[str, str]] = [
        *HEADERS.items(),
        ("User-Agent", USER_AGENT),
        ("Accept", "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5"),
    ]
    inner = httpx2.AsyncHTTPTransport(trust_env=False) if public_only else None
    return httpx2.AsyncClient(
        headers=list(headers),
        timeout=httpx2.Timeout(SECONDS, connect=10.0),
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        event_hooks={"response": [bounded]},
        # Past the proxy of the environment where strangers name addresses: it stands inside.
        trust_env=not public_only,
        transport=PublicTransport(inner) if inner is not None else None,
    )


def _words(kind: str | None, error: Exception) -> str:
    known = {
        "no_connection": "no connection",
        "timeout": "no answer in time",
        "redirected": "too many redirects",
        "unsendable": "not an address that can be asked",
    }
    return known.get(kind or "") or type(error).__name__
