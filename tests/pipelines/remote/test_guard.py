"""Addresses that visitors chose lead to the public internet or nowhere."""

from __future__ import annotations

import httpx2
import pytest

from pipelines import remote
from pipelines.remote import PublicTransport, is_public, public_address


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        # Where clouds tell a machine its own secrets.
        ("169.254.169.254", False),
        ("fd00:ec2::254", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("ff02::1", False),
        # IPv6 addresses that lead to IPv4 ones.
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::808:808", True),
        ("2002:7f00:1::", False),
        ("2002:808:808::", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("64:ff9b:1::808:808", False),
        ("::ffff:0:127.0.0.1", False),
        ("::ffff:0:808:808", False),
        ("::127.0.0.1", False),
        ("::8.8.8.8", False),
        # Not given out for use on the internet, or for something else.
        ("fec0::1", False),
        ("4000::1", False),
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("192.0.0.192", False),
        ("192.0.0.9", False),
        ("192.88.99.1", False),
        ("240.0.0.1", False),
        # Where a cloud's machines talk to their host.
        ("168.63.129.16", False),
        ("168.63.129.17", True),
        ("not an address", False),
        ("", False),
    ],
)
def test_what_anybody_can_reach(address: str, public: bool):
    assert is_public(address) == public


def answering(*addresses: str):
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def test_a_name_leads_to_its_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote, "resolve", answering("8.8.8.8", "1.1.1.1"))
    assert await public_address("example.org", 443) == "8.8.8.8"


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("10.0.0.1", "8.8.8.8")]
)
async def test_a_name_that_leads_inside_leads_nowhere(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote, "resolve", answering(*addresses))
    with pytest.raises(httpx2.ConnectError, match="not an address on the public internet"):
        await public_address("example.org", 443)


async def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch):
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    for resolve in (unknown, answering()):
        monkeypatch.setattr(remote, "resolve", resolve)
        with pytest.raises(httpx2.ConnectError, match="has no address"):
            await public_address("example.org", 443)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]"])
async def test_this_machine_is_not_reached_under_any_of_its_names(host: str):
    async with httpx2.AsyncClient(transport=PublicTransport(Recorded())) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://{host}:8501/")


class Recorded(httpx2.AsyncBaseTransport):
    """Keeps what it was asked, and redirects the first request elsewhere."""

    def __init__(self, redirect: str = "") -> None:
        self.redirect = redirect
        self.asked: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if self.redirect and len(self.asked) == 1:
            return httpx2.Response(302, headers={"location": self.redirect})
        return httpx2.Response(200, text="hello")


async def test_the_address_that_was_looked_at_is_connected_to(monkeypatch: pytest.MonkeyPatch):
    inner = Recorded()
    answers = [["8.8.8.8"], ["127.0.0.1"]]

    async def rebinding(host: str, port: int) -> list[str]:
        assert (host, port) == ("example.org", 443)
        return answers.pop(0)

    monkeypatch.setattr(remote, "resolve", rebinding)
    async with httpx2.AsyncClient(transport=PublicTransport(inner)) as client:
        reply = await client.get("https://example.org/v1?a=1", headers={"x-a": "b"})
        assert reply.text == "hello"
        (sent,) = inner.asked
        assert str(sent.url) == "https://8.8.8.8/v1?a=1"
        assert sent.headers["host"] == "example.org"
        assert sent.headers["x-a"] == "b"
        assert sent.extensions["sni_hostname"] == "example.org"
        # The second answer leads inside.
        with pytest.raises(httpx2.ConnectError):
            await client.get("https://example.org/v1")


async def test_a_redirect_is_looked_at_too(monkeypatch: pytest.MonkeyPatch):
    inner = Recorded(redirect="http://169.254.169.254/latest/meta-data")

    async def resolve(host: str, port: int) -> list[str]:
        return ["8.8.8.8"] if host == "example.org" else [host]

    monkeypatch.setattr(remote, "resolve", resolve)
    client = httpx2.AsyncClient(transport=PublicTransport(inner), follow_redirects=True)
    async with client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("https://example.org/")
    assert len(inner.asked) == 1
