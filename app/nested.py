"""Pages below the first address tell Streamlit's own script where the server is.

Without that it tries the page's own address first: two requests that the server answers with 404.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.config import get_option

_HEAD = b"</head>"


class NestedPages:
    """Adds the server's address, relative to the page's, to the HTML of nested pages.

    Deeper addresses, at which Streamlit's script would not find its own files, lead to their page.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but the HTML of a nested page, which is changed on its way out."""
        path = _below_base(scope["path"]) if scope["type"] == "http" else ""
        if not _is_page(path) or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        # What is packed cannot be added to; the document is small.
        headers = [(k, v) for k, v in scope["headers"] if k.lower() != b"accept-encoding"]
        outgoing = _Outgoing(send, path)
        await self.app({**scope, "headers": headers}, receive, outgoing.send)


class _Outgoing:
    """One response: kept back until its head is whole where it is HTML."""

    def __init__(self, send: Send, path: str) -> None:
        self._send = send
        self._path = path
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_html(message):
            self._start = message
            return
        if message["type"] != "http.response.body" or self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = self._body.replace(_HEAD, _script(self._path) + _HEAD, 1)
        if (page := _page_of(self._path)) is not None:
            self._start["status"] = 307
            MutableHeaders(raw=self._start["headers"])["location"] = page
            body = b""
        MutableHeaders(raw=self._start["headers"])["content-length"] = str(len(body))
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body})


def _below_base(path: str) -> str:
    """Return the path below the one that the server is set up to answer at."""
    base = str(get_option("server.baseUrlPath") or "").strip("/")
    return path.removeprefix(f"/{base}") if base else path


def _is_page(path: str) -> bool:
    """Return whether a page may be at `path`: it has a name, and is no file and no part of
    the server.
    """
    last = path.rstrip("/").rpartition("/")[2]
    return bool(last) and "." not in last and not path.startswith(("/_stcore", "/static", "/media"))


def _page_of(path: str) -> str | None:
    """Return the page of a deeper address, relative to it; None for the address of a
    page itself.
    """
    names = [name for name in path.split("/") if name]
    return f"{_up(path)}{names[0]}" if len(names) > 1 else None


def _up(path: str) -> str:
    return "../" * (path.count("/") - 1) or "./"


def _is_html(start: Message) -> bool:
    kind = MutableHeaders(raw=list(start["headers"])).get("content-type", "")
    return start["status"] == 200 and kind.startswith("text/html")


def _script(path: str) -> bytes:
    address = f'new URL("{_up(path)}",location.href).href'
    return f"<script>window.__streamlit={{BACKEND_BASE_URL:{address}}}</script>".encode()
