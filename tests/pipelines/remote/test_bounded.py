"""What a service may send, packed and unpacked."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import httpx
import httpx2
import pytest

from pipelines.remote import MOST_BYTES, TooLargeError, bounded


class Sent(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """Bytes as they come, in pieces."""

    def __init__(self, data: bytes, piece: int = 1000) -> None:
        self.pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


async def read(library: type, data: bytes, packed: str | None = None) -> bytes:
    headers = {"content-encoding": packed} if packed else {}
    response = library(200, headers=headers, stream=Sent(data))
    await bounded(response)
    return await response.aread()


LIBRARIES = pytest.mark.parametrize("library", [httpx.Response, httpx2.Response])
TEXT = b"one two three " * 1000


@LIBRARIES
async def test_what_is_packed_is_unpacked(library: type):
    assert await read(library, TEXT) == TEXT
    assert await read(library, gzip.compress(TEXT, mtime=0), "gzip") == TEXT
    assert await read(library, gzip.compress(TEXT, mtime=0), "GZIP ") == TEXT
    assert await read(library, b"", "gzip") == b""


@LIBRARIES
@pytest.mark.parametrize("between", [b"", b"\0" * 1500])
async def test_every_member_of_an_answer_is_unpacked(library: type, between: bytes):
    members = [gzip.compress(part, mtime=0) for part in (TEXT, b"", b"four", b"five")]
    whole = between.join(members) + between
    assert await read(library, whole, "gzip") == TEXT + b"fourfive"


@LIBRARIES
async def test_what_is_too_large_is_not_read(library: type):
    with pytest.raises(TooLargeError):
        await read(library, b"x" * (MOST_BYTES + 1))
    # 100 MB in 100 KB.
    with pytest.raises(TooLargeError):
        await read(library, gzip.compress(bytes(100_000_000), mtime=0), "gzip")
    # Neither in many members, nor in members that hold nothing, of 20 bytes each.
    half = gzip.compress(bytes(MOST_BYTES // 2 + 1), mtime=0)
    with pytest.raises(TooLargeError):
        await read(library, half * 2, "gzip")
    with pytest.raises(TooLargeError):
        await read(library, gzip.compress(b"", mtime=0) * (MOST_BYTES // 20 + 1), "gzip")


@pytest.mark.parametrize(
    ("data", "packed"),
    [
        (b"no gzip at all", "gzip"),
        (gzip.compress(TEXT, mtime=0)[:-9], "gzip"),
        (TEXT, "br"),
        (gzip.compress(TEXT, mtime=0) + b"no gzip", "gzip"),
        (gzip.compress(TEXT, mtime=0) * 2 + b"\x1f", "gzip"),
        (zlib.compress(TEXT), "deflate"),
    ],
)
async def test_what_cannot_be_unpacked_is_an_error_of_the_library(data: bytes, packed: str):
    with pytest.raises(httpx.DecodingError):
        await read(httpx.Response, data, packed)
    with pytest.raises(httpx2.DecodingError):
        await read(httpx2.Response, data, packed)
