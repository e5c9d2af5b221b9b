"""Keeps requests to addresses that visitors chose out of this machine's own network."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx2

_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an IP address is one that anybody on the internet can reach.

    An IPv6 address that means an IPv4 one counts as that one.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        found = _inside(found) or found
    return found.is_global and not found.is_multicast


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that `address` leads to, if it is of a kind that leads to one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


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
