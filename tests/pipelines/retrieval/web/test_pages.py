"""Pages fetched from addresses that people gave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipelines.errors import InvalidInputError
from pipelines.retrieval import web
from pipelines.retrieval.reading.parsed import RefusedError
from pipelines.retrieval.web import fetch, read_addresses
from tests.scripted.web_wire import packs, serve, shows
from tests.scripted.wire import Handler, Respond, Wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as wire:
        yield wire


def leads(to: str) -> Respond:
    def respond(handler: Handler) -> None:
        handler.begin(302, {"location": to, "content-length": "0"})

    return respond


def waits() -> Respond:
    return lambda handler: handler.until_gone()


async def refused(url: str, *, public_only: bool = False, seconds: float = 30.0) -> RefusedError:
    with pytest.raises(RefusedError) as error:
        await fetch(url, public_only=public_only, seconds=seconds)
    return error.value


def test_addresses_one_a_line():
    text = "\n# my list\nhttps://a.org/x \nhttp://b.org\r\nhttps://a.org/x\n"
    assert read_addresses(text) == ["https://a.org/x", "http://b.org"]
    assert read_addresses(" \n") == []


@pytest.mark.parametrize(
    "line",
    [
        "a.org",
        "ftp://a.org",
        "file:///etc/passwd",
        "https://",
        "https://me:pw@a.org",
        "https://:pw@a.org",
        "https://a.org/a b",
        "https://[a",
        f"https://a.org/{'x' * 2000}",
    ],
)
def test_a_line_that_is_no_address_is_named(line: str):
    with pytest.raises(InvalidInputError) as error:
        read_addresses(f"https://a.org\n{line}")
    assert line[:50] in str(error.value)


def test_a_list_has_an_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(web, "MAX_ADDRESSES", 1)
    with pytest.raises(InvalidInputError, match="2 addresses were given; 1"):
        read_addresses("https://a.org\nhttps://b.org")


async def test_a_page_after_a_redirect(wire: Wire):
    wire.answers(leads("/there"), shows("<p>Tides</p>"))
    page = await fetch(f"{wire.url}/here", public_only=False)
    assert (page.url, page.data) == (f"{wire.url}/there", b"<p>Tides</p>")
    assert [seen.path for seen in wire.seen] == ["/here", "/there"]
    assert wire.seen[0].headers["user-agent"].startswith("Veriscope/")


async def test_what_cannot_be_fetched_says_why(wire: Wire):
    wire.answers(shows("gone", 404))
    assert (await refused(wire.url)).facts == {"said": "status 404"}
    wire.answers(leads("/again"))
    assert (await refused(wire.url)).facts == {"said": "too many redirects"}
    wire.answers(waits())
    assert (await refused(wire.url, seconds=0.2)).facts == {"said": "no answer within 0 s"}
    assert (await refused("http://127.0.0.1:9/")).facts == {"said": "no connection"}


async def test_a_page_that_unpacks_to_too_much(wire: Wire):
    wire.answers(packs(bytes(9_000_000)))
    error = await refused(wire.url)
    assert (error.reason, error.facts) == ("too_large", {"most": 8})


async def test_strangers_reach_no_page_inside(wire: Wire):
    wire.answers(shows("secret"))
    error = await refused(wire.url, public_only=True)
    assert (error.reason, error.facts) == ("address", {"said": "no connection"})
    assert wire.seen == []
