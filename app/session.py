"""What belongs to one visitor: who they are, their language and theme, and their keys.

A cookie identifies the browser, so that each sees its own runs and models only.
Keys stay in the session's memory: they are neither stored nor recorded, and gone with the tab.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import streamlit as st
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from app.engine import engine
from components.messages import LANGUAGES, Catalogue
from components.theme import Theme
from pipelines.errors import VeriscopeError
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.run.spec import ModelSpec, RunSpec
from pipelines.store import new_owner
from pipelines.types import Language

COOKIE = "veriscope_owner"
_OWNER_FORM = re.compile(r"[0-9a-f]{48}\Z")
_YEAR = 365 * 24 * 3600


def owner() -> str:
    """Return who this browser is. One that refuses cookies is a new visitor in every session."""
    if "_owner" not in st.session_state:
        st.session_state["_owner"] = owner_of(st.context.cookies) or new_owner()
    return st.session_state["_owner"]


def default_language() -> Language:
    """Return Chinese for a browser that asks for it, else English."""
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def language() -> Language:
    """Return the interface's language, as chosen with the switch."""
    chosen = st.session_state.get("lang")
    return cast(Language, chosen) if chosen in LANGUAGES else default_language()


def messages() -> Catalogue:
    """Return the texts of the interface."""
    return Catalogue(language())


def theme() -> Theme:
    """Return light or dark, as the page is shown now."""
    return "dark" if st.context.theme.type == "dark" else "light"


def keep_key(opens: ModelSpec | str, key: str) -> None:
    """Remember the key of a model, or of a search of the web, until the tab is closed.

    An empty key deletes what was remembered.
    """
    _keys().pop(_place(opens), None)
    if key:
        _keys()[_place(opens)] = key


def key_for(opens: ModelSpec | str) -> str | None:
    """Return the key of a model, or of a search of the web by name, if it was given one."""
    return _keys().get(_place(opens))


def keys_for(spec: RunSpec) -> dict[str, str]:
    """Return the keys that a run of `spec` may use, by the name of the model or search
    they open.
    """
    keys = {model.name: key for model in spec.models.values() if (key := key_for(model))}
    evidence = spec.evidence
    # A key is meant for the search's own address: a run from elsewhere may name another.
    if evidence.base_url is None and (key := key_for(evidence.source)):
        # Named so that no model of the same name is sent it.
        keys[f"search:{evidence.source}"] = key
    if evidence.collection is not None and (key := _collection_key(evidence.collection)):
        keys["search:library"] = key
    return keys


def keep_embedder_key(spec: EmbedderSpec, key: str) -> None:
    """Remember the key of an embedding service until the tab is closed."""
    keep_key(f"embedder {spec.address}", key)


def embedder_key(spec: EmbedderSpec) -> str | None:
    """Return the key of an embedding service, if it was given one; it is meant for its
    address alone.
    """
    return key_for(f"embedder {spec.address}") if spec.kind == "openai" else None


def _collection_key(collection: str) -> str | None:
    try:
        stored = engine().service.collections.store.get(owner(), collection)
    except VeriscopeError:
        # The run itself will say that it is not there.
        return None
    return embedder_key(stored.embedder)


def _keys() -> dict[tuple[str, ...], str]:
    return st.session_state.setdefault("_keys", {})


def _place(opens: ModelSpec | str) -> tuple[str, ...]:
    """Return the place that a key is for; it is meant for one address: a model saved with another
    address does not get it.
    """
    if isinstance(opens, str):
        return "search", opens
    return opens.kind, opens.name, opens.base_url or ""


def owner_of(cookies: Mapping[str, str]) -> str | None:
    """Return the owner that `cookies` name, None if there is none or it is not one of ours."""
    value = cookies.get(COOKIE, "")
    return value if _OWNER_FORM.match(value) else None


class OwnerCookie(BaseHTTPMiddleware):
    """Gives every browser that opens a page without one an unguessable owner.

    The cookie is renewed with every page, so that it ends a year after the last visit. Scripts
    cannot read it, other sites cannot send it along, and over https it stays there.
    """

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        if response.headers.get("content-type", "").startswith("text/html"):
            forwarded = request.headers.get("x-forwarded-proto", "")
            response.set_cookie(
                COOKIE,
                owner_of(request.cookies) or new_owner(),
                max_age=_YEAR,
                httponly=True,
                secure="https" in (request.url.scheme, forwarded),
            )
            # A shared cache must not give one visitor's cookie to another.
            response.headers["cache-control"] = "no-store"
        return response
