"""Keeps the size of what a service sends within bounds, packed and unpacked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2

MOST_BYTES = 8_000_000
"""Of one answer, unpacked. A long text with all alternatives of its tokens takes a tenth of it."""

HEADERS = {"Accept-Encoding": "gzip, deflate"}
"""What a client asks for, because nothing else is unpacked here."""

# Either of the two formats, by its own header.
_ANY_FORMAT = zlib.MAX_WBITS | 32


class TooLargeError(Exception):
    """A service sent more than `MOST_BYTES` in one answer."""


async def bounded(response: httpx.Response | httpx2.Response) -> None:
    """As a response hook of a client: reading more than `MOST_BYTES` raises TooLargeError.

    What is packed is unpacked here: a few kilobytes may hold gigabytes. DecodingError of the
    response's library where that fails.
    """
    one = isinstance(response, httpx.Response)
    kind: Any = _Counted if one else _Counted2
    broken = httpx.DecodingError if one else httpx2.DecodingError
    packed = response.headers.pop("content-encoding", "identity").strip().lower()
    response.stream = kind(response.stream, packed, broken)


class _Counting:
    """A stream of bytes, unpacked, as long as there are not too many."""

    def __init__(self, inner: Any, packed: str, broken: type[Exception]) -> None:
        self._inner = inner
        self._packed = packed
        self._broken = broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        unpacker = None if self._packed == "identity" else self._unpacker()
        async for chunk in self._inner:
            try:
                data = unpacker.decompress(chunk, MOST_BYTES + 1) if unpacker else chunk
            except zlib.error:
                raise self._broken("The answer is packed, and cannot be unpacked.") from None
            size += len(data)
            if size > MOST_BYTES or (unpacker and unpacker.unconsumed_tail):
                raise TooLargeError
            if data:
                yield data
        if unpacker and not unpacker.eof and size:
            raise self._broken("The answer is packed, and its end is missing.")

    def _unpacker(self) -> Any:
        if self._packed not in ("gzip", "x-gzip", "deflate"):
            raise self._broken("The answer is packed in a way that was not asked for.")
        return zlib.decompressobj(_ANY_FORMAT)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(_Counting, httpx.AsyncByteStream):
    """One of httpx."""


class _Counted2(_Counting, httpx2.AsyncByteStream):
    """One of httpx2."""
