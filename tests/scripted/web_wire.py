"""A search service on a loopback port, faults included, and what tests say about passages."""

from __future__ import annotations

import gzip
import json
from contextlib import AbstractContextManager
from urllib.parse import parse_qsl, urlsplit

from pipelines.base import Passage
from tests.scripted.wire import Handler, Respond, Seen, Wire
from tests.scripted.wire import serve as serve_wire


class WebHandler(Handler):
    """Takes GET as well, and forms; what was sent is kept as one mapping, header names small."""

    def do_GET(self) -> None:  # noqa: N802
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def do_POST(self) -> None:  # noqa: N802
        sent = self.rfile.read(int(self.headers["content-length"])).decode()
        is_json = self.headers["content-type"] == "application/json"
        self._answer(json.loads(sent) if is_json else dict(parse_qsl(sent, keep_blank_values=True)))

    def _answer(self, fields: dict[str, str]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.answer(Seen(urlsplit(self.path).path, headers, fields))


def serve() -> AbstractContextManager[Wire]:
    """A running service; its address has no path."""
    return serve_wire(WebHandler, path="")


class Naps:
    """A sleep that takes no time and remembers how long it was to be."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def shows(page: str, status: int = 200) -> Respond:
    """A page of HTML."""

    def respond(handler: Handler) -> None:
        handler.begin(status, {"content-type": "text/html; charset=UTF-8"})
        handler.wfile.write(page.encode())

    return respond


def packs(body: bytes) -> Respond:
    """`body`, compressed on its way."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-encoding": "gzip"})
        handler.wfile.write(gzip.compress(body))

    return respond


def sends_on(address: str) -> Respond:
    """A redirect."""

    def respond(handler: Handler) -> None:
        handler.begin(302, {"location": address, "content-length": "0"})

    return respond


def stays_open(body: object) -> Respond:
    """JSON over a connection that the service keeps open."""

    def respond(handler: Handler) -> None:
        data = json.dumps(body).encode()
        handler.protocol_version = "HTTP/1.1"
        handler.begin(200, {"content-length": str(len(data))})
        handler.wfile.write(data)
        handler.until_gone()

    return respond


def begins_and_waits(handler: Handler) -> None:
    """The head and a first byte, and then nothing."""
    try:
        handler.begin(200, {"content-type": "application/json", "content-length": "500"})
        handler.wfile.write(b"{")
        handler.wfile.flush()
    except OSError:
        # The caller was gone before the first byte.
        handler.wire.gone.set()
        return
    handler.until_gone()


def texts(passages: list[Passage]) -> list[str]:
    return [passage.text for passage in passages]
