"""Who can reach a front end, what is thereby open to them, and what is kept from them.

On a loopback address only this machine's own people use the workbench, and everything is open to
them. On any other address anybody who reaches the port can, without a password: then nothing that a
visitor names may lead into this machine's network or files, unless the operator allows it. To the
visitors of the Space it never does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pipelines.errors import failure
from pipelines.models.providers import PROVIDERS, SWITCH

HOSTS = "VERISCOPE_HOSTS"
"""The environment variable with the names by which a browser may call the workbench."""

PROXIES = "VERISCOPE_TRUSTED_PROXIES"
"""The environment variable with the proxies that are believed when they name an address."""

_BELIEVED = "FORWARDED_ALLOW_IPS"
"""Where the server looks for the proxies that it believes."""

_NOBODY = "none"

_PLATFORM = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7"
"""Private networks: on a Space of Hugging Face only its proxy connects, from one of them."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SWITCH = TypeAdapter(bool)


@dataclass(frozen=True)
class Exposure:
    """`address` is what is served on, empty for every address of the machine; `hosts` are names
    beside those of the loopback interface by which it is called, "*" for any; `any_address` is what
    the operator said about addresses and files that visitors name, None if nothing."""

    address: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    any_address: bool | None = None

    @property
    def open(self) -> bool:
        """Whether people at other machines can reach it, as far as can be seen from inside."""
        return bool(self.hosts) or not _is_loopback(self.address)

    @property
    def restricted(self) -> bool:
        """Whether visitors are kept from this machine's own network and files."""
        return self.open if self.any_address is None else not self.any_address

    def accepts(self, host: str) -> bool:
        """Return whether a browser may call the workbench `host`, a name or an address
        without a port.

        On a loopback address a foreign name is an attack: the page of another site whose name was
        made to lead here (DNS rebinding).
        """
        if "*" in self.hosts or host in (*_LOOPBACK, *self.hosts):
            return True
        return not self.hosts and not _is_loopback(self.address)


def exposure_of(address: str | None, environment: Mapping[str, str]) -> Exposure:
    """Return what `address` and the operator's variables make of it; raises InvalidInputError."""
    said = environment.get(SWITCH, "").strip()
    try:
        any_address = _SWITCH.validate_python(said) if said else None
    except ValidationError:
        raise failure("environment.switch", variable=SWITCH, said=said) from None
    hosts = (name.strip().lower().strip("[]") for name in environment.get(HOSTS, "").split(","))
    return Exposure((address or "").strip(), tuple(filter(None, hosts)), any_address)


def workbench_exposure() -> Exposure:
    """Return the exposure of the workbench that Streamlit serves in this process."""
    from streamlit import config

    return exposure_of(config.get_option("server.address"), os.environ)


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
            raise failure("environment.proxies", value=one[:100]) from None
    return ",".join(found)


def believe_proxies(environment: Mapping[str, str]) -> None:
    """Have the workbench believe the proxies that the operator names; raises InvalidInputError.

    Where nobody names any, the server believes those of this machine, as it does by itself.
    """
    proxies = proxies_to_believe(environment, environment.get(PROXIES) or None)
    if proxies or environment.get(PROXIES):
        believe(proxies)


def what_is_open(exposure: Exposure, environment: Mapping[str, str]) -> str:
    """Return what the operator is told at the start; empty where nobody else can reach the
    workbench.
    """
    if not exposure.open:
        return ""
    where = exposure.address or "every address of this machine"
    named = f", and is called {', '.join(exposure.hosts)}" if exposure.hosts else ""
    lines = [
        f"It is served on {where}{named}. Anybody who reaches this port can use it, "
        "without a password. They can:",
        "- ask questions and check texts, which this machine computes, and import runs, "
        "which it stores;",
        "- bring data sets, and start evaluations of them, which may take hours;",
        "- make annotation sessions, and links that let others label in them;",
        "- add documents, which this machine reads, stores and indexes;",
        "- download the models of its list to this machine, and delete them;",
        "- send questions from this machine to the web searches it offers;",
    ]
    if exposure.restricted:
        lines += [
            "- send requests from this machine to addresses on the public internet, "
            "also for pages as documents.",
            "They cannot name addresses in this machine's own network, nor its files and folders. "
            f"{SWITCH}=1 allows both.",
        ]
    else:
        lines += [
            "- send requests from this machine to any address, also in its own network, "
            "and have pages there read as documents;",
            "- load any file or folder of this machine as a model, and any model of the hub.",
            f"{SWITCH}=1 allows the last two.",
        ]
    if tokens := _set(["HF_TOKEN"], environment):
        lines.append(f"Downloads are made with this machine's {tokens}.")
    if keys := _set([one.key_variable for one in PROVIDERS.values()], environment):
        lines.append(f"{keys} of this machine's environment is used by the command line alone.")
    lines.append(
        "To keep others out: HOST=127.0.0.1, and for a container -p 127.0.0.1:7860:7860. "
        "docs/models.md says more."
    )
    return "\n".join(lines)


