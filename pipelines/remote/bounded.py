"""Keeps the size of what a service sends within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2

MOST_BYTES = 8_000_000
"""Of one answer. A long text with all alternatives of its tokens takes a tenth of it."""


class TooLargeError(Exception):
    """A service sent more than `MOST_BYTES` in one answer."""


async def bounded(response: httpx.Response | httpx2.Response) -> None:
    """As a response hook of a client: reading more than `MOST_BYTES` raises TooLargeError."""
    kind: Any = _Counted if isinstance(response, httpx.Response) else _Counted2
    response.stream = kind(response.stream)


class _Counting:
    """A stream of bytes, as long as there are not too many."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MOST_BYTES:
                raise TooLargeError
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(_Counting, httpx.AsyncByteStream):
    """One of httpx."""


class _Counted2(_Counting, httpx2.AsyncByteStream):
    """One of httpx2."""
