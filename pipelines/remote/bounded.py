"""Keeps the size of what a service sends within bounds, packed and unpacked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2

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
