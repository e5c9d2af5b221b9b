"""The tools, as the official MCP client and a plain one find them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import httpx
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from app.public import mcp
from app.public.api import Api
from pipelines.methods.registry import METHODS
from tests.app.public.conftest import Served

QUESTION = "Where was Bill Clinton born?"
_numbers = count()


def another() -> dict[str, Any]:
    """A question that nobody has asked."""
    return {"question": f"Who was born in {1000 + next(_numbers)}?", "method": "direct"}


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[ClientSession]:
    """A session of the official client library."""
    async with (
        streamable_http_client(f"{served.url}/gradio_api/mcp/") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def data(reply: types.CallToolResult) -> dict[str, Any]:
    """The data of a reply that is no error."""
    assert not reply.isError
    assert reply.structuredContent is not None
    return reply.structuredContent


async def until(served: Served, holds: Any) -> None:
    await asyncio.to_thread(served.until, holds)


def busy(served: Served) -> Any:
    return lambda: served.model.busy > 0


def ended(served: Served) -> Any:
    return lambda: served.model.busy == 0 and served.model.cancelled > 0


async def test_only_the_intended_tools_are_listed_with_all_that_a_client_needs(served: Served):
    async with connected(served) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(tools) == {"ask", "check", "get_run", "cancel_run", "list_methods"}
    for tool in tools.values():
        assert tool.title
        assert tool.description
        assert tool.annotations
        assert tool.annotations.readOnlyHint == (tool.name in ("get_run", "list_methods"))
        assert bool(tool.annotations.destructiveHint) == (tool.name == "cancel_run")
        assert tool.annotations.openWorldHint is False
        assert tool.inputSchema["additionalProperties"] is False
        assert tool.outputSchema
    fields = tools["ask"].inputSchema["properties"]
    asked = {"question", "method", "settings", "compare_with", "share", "wait"}
    assert set(fields) == asked | {"limits", "anyway"}
    assert fields["method"]["enum"] == list(METHODS)
    assert tools["ask"].inputSchema["required"] == ["question"]


async def test_every_tool_gives_data_that_fits_its_schema(answering: Served):
    async with connected(answering) as session:
        # The client compares each reply with the schema, and raises where it does not fit.
        asked = await session.call_tool("ask", {"question": QUESTION, "method": "direct"})
        found = data(asked)
        assert found["methods"]["direct"]["answer"] == "In Hope, Arkansas."
        (text,) = asked.content
        assert isinstance(text, types.TextContent)
        assert json.loads(text.text) == found
        again = await session.call_tool("get_run", {"run": found["run"]})
        assert data(again) == found
        given = {"question": QUESTION, "answer": "In Hope.", "context": "He was born in Hope."}
        started = data(await session.call_tool("check", {**given, "wait": 0}))
        data(await session.call_tool("cancel_run", {"run": started["run"]}))
        listed = await session.call_tool("list_methods")
        assert [one["name"] for one in data(listed)["methods"]] == list(METHODS)
        over = await session.call_tool("cancel_run", {"run": found["run"]})
        assert data(over)["status"] == "finished"


@pytest.mark.parametrize(
    ("tool", "given", "code", "field"),
    [
        ("ask", {"question": QUESTION, "share": "false"}, "invalid_input", "share"),
        ("ask", {"question": QUESTION, "method": "magic"}, "invalid_input", "method"),
        ("ask", {"question": QUESTION, "settings": {"m": 0}}, "invalid_input", "settings.m"),
        ("ask", {}, "invalid_input", "question"),
        ("check", {"question": QUESTION}, "invalid_input", "answer"),
        ("check", {"answer": "x", "detectors": ["direct"]}, "invalid_input", "detectors.0"),
        (
            "check",
            {"answer": "x", "settings": {"slm": {"mean": 1}}},
            "invalid_input",
            "settings.slm.mean",
        ),
        ("check", {"answer": "So.", "detectors": ["selfcheck"]}, "capability", "detectors"),
        ("get_run", {"run": "none"}, "not_found", None),
        ("cancel_run", {"run": "none"}, "not_found", None),
        ("list_methods", {"x": 1}, "invalid_input", "x"),
        ("nothing", {}, "invalid_input", None),
    ],
)
async def test_an_error_of_use_is_a_result_that_says_what_to_do(
    held: Served, tool: str, given: dict[str, Any], code: str, field: str | None
):
    async with connected(held) as session:
        reply = await session.call_tool(tool, given)
    assert reply.isError
    assert reply.structuredContent is not None
    assert (reply.structuredContent["code"], reply.structuredContent.get("field")) == (code, field)
    assert reply.structuredContent["message"]
    assert reply.structuredContent["remedy"]
    assert held.model.asked == []


async def test_an_unexpected_error_is_told_without_its_internals(
    served: Served, monkeypatch: pytest.MonkeyPatch
):
    async with connected(served) as session:

        def broken(self: Api) -> None:
            raise ZeroDivisionError("a secret of the server")

        monkeypatch.setattr(Api, "methods", broken)
        reply = await session.call_tool("list_methods")
    assert reply.isError
    assert "secret" not in str(reply)
    assert "unexpected" in str(reply.structuredContent)


async def test_a_long_run_is_started_followed_and_fetched(held: Served):
    told: list[tuple[float, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with connected(held) as session:
        started = data(await session.call_tool("ask", {**another(), "wait": 0}))
        run = started["run"]
        assert run in started["next"]
        await until(held, busy(held))
        asked = {**another(), "wait": 0.1}
        waiting = data(await session.call_tool("ask", asked, progress_callback=tell))
        assert waiting["status"] == "waiting"
        await session.call_tool("cancel_run", {"run": waiting["run"]})
        following = asyncio.create_task(
            session.call_tool("get_run", {"run": run, "wait": 50}, progress_callback=tell)
        )
        await until(held, lambda: any("Writing" in str(message) for _, message in told))
        held.let_go()
        found = data(await following)
    assert (found["run"], found["status"]) == (run, "finished")
    first, second, *later = told
    assert first == (1.0, "Waiting: 0 before this one.")
    assert second == (1.0, "direct: Writing the answer; calls: 0 of about 1")
    # Between the last step and the end of the run.
    assert {message for _, message in later} <= {"Running."}


async def test_a_client_hears_that_a_run_goes_on_though_nothing_is_new(
    held: Served, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mcp, "_BEAT", 0.0)
    told: list[float] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with connected(held) as session:
        asking = asyncio.create_task(
            session.call_tool("ask", {**another(), "wait": 50}, progress_callback=tell)
        )
        await until(held, lambda: len(told) >= 3)
        held.let_go()
        await asking
    assert told == sorted(set(told))


async def test_a_client_that_cancels_its_call_ends_the_run(held: Served):
    async with connected(held) as session:
        asking = asyncio.create_task(session.call_tool("ask", another()))
        await until(held, busy(held))
        # Requests are numbered from 0: to initialize, and this one.
        cancelled = types.CancelledNotification(
            params=types.CancelledNotificationParams(requestId=1, reason="enough")
        )
        await session.send_notification(types.ClientNotification(cancelled))
        reply = await asking
        assert reply.isError
        assert reply.structuredContent is not None
        assert reply.structuredContent["code"] == "cancelled"
        await until(held, ended(held))


async def test_nobody_cancels_the_call_of_another_session(held: Served):
    async with connected(held) as mine, connected(held) as theirs:
        asking = asyncio.create_task(mine.call_tool("ask", another()))
        await until(held, busy(held))
        cancelled = types.CancelledNotification(
            params=types.CancelledNotificationParams(requestId=1)
        )
        await theirs.send_notification(types.ClientNotification(cancelled))
        await theirs.call_tool("list_methods")
        held.let_go()
        assert data(await asking)["status"] == "finished"


async def test_a_client_that_hangs_up_while_it_asks_ends_the_run(held: Served):
    async def ask() -> None:
        async with connected(held) as session:
            await session.call_tool("ask", another())

    asking = asyncio.create_task(ask())
    await until(held, busy(held))
    asking.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await asking
    await until(held, ended(held))


async def test_a_client_that_hangs_up_while_it_only_looks_does_not_end_the_run(held: Served):
    async with connected(held) as session:
        run = data(await session.call_tool("ask", {**another(), "wait": 0}))["run"]
    await until(held, busy(held))

    async def look() -> None:
        async with connected(held) as session:
            looking.set()
            await session.call_tool("get_run", {"run": run, "wait": 50})

    looking = asyncio.Event()
    task = asyncio.create_task(look())
    await looking.wait()
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
    held.let_go()
    async with connected(held) as session:
        found = data(await session.call_tool("get_run", {"run": run, "wait": 50}))
    assert found["status"] == "finished"
    assert held.model.cancelled == 0


def test_a_client_without_a_session_is_served_too(answering: Served):
    call = {"name": "ask", "arguments": {"question": QUESTION, "method": "direct"}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    accepted = {"accept": "application/json, text/event-stream"}
    for end in ("", "/"):
        reply = httpx.post(
            f"{answering.url}/gradio_api/mcp{end}", json=message, headers=accepted, timeout=60
        )
        assert reply.status_code == 200
        assert "In Hope, Arkansas." in reply.text


def test_what_is_no_call_is_told_so(served: Served):
    address = f"{served.url}/gradio_api/mcp/"
    looked = httpx.get(address)
    assert (looked.status_code, looked.headers["allow"]) == (405, "POST")
    assert "MCP client" in looked.text
    accepted = {"accept": "application/json, text/event-stream"}
    for body, status in (
        (b"{", 400),
        (b"[]", 400),
        (b'{"method": "notifications/cancelled", "params": []}', 400),
    ):
        kind = {**accepted, "content-type": "application/json", "mcp-session-id": "mine"}
        assert httpx.post(address, content=body, headers=kind).status_code == status
