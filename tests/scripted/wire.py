"""A small HTTP server on a loopback port that answers as model servers do, faults included."""

from __future__ import annotations

import asyncio
import json
import math
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from pipelines.base import Message
from pipelines.models.base import GenerationRequest, Model


class Seen(NamedTuple):
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Respond = Callable[["Handler"], None]


class Wire:
    """Answers requests with `replies` in order, the last one for ever; keeps what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: list[Respond] = []
        self.seen: list[Seen] = []
        self.arrived = threading.Event()
        self.gone = threading.Event()
        """Set when a caller closed its connection before it was answered in full."""
        self.over = threading.Event()
        self.lock = threading.Lock()

    def answers(self, *replies: Respond) -> None:
        self.replies = list(replies)


class Handler(BaseHTTPRequestHandler):
    wire: Wire

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(Seen(self.path, dict(self.headers), body))

    def answer(self, seen: Seen) -> None:
        """Note what was asked, and give the reply whose turn it is."""
        with self.wire.lock:
            self.wire.seen.append(seen)
            replies = self.wire.replies
            respond = replies.pop(0) if len(replies) > 1 else replies[0]
        self.wire.arrived.set()
        respond(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def until_gone(self) -> None:
        """Wait until the caller hangs up or the test is over."""
        while not self.wire.over.is_set():
            if select.select([self.connection], [], [], 0.02)[0]:
                try:
                    hung_up = not self.connection.recv(1)
                except ConnectionResetError:
                    # Who hangs up before they have read everything resets the connection.
                    hung_up = True
                if hung_up:
                    self.wire.gone.set()
                return


class _Server(ThreadingHTTPServer):
    # Of calls that arrive all at once, none is turned away.
    request_queue_size = 128


@contextmanager
def serve(answering: type[Handler] = Handler, path: str = "/v1") -> Iterator[Wire]:
    """A running `Wire`, whose address ends in `path`."""
    handler = type("BoundHandler", (answering,), {})
    server = _Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    wire = handler.wire = Wire(f"http://127.0.0.1:{server.server_address[1]}{path}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    try:
        yield wire
    finally:
        wire.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def says(body: object, status: int = 200, **headers: str) -> Respond:
    """A whole answer: JSON, or text that claims to be JSON."""

    def respond(handler: Handler) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.begin(
            status,
            {"content-type": "application/json", "content-length": str(len(data))} | named,
        )
        handler.wfile.write(data)

    return respond


def streams(*chunks: object, done: bool = True) -> Respond:
    """Server-sent events; without `done` the connection closes after the last chunk."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-type": "text/event-stream", "connection": "close"})
        for chunk in (*chunks, *(["[DONE]"] if done else [])):
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            handler.wfile.write(f"data: {data}\n\n".encode())

    return respond


def streams_then_waits(*chunks: object) -> Respond:
    """Server-sent events, and then nothing until the caller hangs up."""

    def respond(handler: Handler) -> None:
        streams(*chunks, done=False)(handler)
        handler.wfile.flush()
        handler.until_gone()

    return respond


def breaks_off(handler: Handler) -> None:
    """Announces more bytes than it sends."""
    handler.begin(200, {"content-type": "application/json", "content-length": "500"})
    handler.wfile.write(b'{"choices": [')


def waits(handler: Handler) -> None:
    """Never answers."""
    handler.until_gone()


def drips(data: bytes, kind: str = "text/event-stream") -> Respond:
    """The same bytes again and again, until the caller hangs up or the test is over."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-type": kind, "connection": "close"})
        while not handler.wire.over.wait(0.005):
            try:
                handler.wfile.write(data)
                handler.wfile.flush()
            except OSError:
                handler.wire.gone.set()
                return

    return respond


def event(body: object) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(body)}\n\n".encode()


def refusal(message: str, **fields: object) -> dict[str, object]:
    """An error as OpenAI words it."""
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def entry(token: str, probability: float, *others: tuple[str, float], **fields: Any) -> dict:
    """A token entry of `logprobs.content`, its own token listed first."""
    listed = [(token, probability), *others]
    return {
        "token": token,
        "bytes": list(token.encode()),
        "logprob": math.log(probability),
        "top_logprobs": [
            {"token": text, "bytes": list(text.encode()), "logprob": math.log(share)}
            for text, share in listed
        ],
    } | fields


def raw_entry(data: bytes, probability: float = 0.5) -> dict:
    """A token entry for bytes that need not be whole characters."""
    return entry(data.decode("utf-8", "replace"), probability, bytes=list(data))


def completion(
    *texts: str | None, entries: Sequence[dict] | None = None, finish: str = "stop", **message: Any
) -> dict:
    """A whole chat completion with a choice per text."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": index,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
                "logprobs": None if entries is None else {"content": list(entries)},
            }
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def chunk(
    content: str | None = None,
    *,
    entries: Sequence[dict] | None = None,
    finish: str | None = None,
    index: int = 0,
    **delta: Any,
) -> dict:
    """A piece of a streamed chat completion."""
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": index,
                "finish_reason": finish,
                "delta": {"content": content, **delta},
                "logprobs": None if entries is None else {"content": list(entries)},
            }
        ],
    }


def usage_chunk(prompt: int, written: int) -> dict:
    """The last chunk of a stream that was asked for its usage."""
    usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": 0}
    return {**chunk(), "choices": [], "usage": usage}


def asks(text: str = "Hello?", prefix: str = "", **fields: object) -> GenerationRequest:
    """A request for a reply to `text` that goes on from `prefix`."""
    turns = [Message(role="user", content=text)]
    if prefix:
        turns.append(Message(role="assistant", content=prefix))
    return GenerationRequest.model_validate({"messages": tuple(turns), **fields})


def texts_of_two_loops(shared: Model) -> list[str]:
    """What `shared` writes in an event loop, and then in another one."""

    async def ask() -> str:
        (reply,) = await shared.generate(asks())
        await shared.aclose()
        return reply.text

    return [asyncio.run(ask()), asyncio.run(ask())]
