"""Who asks: visitors are told apart by their address, and by the name that their browser keeps.

A visitor can drop that name at any time, so limits hold for an address as well. Behind a proxy all
visitors have the proxy's address, unless the operator says which proxy to believe: then it is the
one that the proxy names in X-Forwarded-For, read from the right. The server (uvicorn) reads it.
"""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple

from pipelines.errors import failure

HOUR = 3600.0

_TOO_OFTEN = {"visitor": "asking.often_visitor", "address": "asking.often_address"}

_BELIEVED = "FORWARDED_ALLOW_IPS"
"""Where the server looks for the proxies that it believes."""

_NOBODY = "none"

_PLATFORM = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7"
"""Private networks: on a Space of Hugging Face only its proxy connects, from one of them."""

_REMEMBERED = 10_000
"""Visitors of whom it is remembered when they asked."""

_LONGEST = 100
"""Characters of an address; one that is no IP address comes from a proxy that is believed."""


class Caller(NamedTuple):
    """Who asks for a run: the `visitor` who takes a slot, and the `address` they ask from.

    None where that is not known.
    """

    visitor: str | None = None
    address: str | None = None

    @property
    def queues_as(self) -> str | None:
        """The address whose places in the queue are limited; None for this machine's own."""
        return None if self.address is None or _is_here(self.address) else self.address


def caller_of(request: object, visitor: str | None = None) -> Caller:
    """Return who makes `request`, one of Gradio's or of Starlette's, or None.

    Without a name, all from one address count as one visitor. Those on this machine do not:
    connections from it come from the operator's programs, or from a proxy that is not among
    VERISCOPE_TRUSTED_PROXIES.
    """
    address = _address_of(request)
    if visitor is None and address is not None and not _is_here(address):
        visitor = address
    return Caller(visitor, address)


def believe(proxies: str) -> None:
    """Have the server believe these proxies from its next start on, and no others."""
    os.environ[_BELIEVED] = proxies or _NOBODY


def proxies_to_believe(environment: Mapping[str, str], named: str | None) -> str:
    """Return the addresses and networks of `named`, as the server reads them.

    Where nothing is named, these are those that the server was told in its own way; on a Space of
    Hugging Face its private networks; else none. Raises InvalidInputError naming what is wrong.
    """
    if named is None:
        usual = _PLATFORM if environment.get("SPACE_ID") else ""
        return environment.get(_BELIEVED) or usual
    if named.strip() == _NOBODY:
        return ""
    found = [one.strip() for one in named.split(",") if one.strip()]
    for one in found:
        try:
            ip_network(one)
        except ValueError:
            raise failure("environment.proxies", value=one[:_LONGEST]) from None
    return ",".join(found)


class Rates:
    """How many runs each visitor, and each address, has begun in the last hour.

    0 is no limit. Where there are too many visitors, the least recent ones are forgotten.
    """

    def __init__(
        self,
        per_visitor: int,
        per_address: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = {"visitor": per_visitor, "address": per_address}
        self._clock = clock
        self._begun: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def check(self, caller: Caller) -> None:
        """Raise TooOftenError, which says when it is over, where the caller may begin no run."""
        now = self._clock()
        for kind, name in self._limited(caller):
            begun = [at for at in self._begun.get((kind, name), ()) if at > now - HOUR]
            if len(begun) >= self._most[kind]:
                after = begun[0] + HOUR - now
                minutes = max(1, math.ceil(after / 60))
                error = failure(_TOO_OFTEN[kind], most=self._most[kind], minutes=minutes)
                error.retry_after = after
                raise error

    def count(self, caller: Caller) -> None:
        """Count a run that the caller begins."""
        now = self._clock()
        for key in self._limited(caller):
            begun = self._begun.setdefault(key, deque(maxlen=self._most[key[0]]))
            begun.append(now)
            self._begun.move_to_end(key)
        # The first is the one that has not asked for the longest time.
        while self._begun:
            first = next(iter(self._begun))
            if len(self._begun) <= _REMEMBERED and self._begun[first][-1] > now - HOUR:
                break
            del self._begun[first]

    def __len__(self) -> int:
        return len(self._begun)

    def _limited(self, caller: Caller) -> list[tuple[str, str]]:
        """Return under which names the caller's runs are counted, with the kind of each."""
        named: dict[str, str | None] = caller._asdict()
        return [(kind, name) for kind, most in self._most.items() if most and (name := named[kind])]


def _address_of(request: object) -> str | None:
    client = getattr(request, "client", None)
    host = str(getattr(client, "host", None) or "")[:_LONGEST]
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host or None
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    # A household or a machine is given a network of this size, and chooses addresses in it.
    return str(ip_network((found.packed, 64), strict=False)) if not found.is_loopback else host


def _is_here(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
