"""What the web searches share: bounds of a request, errors, attempts."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from pipelines.errors import (
    InvalidInputError,
    InvalidReplyError,
    ModelTimeoutError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.retrieval.web import LONGEST_REPLY, Find, Reply, WebSearch
from tests.scripted.web_wire import (
    Naps,
    begins_and_waits,
    packs,
    sends_on,
    stays_open,
)
from tests.scripted.wire import Handler, Respond, Wire, breaks_off, says, waits


class Findall(WebSearch):
    """A service without results of its own."""

    id = "findall"
    title = "Findall"
    default_url = "https://findall.example"
    user_agent = "tester/1"
    longest_query = 100

    async def find(self, query: str, k: int) -> list[Find]:
        return []


def client_of(url: str, naps: Naps | None = None, *, timeout: float = 20.0) -> Findall:
    return Findall(base_url=url, timeout=timeout, sleep=naps or Naps())


def body_of(reply: Reply) -> bytes:
    return reply.body


async def get(client: Findall) -> bytes:
    return await client.ask("GET", "/find", body_of)


async def test_the_answer_is_read(wire: Wire):
    wire.answers(says("found"))
    assert await get(client_of(wire.url)) == b"found"
    assert wire.seen[0].headers["user-agent"] == "tester/1"


@pytest.mark.parametrize(
    ("respond", "kind"),
    [
        (says("{}", 429), RateLimitError),
        (says("{}", 500), ServerFailedError),
        (says("{}", 503), ServerFailedError),
        (says("{}", 408), ModelTimeoutError),
        (breaks_off, InvalidReplyError),
    ],
)
async def test_what_may_pass_is_tried_twice_more_with_doubling_pauses(
    wire: Wire, naps: Naps, respond: Respond, kind: type[VeriscopeError]
):
    wire.answers(respond)
    with pytest.raises(kind) as raised:
        await get(client_of(wire.url, naps))
    assert raised.value.retryable
    assert raised.value.provider == "Findall"
    assert len(wire.seen) == 3
    assert naps.seconds == pytest.approx([1, 2], rel=0.25)


async def test_a_later_attempt_may_succeed(wire: Wire, naps: Naps):
    wire.answers(says("{}", 502), says("{}", 429, retry_after="7"), says("found"))
    assert await get(client_of(wire.url, naps)) == b"found"
    assert naps.seconds == [pytest.approx(1, rel=0.25), 7]


async def test_a_service_that_asks_for_a_long_pause_is_given_up(wire: Wire, naps: Naps):
    wire.answers(says({"message": "Quota used up."}, 429, retry_after="3600"))
    with pytest.raises(
        RateLimitError, match=r"slow down \(Quota used up\)\. Try again in 3600 s"
    ) as raised:
        await get(client_of(wire.url, naps))
    assert raised.value.retry_after == 3600
    assert (len(wire.seen), naps.seconds) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
async def test_a_refusal_is_final(wire: Wire, naps: Naps, status: int):
    wire.answers(says("<html>No.</html>", status))
    with pytest.raises(RefusedRequestError, match=f"status {status}") as raised:
        await get(client_of(wire.url, naps))
    assert "<html>" not in str(raised.value)
    assert (len(wire.seen), naps.seconds) == (1, [])


@pytest.mark.parametrize("respond", [waits, begins_and_waits])
async def test_a_service_that_hangs_is_given_up(wire: Wire, respond: Respond):
    wire.answers(respond)
    with pytest.raises(ModelTimeoutError, match="did not answer in time") as raised:
        await get(client_of(wire.url, timeout=0.5))
    assert await asyncio.to_thread(wire.gone.wait, 60)
    # It had all the time that a search may take.
    assert (len(wire.seen), raised.value.retryable) == (1, False)


async def test_a_service_that_trickles_does_not_outlast_the_time(wire: Wire):
    def trickles(handler: Handler) -> None:
        handler.begin(200, {"content-length": "100000"})
        try:
            while not wire.over.wait(0.02):
                handler.wfile.write(b" ")
        except OSError:
            wire.gone.set()

    wire.answers(trickles)
    with pytest.raises(ModelTimeoutError):
        await get(client_of(wire.url, timeout=0.5))
    assert await asyncio.to_thread(wire.gone.wait, 60)


@pytest.mark.parametrize("respond", [waits, begins_and_waits])
async def test_cancelling_ends_the_request(wire: Wire, respond: Respond):
    wire.answers(respond)
    task = asyncio.create_task(get(client_of(wire.url)))
    assert await asyncio.to_thread(wire.arrived.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_no_service_at_the_address(naps: Naps):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=r"No connection to 127\.0\.0\.1:\d+"):
        await get(client_of(url, naps))
    assert naps.seconds == pytest.approx([1, 2], rel=0.25)


@pytest.mark.parametrize("respond", [says("x" * (LONGEST_REPLY + 1)), packs(b"x" * 2**24)])
async def test_an_answer_that_is_too_long_is_not_read_to_its_end(wire: Wire, respond: Respond):
    wire.answers(respond)
    with pytest.raises(InvalidReplyError, match="longer than 1024 KiB"):
        await get(client_of(wire.url))


async def test_an_answer_of_the_longest_length_is_read(wire: Wire):
    wire.answers(packs(b"x" * LONGEST_REPLY))
    assert len(await get(client_of(wire.url))) == LONGEST_REPLY


async def test_a_redirect_is_followed(wire: Wire):
    wire.answers(sends_on("/elsewhere"), says("found"))
    assert await get(client_of(wire.url)) == b"found"
    assert [seen.path for seen in wire.seen] == ["/find", "/elsewhere"]


async def test_redirects_come_to_an_end(wire: Wire):
    wire.answers(sends_on("/find"))
    with pytest.raises(RefusedRequestError, match="another address"):
        await get(client_of(wire.url))
    # The request itself and three redirects.
    assert len(wire.seen) == 4


async def test_cookies_are_not_kept(wire: Wire):
    wire.answers(says("found", set_cookie="visitor=17; Path=/"))
    client = client_of(wire.url)
    await get(client)
    await get(client)
    assert ["cookie" in seen.headers for seen in wire.seen] == [False, False]


async def test_four_requests_at_a_time(wire: Wire):
    # Nobody is answered before four are there; a fifth beside them would be counted.
    four = threading.Barrier(4)
    under_way, most = 0, 0

    def together(handler: Handler) -> None:
        nonlocal under_way, most
        with wire.lock:
            under_way += 1
            most = max(most, under_way)
        four.wait(60)
        with wire.lock:
            under_way -= 1
        says("found")(handler)

    wire.answers(together)
    client = client_of(wire.url)
    assert await asyncio.gather(*(get(client) for _ in range(8))) == [b"found"] * 8
    assert most == 4


async def test_pausing_takes_no_slot(wire: Wire):
    pausing = asyncio.Semaphore(0)

    class Waiting(Naps):
        async def __call__(self, seconds: float) -> None:
            pausing.release()
            await asyncio.Event().wait()

    wire.answers(*[says("{}", 500)] * 4, says("found"))
    client = client_of(wire.url, Waiting())
    tasks = [asyncio.create_task(get(client)) for _ in range(4)]
    async with asyncio.timeout(60):
        for _ in tasks:
            await pausing.acquire()
        assert await get(client) == b"found"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_closing_ends_the_connections_and_searching_opens_new_ones(wire: Wire):
    wire.answers(stays_open("found"))
    client = client_of(wire.url)
    await get(client)
    assert not wire.gone.is_set()
    await client.aclose()
    assert await asyncio.to_thread(wire.gone.wait, 60)
    assert await get(client) == b'"found"'
    await client.aclose()
    await client.aclose()


def test_one_client_serves_one_loop_after_another(wire: Wire):
    wire.answers(says("found"))
    client = client_of(wire.url)

    async def six() -> list[bytes]:
        try:
            return await asyncio.gather(*(get(client) for _ in range(6)))
        finally:
            await client.aclose()

    assert asyncio.run(six()) == asyncio.run(six()) == [b"found"] * 6


@pytest.mark.parametrize(
    "url",
    [
        " ",
        "serper.dev",
        "ftp://example.com",
        "https://",
        "http://[",
        "https://example.com:port",
        "https://key@example.com",
        "https://example.com/?key=1",
    ],
)
def test_what_is_no_address_is_told_at_once(url: str):
    with pytest.raises(InvalidInputError, match="not a web address"):
        client_of(url)
