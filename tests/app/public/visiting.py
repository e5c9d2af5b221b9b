"""A page of the Space without a browser: it asks the server for what a browser asks it for.

It loads the document, keeps the heartbeat open, sends the events that the page sends when it is
loaded, and gets the walkthrough. It has the files of Gradio already, like a browser that was here
before, and it does not draw.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any

import httpx

_CONFIG = re.compile(r"window\.gradio_config = (\{.*?\});</script>", re.DOTALL)
_TRIES = 2
_AT_ONCE = 6
"""Connections that a browser opens to one server."""


class PageSession:
    """An open page. Times are in seconds since it was opened; `received` counts bytes."""

    def __init__(self, client: httpx.AsyncClient, number: int) -> None:
        self.client = client
        self.session = f"page{number:06d}"
        self.received = 0
        self.moved_after = 0.0
        self.frames = 0
        self._begun = time.monotonic()
        self._config: dict[str, Any] = {}
        self._clicks = 0

    async def load(self) -> None:
        """What happens until the walkthrough moves."""
        page = (await self._get("/")).text
        self._config = _parsed(_found(_CONFIG, page))
        # The browser begins to play beside the events that the page sends when it is loaded.
        await asyncio.gather(self._play(), self._arrive())

    async def _play(self) -> None:
        played = _parsed((await self._get("/walkthrough/en")).text)
        self.frames = len(played["frames"])
        # The second frame is the first that moves.
        await asyncio.sleep(played["frames"][1][0])
        self.moved_after = self.seconds

    async def _arrive(self) -> None:
        # Of the page itself: nothing else here is loaded.
        first = next(
            one for one in self._events() if "load" in [name for _, name in one["targets"]]
        )
        (owner,) = await self._send(first, [None, ""])
        (greet,) = self._after(first)
        language, *_ = await self._send(greet, [None])
        (settle,) = self._after(greet)
        await self._send(settle, [None, language])
        tab, play, estimate, check = self._after(settle)
        ticked = ["direct", "drad"]
        (cue, *_), *_ = await asyncio.gather(
            self._send(play, [None]),
            self._send(tab, [None]),
            self._send(estimate, _filled(estimate, [None, ticked])),
            self._send(check, _filled(check, [None, "", "", []])),
        )
        assert owner
        assert json.loads(cue)["language"] == language

    @property
    def seconds(self) -> float:
        """Since it was opened."""
        return time.monotonic() - self._begun

    async def ask(self, question: str, methods: Sequence[str] = ("direct",)) -> AsyncGenerator[str]:
        """Press Run; the line above the views, whenever it changes."""
        (run,) = (
            one
            for one in self._events()
            if one["queue"] and "submit" in [name for _, name in one["targets"]]
        )
        asked = _filled(run, [None, self._clicked(), question, list(methods)])
        async for frame in self._queued(run, asked):
            yield frame

    async def click_example(self, number: int) -> None:
        """An example is clicked, and what it comes to is shown."""
        take = next(one for one in self._events() if one["queue"] and len(one["outputs"]) == 1)
        await self._whole(take, [None, self._clicked(), number])
        (shown,) = (one for one in self._after(take) if one["queue"])
        await self._whole(shown, [None])

    async def share(self) -> str:
        """The id under which everybody may read what is shown."""
        (share,) = (
            one
            for one in self._events()
            if len(one["outputs"]) == 2 and [name for _, name in one["targets"]] == ["click"]
        )
        return (await self._send(share, [None]))[0]

    def _clicked(self) -> int:
        self._clicks += 1
        return self._clicks

    def _events(self) -> list[dict[str, Any]]:
        return [one for one in self._config["dependencies"] if one["backend_fn"]]

    def _after(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for one in self._events() if one["trigger_after"] == event["id"]]

    async def _get(self, path: str) -> httpx.Response:
        reply = await self._request("GET", path)
        self.received += int(reply.headers.get("content-length") or len(reply.content))
        return reply

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """As a browser does, send it again where a connection that was idle turns out closed."""
        for _ in range(_TRIES):
            with suppress(httpx.TransportError):
                reply = await self.client.request(method, path, **options)
                return reply.raise_for_status()
        reply = await self.client.request(method, path, **options)
        return reply.raise_for_status()

    def _said(self, event: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        fields = {"event_data": None, "trigger_id": event["targets"][0][0] or 0}
        return {
            "data": values,
            "fn_index": event["id"],
            "session_hash": self.session,
            **fields,
        }

    async def _send(self, event: dict[str, Any], values: list[Any]) -> list[Any]:
        said = self._said(event, values)
        reply = await self._request("POST", "/gradio_api/run/predict", json=said)
        self.received += len(reply.content)
        return reply.json()["data"]

    async def _whole(self, event: dict[str, Any], values: list[Any]) -> None:
        async for _ in self._queued(event, values):
            pass

    async def _queued(self, event: dict[str, Any], values: list[Any]) -> AsyncGenerator[str]:
        said = self._said(event, values)
        joined = await self._request("POST", "/gradio_api/queue/join", json=said)
        number = joined.json()["event_id"]
        told = {"session_hash": self.session}
        async with self.client.stream("GET", "/gradio_api/queue/data", params=told) as stream:
            async for line in stream.aiter_lines():
                self.received += len(line)
                if not line.startswith("data: "):
                    continue
                message = json.loads(line.removeprefix("data: "))
                if message.get("event_id") not in (None, number):
                    continue
                if message["msg"] in ("process_generating", "process_completed"):
                    yield json.dumps(message["output"].get("data", message["output"]))
                if message["msg"] in ("process_completed", "close_stream"):
                    return

    async def beat(self) -> None:
        """Keep the heartbeat open, as a page does until it is closed."""
        address = f"/gradio_api/heartbeat/{self.session}"
        async with self.client.stream("GET", address) as stream:
            async for _ in stream.aiter_raw():
                pass


@asynccontextmanager
async def opened(url: str, number: int) -> AsyncIterator[PageSession]:
    """A page with connections of its own, closed at the end of the block."""
    limits = httpx.Limits(max_connections=_AT_ONCE + 2, keepalive_expiry=2.0)
    # On this machine nothing is encrypted; to prepare for it would take longer than the rest.
    connected = httpx.AsyncClient(base_url=url, timeout=300, limits=limits, verify=False)
    async with connected as client:
        page = PageSession(client, number)
        beating = asyncio.create_task(page.beat())
        try:
            yield page
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)


def _filled(event: dict[str, Any], values: list[Any]) -> list[Any]:
    """The inputs of an event, of which nobody has touched those that follow `values`."""
    untouched = len(event["inputs"]) - len(values) - 1
    return [*values, "openai", *[None] * untouched]


@lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    """The same text is read once for all pages: their browsers are not on this machine."""
    return json.loads(text)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found, text[:500]
    return found[1]
