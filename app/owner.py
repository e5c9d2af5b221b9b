"""Tells browsers apart by a cookie, so that each sees its own runs and models only."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.store import new_owner

__all__ = ["COOKIE", "OwnerCookie", "owner_of"]

COOKIE = "veriscope_owner"
_OWNER = re.compile(r"[0-9a-f]{48}\Z")
_YEAR = 365 * 24 * 3600


def owner_of(cookies: Mapping[str, str]) -> str | None:
    """The owner that `cookies` name, None if there is none or it is not one of ours."""
    value = cookies.get(COOKIE, "")
    return value if _OWNER.match(value) else None


class OwnerCookie:
    """Gives every browser that opens a page without one an unguessable owner.

    The cookie is renewed with every page, so that it ends a year after the last visit. Scripts
    cannot read it, other sites cannot send it along, and over https it stays there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                if answered.get("content-type", "").startswith("text/html"):
                    owner = owner_of(asked.cookies) or new_owner()
                    answered.append("set-cookie", _cookie(owner, secure=_is_secure(asked)))
                    # A shared cache must not hand one visitor's cookie to another.
                    answered["cache-control"] = "no-store"
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _cookie(owner: str, *, secure: bool) -> str:
    ending = "; Secure" if secure else ""
    return f"{COOKIE}={owner}; Path=/; Max-Age={_YEAR}; HttpOnly; SameSite=Lax{ending}"


def _is_secure(asked: HTTPConnection) -> bool:
    forwarded = asked.headers.get("x-forwarded-proto", "")
    return "https" in (asked.url.scheme, forwarded)
