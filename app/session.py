"""What belongs to one visitor: who they are, their language and theme, and their keys.

A cookie identifies the browser, so that each sees its own runs and models only.
Keys stay in the session's memory: they are neither stored nor recorded, and gone with the tab.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.messages import LANGUAGES, Catalogue
from components.theme import Theme
from pipelines.run.spec import ModelSpec, RunSpec
from pipelines.store import new_owner
from pipelines.types import Language

__all__ = [
    "COOKIE",
    "OwnerCookie",
    "default_language",
    "forget_key",
    "has_search_key",
    "keep_key",
    "keep_search_key",
    "key_for",
    "keys_for",
    "language",
    "messages",
    "owner",
    "owner_of",
    "theme",
]

COOKIE = "veriscope_owner"
_OWNER_FORM = re.compile(r"[0-9a-f]{48}\Z")
_YEAR = 365 * 24 * 3600

_OWNER = "_owner"
_KEYS = "_keys"


def owner() -> str:
    """Who this browser is. One that refuses cookies is a new visitor in every session."""
    if _OWNER not in st.session_state:
        st.session_state[_OWNER] = owner_of(st.context.cookies) or new_owner()
    return st.session_state[_OWNER]


def default_language() -> Language:
    """Chinese for a browser that asks for it, else English."""
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def language() -> Language:
    """The interface's language, as chosen with the switch."""
    chosen = st.session_state.get("lang")
    return cast(Language, chosen) if chosen in LANGUAGES else default_language()


def messages() -> Catalogue:
    """The texts of the interface."""
    return Catalogue(language())


def theme() -> Theme:
    """Light or dark, as the page is shown now."""
    return "dark" if st.context.theme.type == "dark" else "light"


def keep_key(spec: ModelSpec, key: str) -> None:
    """Remember a model's key until the tab is closed; an empty one deletes it."""
    if key:
        _keys()[_place(spec)] = key
    else:
        forget_key(spec)


def forget_key(spec: ModelSpec) -> None:
    """Delete a model's key."""
    _keys().pop(_place(spec), None)


def key_for(spec: ModelSpec) -> str | None:
    """The key of a model, if it was given one."""
    return _keys().get(_place(spec))


def keep_search_key(name: str, key: str) -> None:
    """Remember the key of a web search until the tab is closed; an empty one deletes it."""
    if key:
        _keys()[_search(name)] = key
    else:
        _keys().pop(_search(name), None)


def has_search_key(name: str) -> bool:
    """Whether the visitor gave a key for this search of the web."""
    return _search(name) in _keys()


def keys_for(spec: RunSpec) -> dict[str, str]:
    """The keys that a run of `spec` may use, by the name of the model or search they open."""
    known = _keys()
    keys = {m.name: known[_place(m)] for m in spec.models.values() if _place(m) in known}
    evidence = spec.evidence
    # A key is meant for the search's own address: a run from elsewhere may name another.
    if evidence.base_url is None and _search(evidence.source) in known:
        # Named so that no model of the same name is sent it.
        keys[f"search:{evidence.source}"] = known[_search(evidence.source)]
    return keys


def _keys() -> dict[tuple[str, str, str], str]:
    return st.session_state.setdefault(_KEYS, {})


def _place(spec: ModelSpec) -> tuple[str, str, str]:
    """A key is meant for one address: a model saved with another address does not get it."""
    return spec.kind, spec.name, spec.base_url or ""


def _search(name: str) -> tuple[str, str, str]:
    return "search", name, ""


def owner_of(cookies: Mapping[str, str]) -> str | None:
    """The owner that `cookies` name, None if there is none or it is not one of ours."""
    value = cookies.get(COOKIE, "")
    return value if _OWNER_FORM.match(value) else None


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
                    # A shared cache must not give one visitor's cookie to another.
                    answered["cache-control"] = "no-store"
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _cookie(owner: str, *, secure: bool) -> str:
    ending = "; Secure" if secure else ""
    return f"{COOKIE}={owner}; Path=/; Max-Age={_YEAR}; HttpOnly; SameSite=Lax{ending}"


def _is_secure(asked: HTTPConnection) -> bool:
    forwarded = asked.headers.get("x-forwarded-proto", "")
    return "https" in (asked.url.scheme, forwarded)
