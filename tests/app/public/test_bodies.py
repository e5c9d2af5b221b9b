"""What a request's body may be, at every address of the Space, and in which form that is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from app.public.serving import MAX_BODY, MAX_DEPTH, CheckedBodies, too_deep
from tests.app.public.conftest import Served

RPC = "/gradio_api/mcp"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
ADDRESSES = [
    "/api/ask",
    "/api/check",
    "/gradio_api/run/get_run",
    "/gradio_api/call/ask",
    "/gradio_api/call/v2/ask",
    "/gradio_api/run/predict",
    "/gradio_api/queue/join",
    "/gradio_api/cancel",
    "/gradio_api/component_server",
    "/gradio_api/stream/none",
    "/health",
]
"""Of each kind of caller, and of the page itself."""


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b" " * (MAX_BODY + 1), 413, "too_large"),
        (b"[" * 200_000, 400, "invalid_json"),
        (nested(MAX_DEPTH + 1), 400, "invalid_json"),
        (b'{"a":' * 5_000, 400, "invalid_json"),
    ],
)
def test_no_address_reads_a_body_that_nobody_means(
    served: Served, address: str, body: bytes, status: int, code: str
):
    refused = httpx.post(f"{served.url}{address}", content=body, headers=JSON, timeout=60)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert refused.json()["message"]
    assert refused.json()["remedy"]


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [(b" " * (MAX_BODY + 1), 413, -32600), (b"[" * 200_000, 400, -32700)],
)
def test_an_mcp_client_is_told_so_in_json_rpc(
    served: Served, end: str, body: bytes, status: int, code: int
):
    refused = httpx.post(f"{served.url}{RPC}{end}", content=body, headers=JSON, timeout=60)
    told = refused.json()
    assert (refused.status_code, told["jsonrpc"], told["id"]) == (status, "2.0", None)
    assert told["error"]["code"] == code
    assert set(told["error"]["data"]) == {"code", "message", "remedy"}


def stored(served: Served) -> list[Path]:
    """The files in the folder where Gradio puts what is uploaded."""
    folder = Path(served.space.page.app.uploaded_file_dir)  # type: ignore[attr-defined]
    return [one for one in folder.rglob("*") if one.is_file()]


@pytest.mark.parametrize(
    "address",
    ["upload", "upload?upload_id=x", "upload/", "process_recording", "component_server", "cancel"],
)
@pytest.mark.parametrize("content", [b"", b"x"])
def test_no_file_is_taken_however_small(served: Served, address: str, content: bytes):
    before = stored(served)
    files = [("files", (f"{number}.txt", content)) for number in range(3)]
    refused = httpx.post(f"{served.url}/gradio_api/{address}", files=files, timeout=60)
    assert refused.status_code == 404
    assert refused.json()["message"] == "No files can be sent here."
    assert stored(served) == before


# --- The middleware alone -------------------------------------------------------------------------


async def passed_on(
    parts: Iterable[Message], *, path: str = "/api/ask", **headers: str
) -> tuple[list[bytes], list[Message]]:
    """The bodies that the application behind it reads, and what is sent to the client."""
    read: list[bytes] = []
    sent: list[Message] = []
    left = list(parts)

    async def receive() -> Message:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        read.append(message["body"])
        assert not message["more_body"]
        # After the body it hears of the client what there is to be heard.
        assert (await receive())["type"] == "http.disconnect"

    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": named}
    await CheckedBodies(behind, RPC)(scope, receive, send)
    return read, sent


def part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_that_comes_in_parts_is_passed_on_whole():
    read, sent = await passed_on([part(b'{"a"', more=True), part(b": 1}", more=False)])
    assert (read, sent) == ([b'{"a": 1}'], [])


async def test_the_most_is_passed_on_and_one_byte_more_is_not():
    half = b" " * (MAX_BODY // 2)
    read, _ = await passed_on([part(half, more=True), part(half, more=False)])
    assert read == [half * 2]
    # It says nothing of its length: what comes is counted, and the rest is not waited for.
    parts = [part(half, more=True), part(half, more=True), part(b" ", more=True)]
    read, sent = await passed_on(parts)
    assert read == []
    assert sent[0]["status"] == 413


async def test_who_hangs_up_before_the_end_is_not_served():
    assert await passed_on([part(b"{", more=True)]) == ([], [])


@pytest.mark.parametrize("before", ["", "/under/this"])
async def test_addresses_are_known_under_the_path_of_a_proxy(before: str):
    whole = [part(b"[" * 100, more=False)]
    read, sent = await passed_on(whole, path=f"{before}{RPC}/")
    assert (read, json.loads(sent[1]["body"])["jsonrpc"]) == ([], "2.0")
    read, sent = await passed_on(whole, path=f"{before}/gradio_api/upload")
    assert (read, sent[0]["status"]) == ([], 404)


async def test_what_is_no_request_passes():
    seen: list[Any] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    for kind in ("lifespan", "websocket"):
        await CheckedBodies(behind, RPC)({"type": kind}, nothing, nothing)
    assert seen == ["lifespan", "websocket"]


@pytest.mark.parametrize(
    ("body", "deep"),
    [
        (nested(MAX_DEPTH), False),
        (nested(MAX_DEPTH + 1), True),
        (b"[" + b"[]," * 500 + b"[]]", False),
        # Brackets in a string are text, also after a quotation mark that is escaped.
        (b'["' + b"[" * 500 + b'"]', False),
        (rb'["\"' + b"[" * 500 + b'"]', False),
        (rb'["\\",' + b"[" * 500, True),
        (b'"' + b"[" * 500, False),
        # A byte of this character looks like a quotation mark.
        (('["\u2200",' + "[" * 500).encode("utf-16-le"), True),
        (("[" * 500).encode("utf-16"), True),
        (b"\xff" + b"[" * 500, False),
        (b"", False),
    ],
)
def test_depth_is_that_of_arrays_and_objects(body: bytes, deep: bool):
    assert too_deep(body) == deep


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


VALUES = st.recursive(
    st.text('[]{}"\\,∀a') | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('[]{}"\\', max_size=3), inner, max_size=3)
    ),
)


@given(VALUES, st.integers(0, 2 * MAX_DEPTH), st.booleans())
def test_depth_is_measured_as_on_the_value_itself(value: Any, more: int, ascii_only: bool):
    for _ in range(more):
        value = [value]
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert too_deep(body) == (depth(value) > MAX_DEPTH)


async def test_a_body_that_is_half_sent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.public.serving.BODY_SECONDS", 0.05)
    sent: list[Message] = []
    arrived = [{"type": "http.request", "body": b'{"question": ', "more_body": True}]

    async def receive() -> Message:
        if arrived:
            return arrived.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    scope: Scope = {"type": "http", "method": "POST", "path": "/api/ask", "headers": []}
    await CheckedBodies(never, RPC)(scope, receive, send)
    assert sent[0]["status"] == 408
    assert b"within 0.05 s" in sent[1]["body"]


def test_wrong_calls_of_the_pages_own_functions_are_refused(served: Served):
    events = httpx.get(f"{served.url}/config").json()["dependencies"]
    own = next(one for one in events if one["api_visibility"] != "public" and one["inputs"])
    wrong = [
        *((f"/gradio_api/{how}/{own['api_name']}", {"data": []}) for how in ("run", "api", "call")),
        *(
            (f"/gradio_api/{where}", {"fn_index": number, "data": values, "session_hash": "a"})
            for where in ("run/predict", "queue/join")
            for number, values in ((own["id"], []), (10**6, []), (None, []), (2**70, [1]))
        ),
    ]
    for address, body in wrong:
        reply = httpx.post(f"{served.url}{address}", json=body)
        assert (reply.status_code // 100, "remedy" in reply.json()) == (4, True), (address, body)


def test_nobody_can_see_how_the_page_is_used(served: Served):
    for address in ("/monitoring", "/monitoring/summary", "/gradio_api/monitoring"):
        assert httpx.get(f"{served.url}{address}").status_code in (403, 404)