def what_space_opens(address: str | None, *, custom_servers: bool) -> str:
    """Return what the operator of the Space is told at the start; empty where nobody else can
    reach it.
    """
    if _is_loopback(address or "127.0.0.1"):
        return ""
    lines = [
        f"It is served on {address}. Anybody who reaches this port can use the page, its API and "
        "its MCP server, without a password: they ask questions, within the limits that "
        "docs/space.md lists.",
    ]
    if custom_servers:
        lines.append(
            "They can send requests from this machine to addresses on the public internet: "
            "VERISCOPE_CUSTOM_SERVERS is on."
        )
    lines.append(
        "This machine's files, the addresses of its own network and the keys of its environment "
        "are out of their reach."
    )
    return "\n".join(lines)


def _set(names: Sequence[str], environment: Mapping[str, str]) -> str:
    return " and ".join(name for name in names if name and environment.get(name))


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ip_address(address.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


_CONTENT = {
    "default-src": "'self'",
    # Streamlit's page has scripts and styles in it, and components bring theirs as text.
    "script-src": "'self' 'unsafe-inline' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}

SPACE_HEADERS = {
    "x-content-type-options": "nosniff",
    # The address of a page names the run it shows.
    "referrer-policy": "same-origin",
}
"""Of every answer of the Space: other sites, such as the hub, show it in frames of theirs."""

PAGE_HEADERS = {
    **SPACE_HEADERS,
    # The browser itself keeps a page from loading or sending anything elsewhere.
    "content-security-policy": "; ".join(f"{name} {rule}" for name, rule in _CONTENT.items()),
}
"""Of every answer of the workbench."""


class Doorkeeper:
    """Turns away browsers that were led here by another site, and tells pages what they may load.

    A page of another site may call this machine by a name of its own that leads here, or open a
    WebSocket to it. The name must be one that `exposure` accepts, and a WebSocket must come from a
    page of this very address, or of a host that the operator named.
    """

    def __init__(self, app: ASGIApp, exposure: Exposure) -> None:
        self._app = app
        self._exposure = exposure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        called, origin = headers.get("host", ""), headers.get("origin")
        if not self._exposure.accepts(_host(f"//{called}")):
            await self._turn_away(scope, receive, send)
        elif scope["type"] == "http":
            await self._app(scope, receive, _with_headers(send, PAGE_HEADERS))
        elif origin is None:
            await self._app(scope, receive, send)
        elif self._is_ours(origin, called):
            # Streamlit compares the origin with the host. Where they differ, because a proxy has a
            # name of its own for this machine, it would ask a service on the internet for this
            # machine's address. It needs the origin where people log in.
            kept = [(name, value) for name, value in scope["headers"] if name != b"host"]
            host = (b"host", origin.partition("://")[2].encode())
            await self._app({**scope, "headers": [*kept, host]}, receive, send)
        else:
            await self._turn_away(scope, receive, send)

    def _is_ours(self, origin: str, called: str) -> bool:
        return origin.partition("://")[2] == called or _host(origin) in self._exposure.hosts

    @staticmethod
    async def _turn_away(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
            return
        said = f"The workbench is not known by this name. Its operator can add it to {HOSTS}.\n"
        await PlainTextResponse(said, 421)(scope, receive, send)


class SpaceHeaders:
    """Adds `SPACE_HEADERS` to what the Space answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        await self._app(scope, receive, _with_headers(send, SPACE_HEADERS))


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _host(url: str) -> str:
    """Return the name or address in `url`, without a port; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
