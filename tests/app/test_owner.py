"""The cookie that distinguishes browsers."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.session import COOKIE, OwnerCookie, owner_of
from pipelines.store import new_owner

Headers = list[tuple[bytes, bytes]]


async def answer(
    response: Response | None = None,
    *,
    cookie: str = "",
    scheme: str = "http",
    kind: str = "http",
    **headers: str,
) -> dict[str, list[str]]:
    """The headers with which a page behind the cookie is answered."""
    sent: dict[str, list[str]] = {}

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        if response is not None:
            await response(scope, receive, send)

    async def send(message: MutableMapping[str, Any]) -> None:
        for name, value in message.get("headers", []):
            sent.setdefault(name.decode(), []).append(value.decode())

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    given: Headers = [(n.replace("_", "-").encode(), v.encode()) for n, v in headers.items()]
    scope = {
        "type": kind,
        "method": "GET",
        "scheme": scheme,
        "path": "/",
        "query_string": b"",
        "headers": [*given, (b"host", b"here"), (b"cookie", cookie.encode())],
    }
    await OwnerCookie(page)(scope, receive, send)
    return sent


def given_owner(headers: dict[str, list[str]]) -> str:
    (cookie,) = headers["set-cookie"]
    found = re.match(rf"{COOKIE}=([0-9a-f]{{48}}); ", cookie)
    assert found
    return found[1]


async def test_a_new_browser_gets_an_owner_that_scripts_and_other_sites_cannot_use():
    headers = await answer(HTMLResponse("page"))
    (cookie,) = headers["set-cookie"]
    kept, *rules = cookie.split("; ")
    assert kept.startswith(f"{COOKIE}=")
    assert sorted(rules) == ["HttpOnly", "Max-Age=31536000", "Path=/", "SameSite=lax"]
    assert headers["cache-control"] == ["no-store"]
    assert given_owner(headers) != given_owner(await answer(HTMLResponse("page")))


async def test_a_known_browser_keeps_its_owner():
    mine = new_owner()
    headers = await answer(HTMLResponse("page"), cookie=f"other=1; {COOKIE}={mine}")
    assert given_owner(headers) == mine


@pytest.mark.parametrize("value", ["", "guess", "A" * 48, "0" * 47, "0" * 49, "0" * 48 + "\n"])
async def test_what_is_no_owner_is_replaced(value: str):
    assert owner_of({COOKIE: value}) is None
    headers = await answer(HTMLResponse("page"), cookie=f"{COOKIE}={value.strip()}x")
    assert given_owner(headers) != value


@pytest.mark.parametrize(
    ("scheme", "headers"), [("https", {}), ("http", {"x_forwarded_proto": "https"})]
)
async def test_over_https_the_cookie_stays_there(scheme: str, headers: dict[str, str]):
    answered = await answer(HTMLResponse("page"), scheme=scheme, **headers)
    assert "Secure" in answered["set-cookie"][0].split("; ")


async def test_only_pages_carry_the_cookie():
    assert "set-cookie" not in await answer(JSONResponse({}))


async def test_a_websocket_passes_untouched():
    assert await answer(kind="websocket") == {}


def test_without_a_cookie_there_is_no_owner():
    assert owner_of({}) is None
    mine = new_owner()
    assert owner_of({COOKIE: mine}) == mine
