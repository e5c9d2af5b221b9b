"""Calls through the official DashScope client, each with its own key, address and connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

import aiohttp
from dashscope.aigc.generation import AioGeneration
from dashscope.api_entities.aio_session import get_ssl_context
from dashscope.api_entities.dashscope_response import GenerationResponse

from pipelines.remote.address import Address

__all__ = ["DashScopeClient"]

_CONNECT_SECONDS = 10.0


class DashScopeClient:
    """Sends text-generation calls to one address with one key.

    Both travel with every call: the client's module-wide key, address and session are neither read
    nor set. `timeout` is in seconds, for a whole reply or for the next part of a streamed one;
    TimeoutError is raised after it. Beside that, whatever the client raises. A connection found
    dead before it was answered is replaced once by the client itself.
    """

    def __init__(self, address: Address, key: str, timeout: float) -> None:
        self._address = address
        self._key = key
        self._timeout = timeout
        # A connection belongs to the event loop it was opened in.
        self._connectors: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.TCPConnector] = (
            WeakKeyDictionary()
        )

    async def ask(self, **fields: Any) -> GenerationResponse:
        """The reply in one piece; an error of the service is a reply with another status."""
        async with self._session() as session, asyncio.timeout(self._timeout):
            answer = await AioGeneration.call(**self._call(session), **fields)
        return cast(GenerationResponse, answer)

    @asynccontextmanager
    async def stream(
        self, **fields: Any
    ) -> AsyncIterator[AsyncGenerator[GenerationResponse, None]]:
        """The reply in parts; leaving the block before the last one hangs up."""
        async with self._session() as session, aclosing(self._parts(session, fields)) as parts:
            yield parts

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        connector = self._connectors.pop(asyncio.get_running_loop(), None)
        if connector is not None:
            await connector.close()

    async def _parts(
        self, session: aiohttp.ClientSession, fields: dict[str, Any]
    ) -> AsyncGenerator[GenerationResponse, None]:
        call = AioGeneration.call(
            **self._call(session), **fields, stream=True, incremental_output=True
        )
        parts = cast(AsyncGenerator[GenerationResponse, None], await call)
        async with aclosing(parts):
            while True:
                async with asyncio.timeout(self._timeout):
                    part = await anext(parts, None)
                if part is None:
                    return
                yield part

    def _call(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        return {
            "api_key": self._key,
            "base_address": self._address.url,
            "session": session,
            # Longer than ours: the client sends a request anew when its own limit has passed.
            "request_timeout": 2 * self._timeout + _CONNECT_SECONDS,
        }

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """One call's view of the shared connections; it hangs up what was not read to the end."""
        begun: list[aiohttp.ClientResponse] = []

        async def note(_: object, __: object, end: aiohttp.TraceRequestEndParams) -> None:
            begun.append(end.response)

        tracing = aiohttp.TraceConfig()
        tracing.on_request_end.append(note)
        async with aiohttp.ClientSession(
            connector=self._connector(),
            connector_owner=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[tracing],
            trust_env=not self._address.on_this_machine,
        ) as session:
            try:
                yield session
            finally:
                # Closing the client's generator leaves this to the garbage collector.
                for response in begun:
                    response.close()

    def _connector(self) -> aiohttp.TCPConnector:
        loop = asyncio.get_running_loop()
        connector = self._connectors.get(loop)
        if connector is None:
            # Without TLS there is nothing to verify, and certificates take long to load.
            verify = get_ssl_context() if self._address.url.startswith("https:") else True
            connector = self._connectors[loop] = _Connector(ssl=verify, limit=0)
        return connector


class _Connector(aiohttp.TCPConnector):
    """Connections that must come about soon: the client can only limit a call as a whole."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> Any:
        soon = aiohttp.ClientTimeout(
            total=timeout.total, sock_read=timeout.sock_read, sock_connect=_CONNECT_SECONDS
        )
        return await super().connect(req, traces, soon)
